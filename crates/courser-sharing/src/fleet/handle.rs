//! How others reach the fleet's thread. No call but [`FleetHandle::pull`] and [`FleetHandle::status`] waits, and those
//! for a bounded time.

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use courser_fleet::{Allowed, DomainCheck, MemberId, Passed};
use courser_session::{SessionId, SharedSession, UnixSeconds};
use tokio::sync::{mpsc, oneshot};

use super::status::FleetStatus;

/// What may wait for the fleet's thread, in each queue: what the busiest host makes in the longest pause that a thread
/// of its own should have (10,000 sessions a second, half a second).
const QUEUE: usize = 5_000;

/// Messages that wait at most for one watcher.
const WATCH_QUEUE: usize = 1_024;

/// A check that a peer has not acknowledged by then is sent again.
const AGAIN: Duration = Duration::from_millis(100);

/// How long the fleet's thread may take to return its status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);

/// The way to the fleet's thread. It ends when the last handle is dropped.
#[derive(Clone)]
pub struct FleetHandle {
    updates: mpsc::Sender<Update>,
    requests: mpsc::Sender<Request>,
    dropped: Arc<AtomicU64>,
}

/// What the workers send to the fleet's thread. Updates may wait for others, requests do not.
pub(super) struct Inbox {
    pub(super) updates: mpsc::Receiver<Update>,
    pub(super) requests: mpsc::Receiver<Request>,
}

pub(super) enum Update {
    New(SharedSession),
    Deleted(SessionId),
    Removed(SessionId),
}

/// What a caller waits for.
pub(super) enum Request {
    Pull(SessionId, oneshot::Sender<bool>),
    Status(SyncSender<FleetStatus>),
    Watch(SyncSender<Passed>),
    Peers {
        peers: Vec<SocketAddr>,
        allowed: Vec<Allowed>,
    },
    /// Sends a check to the peers; who acknowledges it is sent on.
    SendCheck(DomainCheck, std::sync::mpsc::Sender<MemberId>),
    Withdraw(DomainCheck),
    AnswerChecks(CheckAnswerer),
    /// The sender is dropped when the socket is closed.
    Stop(SyncSender<()>),
}

/// Has a check of a certificate authority answered by this host, or one that is over no more. Returns whether it is answered now.
pub type CheckAnswerer = Arc<dyn Fn(&DomainCheck) -> bool + Send + Sync>;

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
    pub(super) fn new() -> (Self, Inbox) {
        let ((updates, update_queue), (requests, request_queue)) =
            (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        (
            Self { updates, requests, dropped: Arc::default() },
            Inbox { updates: update_queue, requests: request_queue },
        )
    }

    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }

    /// Pushes a session that was made here to the peers. Dropped, and counted, when too many wait already.
    pub fn push(&self, session: SharedSession) {
        self.put(&self.updates, Update::New(session));
    }

    /// Deletes a session on the peers.
    pub fn delete(&self, id: SessionId) {
        self.put(&self.updates, Update::Deleted(id));
    }

    /// Removes a session on the peers, without a tombstone.
    pub fn remove(&self, id: SessionId) {
        self.put(&self.updates, Update::Removed(id));
    }

    /// Pulls a session from the peers, and waits for their answer until `deadline` is over.
    pub async fn pull(&self, id: SessionId, deadline: Duration) -> Pulled {
        let (waiter, answer) = oneshot::channel();
        if !self.put(&self.requests, Request::Pull(id, waiter)) {
            return Pulled::TimedOut;
        }
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(true)) => Pulled::Found,
            Ok(Ok(false)) => Pulled::Missing,
            Ok(Err(_)) | Err(_) => Pulled::TimedOut,
        }
    }

    /// What the fleet's thread knows and has counted; `None` if it does not answer within a second. Blocks: not for
    /// workers.
    pub fn status(&self) -> Option<FleetStatus> {
        let (sender, receiver) = sync_channel(1);
        self.put(&self.requests, Request::Status(sender));
        receiver.recv_timeout(STATUS_TIMEOUT).ok()
    }

    /// Has this called for each check that a peer wants answered.
    pub fn answer_checks(&self, answerer: CheckAnswerer) {
        self.put(&self.requests, Request::AnswerChecks(answerer));
    }

    /// Has the peers answer a check, and waits until all do, at most until `patience` is over. A host that is not heard may be
    /// asked all the same, so it is waited for as well, until it is forgotten; a configured one always. Blocks: not for workers.
    ///
    /// # Errors
    /// Who does not, and why.
    pub fn send_check(&self, check: &DomainCheck, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        let (sender, acknowledged) = std::sync::mpsc::channel();
        let mut have = HashSet::new();
        loop {
            self.put(&self.requests, Request::SendCheck(check.clone(), sender.clone()));
            let again = Instant::now() + AGAIN;
            while let Ok(member) = acknowledged.recv_timeout(again.saturating_duration_since(Instant::now()))
            {
                have.insert(member);
            }
            let missing = self.status().map(|status| status.without(&have));
            let missing = missing.unwrap_or_else(|| vec!["the fleet's thread does not answer".to_owned()]);
            if missing.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(missing.join("; "));
            }
        }
    }

    /// Says that a check is over.
    pub fn withdraw(&self, check: &DomainCheck) {
        let over = DomainCheck { expires: UnixSeconds(0), ..check.clone() };
        self.put(&self.requests, Request::Withdraw(over));
    }

    /// A summary of each message of the fleet from now on, without secrets, until the receiver is dropped. What
    /// is not taken in time is left out.
    pub fn watch(&self) -> Receiver<Passed> {
        let (sender, receiver) = sync_channel(WATCH_QUEUE);
        self.put(&self.requests, Request::Watch(sender));
        receiver
    }

    /// From now on sends to these, and takes messages from who is allowed. Dropped when too many requests wait already.
    pub fn set_peers(&self, peers: Vec<SocketAddr>, allowed: Vec<Allowed>) {
        self.put(&self.requests, Request::Peers { peers, allowed });
    }

    /// Ends the fleet's thread. Returns whether it has left the network within `limit`. Blocks: not for workers.
    #[must_use]
    pub fn stop(&self, limit: Duration) -> bool {
        let (sender, receiver) = sync_channel(1);
        let sent = self.requests.try_send(Request::Stop(sender));
        let is_closed = matches!(sent, Err(mpsc::error::TrySendError::Closed(_)));
        is_closed || sent.is_ok() && receiver.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }

    /// Updates and requests that were dropped because too many were waiting.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn put<T>(&self, queue: &mpsc::Sender<T>, item: T) -> bool {
        let taken = queue.try_send(item).is_ok();
        if !taken {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }
}

impl fmt::Debug for FleetHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetHandle").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}
