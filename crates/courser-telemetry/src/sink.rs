//! Where lines go: a writer thread that no worker ever waits for.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The form of the connection log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `name=value` pairs.
    Text,
    /// One JSON object per line.
    Json,
    /// No connection log.
    Off,
}

/// Lines wait in a worker up to this many bytes; then, and whenever the worker goes idle, they leave for the writer.
const FLUSH_BYTES: usize = 32 * 1024;

/// Batches that may wait for a slow reader of the log before lines are left out: 256 batches of at most about 32 KiB.
const QUEUE: usize = 256;

enum Batch {
    Lines(String),
    Stop,
}

/// A writer thread in front of standard output (or any writer).
pub struct Sink {
    queue: SyncSender<Batch>,
    lost: Arc<AtomicU64>,
    writer: JoinHandle<()>,
}

impl Sink {
    /// Starts the writer thread.
    pub fn start(mut output: impl Write + Send + 'static) -> Self {
        let (queue, batches) = sync_channel(QUEUE);
        let writer = std::thread::spawn(move || {
            while let Ok(Batch::Lines(lines)) = batches.recv() {
                // A log that nobody reads any more must not end the service.
                let _ = output.write_all(lines.as_bytes()).and_then(|()| output.flush());
            }
        });
        Self { queue, lost: Arc::default(), writer }
    }

    /// The end of the queue that a worker holds.
    pub fn lines(&self, format: Format) -> Lines {
        let queue = self.queue.clone();
        Lines { format, waiting: RefCell::default(), queue, lost: Arc::clone(&self.lost) }
    }

    /// Batches that were left out because the log's reader was too slow.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes what is queued and ends the thread.
    pub fn stop(self) {
        let _ = self.queue.send(Batch::Stop);
        let _ = self.writer.join();
    }
}

/// A worker's own end of the log: it collects lines and never blocks.
pub struct Lines {
    format: Format,
    waiting: RefCell<String>,
    queue: SyncSender<Batch>,
    lost: Arc<AtomicU64>,
}

impl Lines {
    /// Whether lines are written at all.
    pub fn enabled(&self) -> bool {
        self.format != Format::Off
    }

    /// Adds a line by a function that appends it (with its newline).
    pub fn add(&self, write: impl FnOnce(&mut String, Format)) {
        let mut waiting = self.waiting.borrow_mut();
        write(&mut waiting, self.format);
        if waiting.len() >= FLUSH_BYTES {
            drop(waiting);
            self.flush();
        }
    }

    /// Hands the collected lines to the writer; counts them as lost when its queue is full.
    pub fn flush(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() {
            return;
        }
        if self.queue.try_send(Batch::Lines(std::mem::take(&mut waiting))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.flush();
    }
}
