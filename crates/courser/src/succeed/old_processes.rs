//! The processes that were replaced and still drain: what they say of themselves, and what still changes in their caches.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use courser_net::channel::Channel;
use courser_proxy::Threads;
use courser_session::Cache;
use courser_telemetry::event::{Level, log};

use super::Memory;
use super::message::{self, Message, OldProcess};

/// Those that drain now.
#[derive(Default)]
pub(crate) struct OldProcesses {
    known: Mutex<Vec<Known>>,
    /// Read by a process after this one.
    are_left: Arc<AtomicBool>,
    readers: Mutex<Vec<JoinHandle<()>>>,
}

struct Known {
    process: Arc<Mutex<OldProcess>>,
    channel: Arc<Channel>,
}

/// Between two looks whether another process reads on.
const LOOK: Duration = Duration::from_millis(200);

impl OldProcesses {
    pub(crate) fn list(&self) -> Vec<OldProcess> {
        lock(&self.known).iter().map(|known| lock(&known.process).clone()).collect()
    }

    /// Their channels, for another process.
    pub(super) fn share(&self) -> io::Result<Vec<(OldProcess, OwnedFd)>> {
        let share =
            |known: &Known| Ok((lock(&known.process).clone(), known.channel.as_fd().try_clone_to_owned()?));
        lock(&self.known).iter().map(share).collect()
    }

    /// Reads no more: another process does.
    pub(super) fn leave(&self) {
        self.are_left.store(true, Ordering::Relaxed);
        // A panic there is the end of the process in any case.
        lock(&self.readers).drain(..).for_each(|reader| drop(reader.join()));
        lock(&self.known).clear();
    }

    /// Reads what `process` says from now on, until it ends.
    pub(crate) fn follow(
        self: &Arc<Self>,
        process: OldProcess,
        channel: Arc<Channel>,
        cache: Option<Arc<Cache>>,
        threads: &Threads,
    ) -> io::Result<()> {
        channel.set_timeout(LOOK)?;
        let pid = process.pid;
        let process = Arc::new(Mutex::new(process));
        let known = Known { process: Arc::clone(&process), channel: Arc::clone(&channel) };
        lock(&self.known).push(known);
        let (this, are_left) = (Arc::clone(self), Arc::clone(&self.are_left));
        let reader = threads.spawn("old-process", move || {
            if read(&channel, &process, cache.as_deref(), &are_left) {
                lock(&this.known).retain(|known| !Arc::ptr_eq(&known.process, &process));
                log(Level::Info, format_args!("upgrade: the earlier process {pid} has ended"));
            }
        })?;
        let mut readers = lock(&self.readers);
        readers.retain(|reader| !reader.is_finished());
        readers.push(reader);
        Ok(())
    }
}

/// Returns whether the process has ended.
fn read(
    channel: &Channel,
    process: &Mutex<OldProcess>,
    cache: Option<&Cache>,
    are_left: &AtomicBool,
) -> bool {
    while !are_left.load(Ordering::Relaxed) {
        match message::receive(channel) {
            Ok(Some((Message::Drains(now), _))) => *lock(process) = now,
            Ok(Some((Message::Memory, descriptors))) => {
                let memory = descriptors.into_iter().next().map(Memory::open);
                if let (Some(Ok(memory)), Some(cache)) = (memory, cache) {
                    // What makes no sense costs full handshakes.
                    let _ = memory.replay(cache);
                }
            }
            Ok(Some(_)) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            Ok(None) | Err(_) => return true,
        }
    }
    false
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
