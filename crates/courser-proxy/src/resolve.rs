//! Backends and the addresses behind their names.
//!
//! Names are looked up by the system's resolver, so that /etc/hosts, search domains and container networks work as
//! everywhere else on the machine. It does not say how long an answer holds, so every answer expires after
//! [`REFRESH`]. Look-ups happen on a thread of their own; a connection reads the latest answer.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};

use courser_net::Address;
use courser_telemetry::event::say;

use crate::Threads;

/// How long an answer holds: the time to live that most services with changing addresses use at least.
const REFRESH: Duration = Duration::from_secs(10);

/// A server that gets the plaintext.
#[derive(Debug)]
pub struct Backend {
    /// As configured.
    pub name: String,
    addresses: Addresses,
}

#[derive(Debug)]
enum Addresses {
    Fixed([Address; 1]),
    Looked(Arc<Answer>),
}

/// The latest addresses of one name.
#[derive(Debug)]
struct Answer {
    host: String,
    port: u16,
    latest: Mutex<Arc<[Address]>>,
}

impl Backend {
    /// A backend with a known address.
    pub fn fixed(address: Address) -> Self {
        Self { name: address.to_string(), addresses: Addresses::Fixed([address]) }
    }

    /// Calls `with` with the addresses to try, in order. Empty while a name has no address.
    ///
    /// A fixed address, the common case, costs nothing; a looked-up one a lock of its own for the length of a copy of
    /// one pointer.
    pub(crate) fn addresses(&self) -> Candidates<'_> {
        match &self.addresses {
            Addresses::Fixed(address) => Candidates::Fixed(address),
            Addresses::Looked(answer) => {
                Candidates::Looked(Arc::clone(&answer.latest.lock().unwrap_or_else(PoisonError::into_inner)))
            }
        }
    }
}

/// Addresses to try.
pub(crate) enum Candidates<'a> {
    Fixed(&'a [Address; 1]),
    Looked(Arc<[Address]>),
}

impl std::ops::Deref for Candidates<'_> {
    type Target = [Address];

    fn deref(&self) -> &[Address] {
        match self {
            Self::Fixed(address) => *address,
            Self::Looked(addresses) => addresses,
        }
    }
}

/// The thread that looks names up again.
#[derive(Default)]
pub struct Resolver {
    answers: Arc<Mutex<Vec<Weak<Answer>>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    /// A backend by name. Looks it up once now; a name without an address is warned about and tried again.
    pub fn backend(&mut self, host: &str, port: u16) -> Backend {
        let answer = Arc::new(Answer { host: host.into(), port, latest: Mutex::new(Arc::new([])) });
        answer.refresh();
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&answer));
        Backend { name: format!("{host}:{port}"), addresses: Addresses::Looked(answer) }
    }

    /// Starts looking names up again, if there are any.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(&mut self, threads: &Threads) -> io::Result<()> {
        if self.thread.is_some() || self.answers.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return Ok(());
        }
        let (answers, stop) = (Arc::clone(&self.answers), Arc::clone(&self.stop));
        self.thread = Some(threads.spawn("resolver", move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(REFRESH);
                for answer in live(&answers) {
                    answer.refresh();
                }
            }
        })?);
        Ok(())
    }
}

fn live(answers: &Mutex<Vec<Weak<Answer>>>) -> Vec<Arc<Answer>> {
    let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    answers.retain(|answer| answer.strong_count() > 0);
    answers.iter().filter_map(Weak::upgrade).collect()
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Not joined: a look-up that hangs must not hold up the end of the process.
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

impl Answer {
    /// Looks the name up. A failed look-up keeps what was known: a resolver that is down must not take the service
    /// with it.
    fn refresh(&self) {
        match (self.host.as_str(), self.port).to_socket_addrs() {
            Ok(found) => self.replace(found.collect()),
            Err(error) => {
                say("warning", format_args!("backend {}: cannot look the name up: {error}", self.host));
            }
        }
    }

    fn replace(&self, found: Vec<SocketAddr>) {
        let found: Arc<[Address]> = found.into_iter().map(Address::Ip).collect();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if **latest != *found {
            *latest = found;
        }
    }
}
