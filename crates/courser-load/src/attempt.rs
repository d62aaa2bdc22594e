//! One connection as it is accounted for, and its client.

use std::cell::Cell;
use std::time::Duration;

use courser_tls_client::{ClientSessions, ServerName};

use crate::failure::Step;
use crate::offered::Session;

/// A client: what it keeps from connection to connection.
pub(crate) struct Client {
    pub(crate) name: Option<ServerName>,
    pub(crate) sessions: ClientSessions,
    /// Which it is: with this address of several it begins.
    pub(crate) number: u64,
    /// Connections tried.
    pub(crate) used: u32,
    /// Whether its last connection succeeded: a server that gives sessions has given one then.
    pub(crate) was_served: bool,
}

/// A connection as it is accounted for. Times are from the start of the run.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// When it was meant to start.
    pub(crate) intended: Duration,
    /// Whether that was fixed in advance.
    pub(crate) scheduled: bool,
    /// When it started.
    pub(crate) started: Duration,
    /// Whether its client has been served by the connection before.
    pub(crate) returns: bool,
    /// Whether its segments are counted.
    pub(crate) sampled: bool,
    /// When the running transaction began.
    pub(crate) begun: Cell<Duration>,
    /// TLS bytes of its handshake, out and in.
    pub(crate) handshake_bytes: Cell<(u64, u64)>,
    /// Transactions that succeeded after it.
    pub(crate) transactions: Cell<u64>,
    step: Cell<Step>,
    /// Whether the first transaction is accounted for.
    pub(crate) answered: Cell<bool>,
    resumed: Cell<bool>,
}

/// Times of a handshake, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeTimes {
    pub(crate) server_hello: Duration,
    pub(crate) done: Duration,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) offered: Session,
}

/// Times of a transaction's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTimes {
    /// Whether it is the connection's first, whose time begins with the connect.
    pub(crate) first: bool,
    /// When it was asked for.
    pub(crate) asked: Duration,
    /// When the server was first heard after that.
    pub(crate) first_received: Option<Duration>,
    /// First byte of the answer.
    pub(crate) first_byte: Option<Duration>,
    /// Which server it is of, where its body says so.
    pub(crate) page: Option<u8>,
}

impl Attempt {
    pub(crate) fn new(started: Duration, sampled: bool, intended: Option<Duration>, returns: bool) -> Self {
        let begun = intended.unwrap_or(started);
        Self {
            intended: begun,
            begun: Cell::new(begun),
            scheduled: intended.is_some(),
            started,
            returns,
            sampled,
            handshake_bytes: Cell::default(),
            transactions: Cell::default(),
            step: Cell::default(),
            answered: Cell::default(),
            resumed: Cell::default(),
        }
    }

    pub(crate) fn at(&self, step: Step) -> Step {
        self.step.set(step);
        step
    }

    /// How far it has come.
    pub(crate) fn step(&self) -> Step {
        self.step.get()
    }

    pub(crate) fn set_resumed(&self, resumed: bool) {
        self.resumed.set(resumed);
    }

    /// Whether its handshake was a resumption.
    pub(crate) fn resumed(&self) -> bool {
        self.resumed.get()
    }
}
