//! Clients that come back all the time, to one host after the other: no handshake of theirs may fail, whatever happens
//! to the hosts.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use courser_testkit::client::{Client, Connection, Resume, Version};
use courser_testkit::{KeyType, PATIENCE};

/// Visits in a row that have to be resumed before a fleet counts as well again.
const WELL: u64 = 20;

/// The clients, as long as it lives: one of each kind.
pub(super) struct Traffic {
    seen: Arc<Seen>,
    visitors: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    /// Where clients may go. Held while one visits: who takes a host out of it knows that nobody is there.
    hosts: RwLock<Vec<SocketAddr>>,
    over: AtomicBool,
    failures: Mutex<Vec<String>>,
    /// For each visitor, how many visits in a row were resumed.
    in_a_row: [AtomicU64; 3],
    visits: AtomicU64,
}

const KINDS: [(Version, Resume); 3] =
    [(Version::Tls12, Resume::SessionId), (Version::Tls12, Resume::Ticket), (Version::Tls13, Resume::Ticket)];

impl Traffic {
    pub(super) fn start(hosts: &[SocketAddr]) -> Self {
        let seen = Arc::new(Seen { hosts: RwLock::new(hosts.to_vec()), ..Seen::default() });
        let visit = |kind: usize| {
            let seen = Arc::clone(&seen);
            thread::spawn(move || seen.visit(kind))
        };
        Self { visitors: (0..KINDS.len()).map(visit).collect(), seen }
    }

    /// Sends nobody to this host any more, and returns when nobody is there.
    pub(super) fn leave(&self, host: SocketAddr) {
        self.seen.hosts.write().unwrap().retain(|one| *one != host);
    }

    /// Sends clients to this host too.
    pub(super) fn join(&self, host: SocketAddr) {
        self.seen.hosts.write().unwrap().push(host);
    }

    /// Waits until every client was resumed on so many hosts in a row, and says how long that took.
    #[track_caller]
    pub(super) fn is_well(&self) {
        let begun = Instant::now();
        self.seen.in_a_row.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        while self.seen.in_a_row.iter().any(|count| count.load(Ordering::Relaxed) < WELL) {
            self.no_failure();
            let rows = self.seen.in_a_row.each_ref().map(|count| count.load(Ordering::Relaxed));
            assert!(begun.elapsed() < PATIENCE, "not resumed again: in a row {rows:?}");
            thread::yield_now();
        }
        self.no_failure();
    }

    #[track_caller]
    fn no_failure(&self) {
        let failures = self.seen.failures.lock().unwrap();
        assert!(failures.is_empty(), "{failures:?} of {}", self.seen.visits.load(Ordering::Relaxed));
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.seen.over.store(true, Ordering::Relaxed);
        self.visitors.drain(..).for_each(|visitor| visitor.join().unwrap());
    }
}

impl Seen {
    fn visit(&self, kind: usize) {
        let (version, resume) = KINDS[kind];
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let client = Client::new(nowhere, version, KeyType::EcdsaP256, resume);
        for turn in 0.. {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let hosts = self.hosts.read().unwrap();
            let host = hosts[turn % hosts.len()];
            self.visits.fetch_add(1, Ordering::Relaxed);
            match visit(&client, host) {
                Ok(true) => drop(self.in_a_row[kind].fetch_add(1, Ordering::Relaxed)),
                Ok(false) => self.in_a_row[kind].store(0, Ordering::Relaxed),
                Err(error) => {
                    let told = format!("visitor {kind} at {host}: {error}");
                    self.failures.lock().unwrap().push(told);
                }
            }
        }
    }
}

/// One visit; whether its session was resumed.
fn visit(client: &Client, host: SocketAddr) -> std::io::Result<bool> {
    let mut connection = Connection::complete(client.session(), TcpStream::connect(host)?)?;
    connection.get(10, true)?;
    Ok(connection.is_resumed())
}
