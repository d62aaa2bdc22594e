//! The store as a worker uses it: look-ups with a timeout, and commands without a wait.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;
use tokio::sync::watch;
use tokio::task::{AbortHandle, spawn_local};

use crate::answer::{Answer, Fault, MAX_VALUE_LEN};
use crate::connector::{self, Connector};
use crate::counters::StoreCount;
use crate::deletions::Deletions;
use crate::shared::{CommandOutcome, Shared, deletion, key};
use crate::{StoreCounters, StoreEndpoint};

/// Timeout of a look-up unless configured otherwise: twenty round trips in a data centre, and a fifth of what people
/// notice.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(20);

/// Commands that may be on their way at once: a tenth of a second of a worker that makes 10,000 sessions in a second.
const MAX_WAITING: usize = 1024;

/// Bytes of values that may be on their way at once.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// The store of one worker, on the worker's own runtime (a `LocalRuntime` or `LocalSet` of tokio).
///
/// Dropping it closes the connection; commands that are on their way have up to a second more.
pub struct Store {
    shared: Rc<Shared>,
    connector: AbortHandle,
}

impl Store {
    /// Starts connecting, in the background. A question may take `timeout`. `spawn` makes a task of what keeps the store
    /// connected, on this thread's runtime; without it no question is answered, so a panic of it is the caller's affair.
    pub fn new(
        target: Arc<StoreEndpoint>,
        timeout: Duration,
        counters: Arc<StoreCounters>,
        spawn: impl FnOnce(Connector) -> AbortHandle,
    ) -> Self {
        let shared = Rc::new(Shared {
            endpoint: target,
            timeout,
            deletions: Deletions::new(Arc::clone(&counters)),
            counters,
            breaker: RefCell::default(),
            connection: watch::Sender::new(None),
            waiting: Cell::new(0),
            waiting_bytes: Cell::new(0),
        });
        let connector = spawn(Box::pin(connector::run(Rc::clone(&shared))));
        Self { shared, connector }
    }

    /// Whether a question would be asked now: for callers that have something better to do otherwise.
    pub fn is_available(&self) -> bool {
        self.shared.connection.borrow().is_some()
    }

    /// Asks for the value under `name`, for as long as the timeout; `None` if there is none. May be given up by being
    /// dropped.
    ///
    /// # Errors
    /// [`StoreFailure`]: at once when the breaker is open or there is no connection.
    pub async fn get(&self, name: &[u8; 32]) -> Result<Option<Vec<u8>>, StoreFailure> {
        let counters = &self.shared.counters;
        let Some(mut connection) = self.shared.connection.borrow().clone() else {
            counters.count(StoreCount::Skipped);
            return Err(StoreFailure::Unavailable);
        };
        counters.count(StoreCount::Gets);
        let answer = connection.link.ask(redis::cmd("GET").arg(key(name)), self.shared.timeout).await;
        let answer = match answer {
            Ok(Answer::Done) => Err(Fault::Protocol("an answer of another type")),
            answer => answer,
        };
        self.shared.record_outcome(&connection, &answer);
        match answer {
            Ok(Answer::Found(value)) => {
                counters.count(StoreCount::Hits);
                Ok(Some(value))
            }
            Ok(Answer::Missing | Answer::Done) => {
                counters.count(StoreCount::Misses);
                Ok(None)
            }
            Err(fault) => Err(StoreFailure::from(&fault)),
        }
    }

    /// Stores `value` under `name`, in place of an older one, until `lifetime` is over. Never waits, and may not succeed:
    /// what is too large, or too much at once, or meets an open breaker, is dropped and counted.
    pub fn put(&self, name: &[u8; 32], value: &[u8], lifetime: Duration) {
        self.shared.counters.count(StoreCount::Puts);
        let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).min(MAX_LIFETIME_MILLIS);
        if value.len() > MAX_VALUE_LEN || millis == 0 {
            self.shared.counters.count(StoreCount::Dropped);
            return;
        }
        let mut command = redis::cmd("SET");
        command.arg(key(name)).arg(value).arg("PX").arg(millis);
        self.send(command, value.len(), StoreCount::Stored);
    }

    /// Forgets what is under `name`. Never waits: while the store is away, or has too much to do, the newest few thousand
    /// deletions wait, and are sent when it is back.
    pub fn delete(&self, name: &[u8; 32]) {
        self.shared.counters.count(StoreCount::Deletes);
        let name = *name;
        let Some(permit) = self.permit(0) else { return self.shared.deletions.add(name) };
        spawn_local(async move {
            match permit.shared.execute(&deletion(&name)).await {
                CommandOutcome::Done => permit.shared.counters.count(StoreCount::Deleted),
                CommandOutcome::Refused => {}
                CommandOutcome::NoAnswer | CommandOutcome::NoConnection => permit.shared.deletions.add(name),
            }
        });
    }

    fn send(&self, command: Cmd, bytes: usize, done: StoreCount) {
        let Some(permit) = self.permit(bytes) else { return self.shared.counters.count(StoreCount::Dropped) };
        spawn_local(async move {
            match permit.shared.execute(&command).await {
                CommandOutcome::Done => permit.shared.counters.count(done),
                CommandOutcome::Refused | CommandOutcome::NoAnswer => {}
                CommandOutcome::NoConnection => permit.shared.counters.count(StoreCount::Dropped),
            }
        });
    }

    /// A permit for a command, unless too many are in flight or the breaker is open.
    fn permit(&self, bytes: usize) -> Option<Permit> {
        let shared = &self.shared;
        let full =
            shared.waiting.get() >= MAX_WAITING || shared.waiting_bytes.get() + bytes > MAX_WAITING_BYTES;
        let may = !full && shared.breaker.borrow().is_closed();
        may.then(|| Permit::new(Rc::clone(shared), bytes))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.connector.abort();
        self.shared.connection.send_replace(None);
        self.shared.count_open_time();
        if !self.shared.breaker.borrow().is_closed() {
            self.shared.counters.no_longer_open();
        }
    }
}

/// A command on its way, with its share of what may be.
struct Permit {
    shared: Rc<Shared>,
    bytes: usize,
}

impl Permit {
    fn new(shared: Rc<Shared>, bytes: usize) -> Self {
        shared.waiting.set(shared.waiting.get() + 1);
        shared.waiting_bytes.set(shared.waiting_bytes.get() + bytes);
        Self { shared, bytes }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.waiting.set(shared.waiting.get() - 1);
        shared.waiting_bytes.set(shared.waiting_bytes.get() - self.bytes);
    }
}

/// A month: longer than any session lives, and far from where the store's arithmetic ends.
const MAX_LIFETIME_MILLIS: u64 = 31 * 24 * 3600 * 1000;

/// Why a look-up has no answer; each means a full handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFailure {
    /// It was not asked: the breaker is open, or there is no connection.
    Unavailable,
    /// The answer did not come in time.
    Timeout,
    /// The connection was lost.
    Lost,
    /// The answer was an error.
    Refused,
    /// What came was no answer.
    Protocol,
}

impl From<&Fault> for StoreFailure {
    fn from(fault: &Fault) -> Self {
        match fault {
            Fault::Timeout => Self::Timeout,
            Fault::Lost(_) => Self::Lost,
            Fault::Refused(_) => Self::Refused,
            Fault::Protocol(_) => Self::Protocol,
        }
    }
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "the session store is not available",
            Self::Timeout => "the session store did not answer in time",
            Self::Lost => "the connection to the session store was lost",
            Self::Refused => "the session store refused",
            Self::Protocol => "the session store sent something that is no answer",
        })
    }
}

impl std::error::Error for StoreFailure {}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("target", &self.shared.endpoint).finish_non_exhaustive()
    }
}
