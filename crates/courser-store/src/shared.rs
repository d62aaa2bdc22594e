//! What a worker's store has in common with the tasks that work for it: the connection, the breaker, the counts.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Cmd;
use tokio::sync::{Notify, watch};

use crate::answer::{Answer, Fault};
use crate::breaker::Breaker;
use crate::counters::Count;
use crate::deletions::Deletions;
use crate::link::{Link, WRITE_TIMEOUT};
use crate::{StoreCounters, StoreEndpoint};

/// What the store has in common with the tasks that work for it.
pub(crate) struct Shared {
    pub(crate) target: Arc<StoreEndpoint>,
    pub(crate) timeout: Duration,
    pub(crate) counters: Arc<StoreCounters>,
    pub(crate) breaker: RefCell<Breaker>,
    /// There only while the store may be used.
    pub(crate) connection: watch::Sender<Option<Connection>>,
    pub(crate) deletions: Deletions,
    pub(crate) waiting: Cell<usize>,
    pub(crate) waiting_bytes: Cell<usize>,
}

/// A connection, and how its users tell that it is no longer of use.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) broken: Arc<Notify>,
}

/// What became of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carried {
    Done,
    /// The store answered, with an error or something that is no answer.
    Refused,
    /// It may have been done or not.
    NoAnswer,
    NoConnection,
}

impl Shared {
    /// Sends a command when there is a connection.
    pub(crate) async fn carry(&self, command: &Cmd) -> Carried {
        let mut connections = self.connection.subscribe();
        let connected = connections.wait_for(Option::is_some);
        // The guard of the watched value must not be held any longer: whoever changes it waits for that, on this thread.
        let connection = match tokio::time::timeout(WRITE_TIMEOUT, connected).await {
            Ok(Ok(connection)) => connection.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        match connection {
            Some(connection) => self.carry_by(connection, command).await,
            None => Carried::NoConnection,
        }
    }

    async fn carry_by(&self, mut connection: Connection, command: &Cmd) -> Carried {
        let answer = connection.link.ask(command, WRITE_TIMEOUT).await;
        self.note(&connection, &answer);
        match answer {
            Ok(Answer::Done) => Carried::Done,
            Err(Fault::Timeout | Fault::Lost(_)) => Carried::NoAnswer,
            Ok(_) | Err(_) => Carried::Refused,
        }
    }

    /// Does the deletions that were kept, in order; stops at the first that has no answer.
    pub(crate) async fn catch_up(&self, connection: &Connection) {
        while let Some(name) = self.deletions.first() {
            match self.carry_by(connection.clone(), &deletion(&name)).await {
                Carried::Done => self.counters.count(Count::Deleted),
                Carried::Refused => self.counters.count(Count::DeletesLost),
                Carried::NoAnswer | Carried::NoConnection => return,
            }
            self.deletions.done(&name);
        }
    }

    /// Counts the time without the store.
    pub(crate) fn account(&self) {
        let open = self.breaker.borrow_mut().open_since_asked(Instant::now());
        self.counters.open_for(open);
    }

    /// Counts what became of a question or command, and draws the consequences.
    pub(crate) fn note(&self, connection: &Connection, answer: &Result<Answer, Fault>) {
        match answer {
            Ok(_) => self.breaker.borrow_mut().succeeded(),
            Err(fault) => {
                let opened = self.failed(fault);
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

    /// Counts a fault; true when the store is left alone from now on.
    pub(crate) fn failed(&self, fault: &Fault) -> bool {
        let url = self.target.url();
        match fault {
            Fault::Timeout => self.counters.count(Count::Timeouts),
            Fault::Lost(_) => self.counters.count(Count::ConnectionsLost),
            Fault::Garbage(_) => self.counters.count(Count::ProtocolErrors),
            Fault::Refused(_) => self.counters.refused(url, fault),
        }
        if !fault.is_failure() {
            self.breaker.borrow_mut().succeeded();
            return false;
        }
        self.broke(fault)
    }

    /// The store has failed; true when it is left alone from now on, which is told.
    pub(crate) fn broke(&self, fault: &Fault) -> bool {
        let opened = self.breaker.borrow_mut().failed(Instant::now());
        if opened {
            self.connection.send_replace(None);
            self.counters.opened(self.target.url(), fault);
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
