//! The origin: the backend behind what is loaded, made so that it is never the bottleneck.
//!
//! HTTP/1.1 with keep-alive and pipelining, or raw bytes, sent back. A PROXY header is understood and told back, in the
//! field `X-Proxied-For` of every answer, so that a test can see what a terminator said of its client. The query says
//! what to answer:
//!
//! | part | answer |
//! |---|---|
//! | `s=20k` | an object of that many bytes ([`body`](crate::http::body)); `k`, `m` and `g` are KiB, MiB and GiB; 1 KiB without |
//! | `d=5ms` | only after this time; `us`, `ms` or `s`, rounded up to whole milliseconds |
//! | `status=503` | with this status, 200 to 599, and no body unless `s` asks for one |
//! | `chunked` | in chunks instead of with a length |
//! | `peer` | what is known of the caller, from the PROXY header if there was one, as JSON |
//! | `proxy` | the PROXY header as it was received |
//! | `echo` | the request's own body, 16 MiB at most |
//! | `page` | an object that begins with the number of the address that was asked: each of several has a page of its own |
//! | `hash` | the length and the SHA-256 of the request's body, as JSON |
//!
//! The path, and parts that are not in the table, mean nothing.
//!
//! As many threads as asked for, each with its own runtime and its own listening sockets; nothing is shared but counters.
//! It keeps no log, has no time limits and trusts its peers not to hold connections for ever: it is no web server.

mod wish;

mod request;
mod state;

mod answer;

mod accept_proxy;

mod connection;

mod in_loop;
mod worker;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

pub use courser_net::Address;
use courser_net::{ListenSocket, limits};
use tokio::sync::watch;

pub use in_loop::OriginSockets;

use worker::Worker;

/// How to run an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Threads, at least one.
    pub threads: usize,
    /// The CPU of each thread; threads beyond the list are not pinned.
    pub pin: Vec<usize>,
    /// What is done with a PROXY header.
    pub proxy: Proxy,
    /// What is done with what comes after it.
    pub mode: Mode,
    /// Connections that wait to be accepted, per thread and address; the kernel caps it at `net.core.somaxconn`.
    pub backlog: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { threads: 1, pin: Vec::new(), proxy: Proxy::Accepted, mode: Mode::Http, backlog: 4096 }
    }
}

/// Whether connections begin with a PROXY header, version 1 or 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// Each has to; others are closed.
    Required,
    /// Each may: whoever sends one is believed. In [`Mode::Echo`] a peer whose first bytes could become a header waits
    /// until they are decided.
    Accepted,
    /// None does: its bytes are taken for the request.
    Off,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// HTTP/1.1.
    Http,
    /// Nothing: every byte is sent back, and so is the end.
    Echo,
}

/// A running origin; dropping it closes its sockets and every connection.
#[derive(Debug)]
pub struct OriginServer {
    addresses: Vec<Address>,
    threads: Vec<i32>,
    counters: Vec<Arc<Counters>>,
    stop: watch::Sender<bool>,
    running: Vec<JoinHandle<io::Result<()>>>,
}

/// What an origin has done since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: u64,
    /// Requests answered, whatever the status.
    pub answered: u64,
    /// Connections closed because of what they sent: no PROXY header where one is required, or no HTTP.
    pub refused: u64,
}

impl OriginServer {
    /// Listens on all `addresses` and serves them; port 0 takes a free port. It accepts connections when this returns.
    ///
    /// # Errors
    /// [`OriginError`].
    pub fn bind(addresses: &[Address], settings: &Settings) -> Result<Self, OriginError> {
        // A connection is a descriptor; where they cannot be raised, `accept` will wait.
        limits::raise_descriptors();
        let count = settings.threads.max(1);
        let mut sockets: Vec<Vec<ListenSocket>> = (0..count).map(|_| Vec::new()).collect();
        let mut bound = Vec::new();
        for address in addresses {
            let listen = |error| OriginError::Listen { address: address.clone(), error };
            let opened = ListenSocket::open(address, true, settings.backlog, count).map_err(listen)?;
            bound.extend(opened.first().map(|socket| socket.address().clone()));
            sockets.iter_mut().zip(opened).for_each(|(own, socket)| own.push(socket));
        }
        let mut origin = Self {
            addresses: bound,
            threads: Vec::new(),
            counters: Vec::new(),
            stop: watch::Sender::new(false),
            running: Vec::new(),
        };
        for own in sockets {
            origin.start(own, settings)?;
        }
        Ok(origin)
    }

    /// Where it listens, with the real ports, in the order they were given.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The kernel's number of each thread: its share of a processor is in `/proc/self/task/N`.
    #[must_use]
    pub fn threads(&self) -> &[i32] {
        &self.threads
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let sum = |of: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|counters| of(counters).load(Ordering::Relaxed)).sum()
        };
        Counts {
            accepted: sum(|counters| &counters.accepted),
            answered: sum(|counters| &counters.answered),
            refused: sum(|counters| &counters.refused),
        }
    }

    /// Stops it and waits for its threads.
    ///
    /// # Errors
    /// The first failure of a thread that ended by itself.
    pub fn stop(mut self) -> Result<(), OriginError> {
        self.end()
    }

    fn start(&mut self, sockets: Vec<ListenSocket>, settings: &Settings) -> Result<(), OriginError> {
        let index = self.running.len();
        let counters = Arc::new(Counters::default());
        let worker = Worker {
            sockets,
            cpu: settings.pin.get(index).copied(),
            proxy: settings.proxy,
            mode: settings.mode,
            counters: Arc::clone(&counters),
            stop: self.stop.subscribe(),
        };
        let (ready, started) = mpsc::channel();
        let builder = thread::Builder::new().name(format!("origin-{index}"));
        let thread = builder.spawn(move || worker.run(&ready)).map_err(OriginError::Thread)?;
        self.counters.push(counters);
        self.running.push(thread);
        match started.recv() {
            Ok(id) => {
                self.threads.push(id);
                Ok(())
            }
            // It has ended without a word: its result says why.
            Err(_) => self.end(),
        }
    }

    fn end(&mut self) -> Result<(), OriginError> {
        self.stop.send_replace(true);
        let ended = self.running.drain(..).map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("it panicked")))
                .map_err(OriginError::Thread)
        });
        // All are waited for, whichever failed.
        ended.collect::<Vec<_>>().into_iter().collect()
    }
}

impl Drop for OriginServer {
    fn drop(&mut self) {
        // Whoever wants to know calls `stop`.
        let _ = self.end();
    }
}

/// Counters of one thread, written by it alone.
#[derive(Debug, Default)]
struct Counters {
    accepted: AtomicU64,
    answered: AtomicU64,
    refused: AtomicU64,
}

/// Why an origin does not run.
#[derive(Debug)]
pub enum OriginError {
    /// It cannot listen there.
    Listen {
        /// Where.
        address: Address,
        /// Why not.
        error: io::Error,
    },
    /// A thread cannot be started, or not be kept on its CPU, or has failed.
    Thread(io::Error),
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, error } => write!(f, "the origin cannot listen on {address}: {error}"),
            Self::Thread(error) => write!(f, "a thread of the origin has failed: {error}"),
        }
    }
}

impl std::error::Error for OriginError {}
