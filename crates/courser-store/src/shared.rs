//! What a worker's store has in common with the tasks that work for it: the connection, the breaker, the counts.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Cmd;
use tokio::sync::{Notify, watch};

use crate::answer::{Answer, Fault};
use crate::breaker::Breaker;
use crate::counters::StoreCount;
use crate::deletions::Deletions;
use crate::link::{Link, WRITE_TIMEOUT};
use crate::{StoreCounters, StoreEndpoint};

/// What the store has in common with the tasks that work for it.
pub(crate) struct Shared {
    pub(crate) endpoint: Arc<StoreEndpoint>,
    pub(crate) timeout: Duration,
    pub(crate) counters: Arc<StoreCounters>,
    pub(crate) breaker: RefCell<Breaker>,
    /// There only while the store may be used.
    pub(crate) connection: watch::Sender<Option<Connection>>,
    pub(crate) deletions: Deletions,
    pub(crate) waiting: Cell<usize>,
    pub(crate) waiting_bytes: Cell<usize>,
}

/// A connection, and the signal of its users that it is broken.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) broken: Arc<Notify>,
}

/// What became of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    Done,
    /// The store answered, with an error or something that is no answer.
    Refused,
    /// It may have been done or not.
    NoAnswer,
    NoConnection,
}

impl Shared {
    /// Sends a command when there is a connection.
    pub(crate) async fn execute(&self, command: &Cmd) -> CommandOutcome {
        let mut connections = self.connection.subscribe();
        let connected = connections.wait_for(Option::is_some);
        // The guard of the watched value must not be held any longer: whoever changes it waits for that, on this thread.
        let connection = match tokio::time::timeout(WRITE_TIMEOUT, connected).await {
            Ok(Ok(connection)) => connection.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        match connection {
            Some(connection) => self.execute_on(connection, command).await,
            None => CommandOutcome::NoConnection,
        }
    }

    async fn execute_on(&self, mut connection: Connection, command: &Cmd) -> CommandOutcome {
        let answer = connection.link.ask(command, WRITE_TIMEOUT).await;
        self.record_outcome(&connection, &answer);
        match answer {
            Ok(Answer::Done) => CommandOutcome::Done,
            Err(Fault::Timeout | Fault::Lost(_)) => CommandOutcome::NoAnswer,
            Ok(_) | Err(_) => CommandOutcome::Refused,
        }
    }

    /// Sends the deletions that wait, in order; stops at the first that has no answer.
    pub(crate) async fn run_deletions(&self, connection: &Connection) {
        while let Some(name) = self.deletions.first() {
            match self.execute_on(connection.clone(), &deletion(&name)).await {
                CommandOutcome::Done => self.counters.count(StoreCount::Deleted),
                CommandOutcome::Refused => self.counters.count(StoreCount::DeletesLost),
                CommandOutcome::NoAnswer | CommandOutcome::NoConnection => return,
            }
            self.deletions.complete(&name);
        }
    }

    /// Counts the time without the store.
    pub(crate) fn count_open_time(&self) {
        let open = self.breaker.borrow_mut().take_open_time(Instant::now());
        self.counters.open_for(open);
    }

    /// Counts what became of a question or command, and draws the consequences.
    pub(crate) fn record_outcome(&self, connection: &Connection, answer: &Result<Answer, Fault>) {
        match answer {
            Ok(_) => self.breaker.borrow_mut().succeeded(),
            Err(fault) => {
                let opened = self.record_fault(fault);
                if opened || connection.link.is_broken_by(fault) {
                    self.give_up(connection);
                }
            }
        }
    }

    /// No longer uses `connection`, if that is still what is used, and has another one made.
    fn give_up(&self, connection: &Connection) {
        self.connection.send_if_modified(|used| {
            let same = used.as_ref().is_some_and(|used| Arc::ptr_eq(&used.broken, &connection.broken));
            same.then(|| used.take()).is_some()
        });
        connection.broken.notify_one();
    }

    /// Counts a fault; true when it opened the breaker.
    pub(crate) fn record_fault(&self, fault: &Fault) -> bool {
        let url = self.endpoint.url();
        match fault {
            Fault::Timeout => self.counters.count(StoreCount::Timeouts),
            Fault::Lost(_) => self.counters.count(StoreCount::ConnectionsLost),
            Fault::Protocol(_) => self.counters.count(StoreCount::ProtocolErrors),
            Fault::Refused(_) => self.counters.refused(url, fault),
        }
        if !fault.is_failure() {
            self.breaker.borrow_mut().succeeded();
            return false;
        }
        self.record_failure(fault)
    }

    /// Records a failure of the store; true when it opened the breaker, which is logged.
    pub(crate) fn record_failure(&self, fault: &Fault) -> bool {
        let opened = self.breaker.borrow_mut().failed(Instant::now());
        if opened {
            self.connection.send_replace(None);
            self.counters.opened(self.endpoint.url(), fault);
        }
        opened
    }
}

pub(crate) fn deletion(name: &[u8; 32]) -> Cmd {
    let mut command = redis::cmd("DEL");
    command.arg(key(name));
    command
}

/// `courser:` and the name in hexadecimal: what an operator sees, and may grant (`~courser:*`).
pub(crate) fn key(name: &[u8; 32]) -> String {
    let mut key = String::with_capacity(8 + 64);
    key.push_str("courser:");
    for byte in name {
        let _ = write!(key, "{byte:02x}");
    }
    key
}
