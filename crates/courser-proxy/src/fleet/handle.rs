//! How others reach the fleet's thread. No call but [`FleetHandle::pull`] and [`FleetHandle::status`] waits, and those
//! for a bounded time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use courser_session::{SessionId, SharedSession};
use tokio::sync::{mpsc, oneshot};

use super::FleetStatus;

/// Requests that wait at most for the fleet's thread: what the busiest host makes in the longest pause that a thread
/// of its own should have (10,000 sessions a second, half a second).
const QUEUE: usize = 5_000;

/// Lines that wait at most for one who watches.
const WATCH_QUEUE: usize = 1_024;

/// How long the fleet's thread has to tell its status.
const STATUS_PATIENCE: Duration = Duration::from_secs(1);

/// The way to the fleet's thread. It ends when the last handle is dropped.
#[derive(Clone)]
pub struct FleetHandle {
    requests: mpsc::Sender<Request>,
    left_out: Arc<AtomicU64>,
}

/// What the fleet's thread is asked to do.
pub(super) enum Request {
    Made(SharedSession),
    Deleted(SessionId),
    Pull(SessionId, oneshot::Sender<bool>),
    Status(SyncSender<FleetStatus>),
    Watch(SyncSender<String>),
}

/// What became of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// Another host had the session, and it is in the cache now.
    Found,
    /// No other host has it.
    Missing,
    /// They did not all answer in time, or could not be asked.
    TimedOut,
}

impl FleetHandle {
    pub(super) fn new() -> (Self, mpsc::Receiver<Request>) {
        let (requests, queue) = mpsc::channel(QUEUE);
        (Self { requests, left_out: Arc::default() }, queue)
    }

    /// Where requests that were left out are counted.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.left_out)
    }

    /// Tells the other hosts of a session that was made here. Left out, and counted, when too many wait already.
    pub fn made(&self, session: SharedSession) {
        self.request(Request::Made(session));
    }

    /// Tells the other hosts that a session must not be resumed any more.
    pub fn deleted(&self, id: SessionId) {
        self.request(Request::Deleted(id));
    }

    /// Asks the other hosts for a session, and waits for their answer until `deadline` is over.
    pub async fn pull(&self, id: SessionId, deadline: Duration) -> Pulled {
        let (waiter, answer) = oneshot::channel();
        if !self.request(Request::Pull(id, waiter)) {
            return Pulled::TimedOut;
        }
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(true)) => Pulled::Found,
            Ok(Ok(false)) => Pulled::Missing,
            Ok(Err(_)) | Err(_) => Pulled::TimedOut,
        }
    }

    /// What the fleet's thread knows and has counted; `None` if it does not say so within a second. Blocks: not for
    /// workers.
    #[must_use]
    pub fn status(&self) -> Option<FleetStatus> {
        let (sender, receiver) = sync_channel(1);
        self.request(Request::Status(sender));
        receiver.recv_timeout(STATUS_PATIENCE).ok()
    }

    /// From now on one line for each message of the fleet, without secrets, until the receiver is dropped. Lines that
    /// are not taken in time are left out.
    #[must_use]
    pub fn watch(&self) -> Receiver<String> {
        let (sender, receiver) = sync_channel(WATCH_QUEUE);
        self.request(Request::Watch(sender));
        receiver
    }

    /// Requests that were left out because too many were waiting.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    fn request(&self, request: Request) -> bool {
        let taken = self.requests.try_send(request).is_ok();
        if !taken {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }
}

impl fmt::Debug for FleetHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetHandle").field("left_out", &self.left_out()).finish_non_exhaustive()
    }
}
