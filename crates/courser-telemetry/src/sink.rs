//! The connection log's way out: workers collect lines, and a writer of its own takes them, which no worker waits for.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use crate::losses::Losses;
use crate::writer::{Batch, Output, Queue, Writer};

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

/// A writer in front of standard output, a file, or any output that does not buffer.
pub struct Sink {
    writer: Writer,
}

impl Sink {
    /// The sink, and its writer's work: for a thread of its own, which ends with the sink and all [`Lines`].
    pub fn new(output: impl Output + Send + 'static) -> (Self, impl FnOnce() + Send + 'static) {
        let (writer, work) = Writer::new(output, QUEUE);
        (Self { writer }, work)
    }

    /// The end of the queue that a worker holds.
    pub fn lines(&self, format: Format) -> Lines {
        Lines { format, waiting: RefCell::default(), queue: self.writer.queue().clone() }
    }

    /// What is lost on the way to the output.
    pub fn losses(&self) -> Arc<Losses> {
        Arc::clone(self.writer.losses())
    }

    /// Has the writer begin anew where that was asked for, without waiting for a line.
    pub fn wake(&self) {
        self.writer.wake();
    }

    /// Waits until every line is written, at most for `limit`; what is not written then is lost. For the end of the
    /// process, when all [`Lines`] are gone.
    pub fn finish(self, limit: Duration) {
        self.writer.finish(limit);
    }
}

/// A worker's own end of the log: it collects lines and never blocks.
pub struct Lines {
    format: Format,
    waiting: RefCell<Batch>,
    queue: Queue,
}

impl Lines {
    /// Whether lines are written at all.
    pub fn enabled(&self) -> bool {
        self.format != Format::Off
    }

    /// Adds a line by a function that appends it (with its newline).
    pub fn add(&self, write: impl FnOnce(&mut String, Format)) {
        let mut waiting = self.waiting.borrow_mut();
        write(&mut waiting.text, self.format);
        waiting.lines += 1;
        if waiting.text.len() >= FLUSH_BYTES {
            drop(waiting);
            self.flush();
        }
    }

    /// Hands the collected lines to the writer. When its queue is full they wait here, until they are as many as fit into a
    /// batch: then they are lost.
    pub fn flush(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.lines == 0 {
            return;
        }
        match self.queue.try_send(std::mem::take(&mut waiting)) {
            Err(batch) if batch.text.len() < FLUSH_BYTES => *waiting = batch,
            Err(batch) => self.queue.count_lost(batch.lines),
            Ok(()) => {}
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.flush();
        self.queue.count_lost(self.waiting.borrow().lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_keeps_what_finds_no_room_until_it_is_a_batch() {
        let (sink, work) = Sink::new(Vec::new());
        let (lines, losses) = (sink.lines(Format::Text), sink.losses());
        let add = |line: &str| lines.add(|out, _| out.push_str(line));
        (0..QUEUE).for_each(|_| {
            add("line\n");
            lines.flush();
        });
        // No batch finds room now.
        (0..3).for_each(|_| {
            add("waits\n");
            lines.flush();
        });
        assert_eq!(losses.lines(), 0);
        add(&format!("{}\n", "x".repeat(FLUSH_BYTES)));
        assert_eq!(losses.lines(), 4);
        add("lost with its worker\n");
        drop(lines);
        assert_eq!(losses.lines(), 5);
        let writing = std::thread::spawn(work);
        sink.finish(Duration::MAX);
        writing.join().unwrap();
        assert_eq!(losses.lines(), 5);
    }
}
