//! Clients that come back all the time, to one host after the other: no handshake of theirs may fail, whatever happens
//! to the hosts.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::PATIENCE;
use courser_testkit::client::{Client, Connection};
use rustls::ClientConnection;

use crate::support::WAYS;

/// Clients of each way of resumption.
const EACH: usize = 3;

/// Visits in a row that each client has to be resumed at before a fleet counts as well again.
const WELL: u64 = 20;

/// The clients, as long as it lives.
pub(super) struct Traffic {
    seen: Arc<Seen>,
    visitors: Vec<JoinHandle<()>>,
}

/// How a host ends that clients go on coming to. None of them waits for the host: the next visit is elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HostExit {
    /// Its connections may break at any time.
    Killed,
    /// It may refuse newcomers, but serves whom it has let in.
    InOrder,
}

#[derive(Default)]
struct Seen {
    /// Where clients may go. Held while one visits: who changes it knows that nobody is on the way.
    hosts: RwLock<Vec<SocketAddr>>,
    ending: Mutex<HashMap<SocketAddr, HostExit>>,
    over: AtomicBool,
    failures: Mutex<Vec<String>>,
    /// For each client, how many visits in a row were resumed.
    in_a_row: [AtomicU64; EACH * WAYS.len()],
    counts: Counts,
    /// When something was done to a host.
    event: Mutex<Option<Instant>>,
    last_full: Mutex<Option<Instant>>,
}

/// What was counted since it was looked at.
#[derive(Default)]
struct Counts {
    visits: AtomicU64,
    full: AtomicU64,
    /// Visits to a host that ends: refused, reset or closed before it said a word, or broken off.
    refused: AtomicU64,
    unanswered: AtomicU64,
    broken: AtomicU64,
}

/// Why a visit came to nothing.
enum Failure {
    /// Nobody listens.
    Refused(io::Error),
    /// The host had not said a word: nobody need have accepted the connection, which the kernel makes by itself.
    Unanswered(io::Error),
    Broken(io::Error),
}

impl Traffic {
    pub(super) fn start(hosts: &[SocketAddr]) -> Self {
        let seen = Arc::new(Seen { hosts: RwLock::new(hosts.to_vec()), ..Seen::default() });
        let come = |client: usize| {
            let seen = Arc::clone(&seen);
            thread::spawn(move || seen.come_and_come_again(client))
        };
        seen.event();
        Self { visitors: (0..seen.in_a_row.len()).map(come).collect(), seen }
    }

    /// Sends nobody to this host any more, and returns when nobody is there.
    pub(super) fn leave(&self, host: SocketAddr) {
        self.seen.hosts.write().unwrap().retain(|one| *one != host);
        self.seen.event();
    }

    /// Sends clients to this host too.
    pub(super) fn join(&self, host: SocketAddr) {
        self.seen.hosts.write().unwrap().push(host);
        self.seen.event();
    }

    /// From now on this host may end in this way.
    pub(super) fn ends(&self, host: SocketAddr, ending: HostExit) {
        self.seen.ending.lock().unwrap().insert(host, ending);
        self.seen.event();
    }

    /// From now on this host serves everybody again.
    pub(super) fn serves(&self, host: SocketAddr) {
        let _nobody_is_on_the_way = self.seen.hosts.write().unwrap();
        self.seen.ending.lock().unwrap().remove(&host);
        self.seen.event();
    }

    /// Lets them come until something has happened, for longer than anything else may take.
    #[track_caller]
    pub(super) fn goes_on_until(&self, happened: impl Fn() -> bool) {
        let begun = Instant::now();
        while !happened() {
            self.no_failure();
            assert!(begun.elapsed() < 3 * PATIENCE, "it never happened");
        }
    }

    /// Waits until every client was resumed on so many hosts in a row, and prints how long after the last event the last
    /// full handshake was. That is meant to be within a second; on a busy machine it is not judged. Returns the number
    /// of full handshakes since the last time.
    #[track_caller]
    pub(super) fn is_well(&self, since: &str) -> u64 {
        let begun = Instant::now();
        self.seen.in_a_row.iter().for_each(|count| count.store(0, Relaxed));
        while self.seen.in_a_row.iter().any(|count| count.load(Relaxed) < WELL) {
            self.no_failure();
            let rows = self.seen.in_a_row.each_ref().map(|count| count.load(Relaxed));
            assert!(begun.elapsed() < PATIENCE, "not resumed again since {since}: in a row {rows:?}");
            thread::yield_now();
        }
        self.no_failure();
        self.seen.report(since)
    }

    #[track_caller]
    fn no_failure(&self) {
        let failures = self.seen.failures.lock().unwrap();
        assert!(failures.is_empty(), "{failures:?} of {}", self.seen.counts.visits.load(Relaxed));
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.seen.over.store(true, Relaxed);
        self.visitors.drain(..).for_each(|visitor| visitor.join().unwrap());
    }
}

impl Seen {
    fn come_and_come_again(&self, number: usize) {
        let way = WAYS[number % WAYS.len()];
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let client = Client::new(nowhere, way.version, EcdsaP256, way.resume);
        for turn in number.. {
            if self.over.load(Relaxed) {
                return;
            }
            let hosts = self.hosts.read().unwrap();
            let host = hosts[turn % hosts.len()];
            self.counts.visits.fetch_add(1, Relaxed);
            match visit(&client, host) {
                Ok(true) => drop(self.in_a_row[number].fetch_add(1, Relaxed)),
                Ok(false) => {
                    self.in_a_row[number].store(0, Relaxed);
                    self.counts.full.fetch_add(1, Relaxed);
                    *self.last_full.lock().unwrap() = Some(Instant::now());
                }
                Err(failure) => self.judge(&format!("by {} at {host}", way.session), host, failure),
            }
        }
    }

    fn judge(&self, whose: &str, host: SocketAddr, failure: Failure) {
        let ending = self.ending.lock().unwrap().get(&host).copied();
        let (count, what, error) = match failure {
            Failure::Refused(error) => (&self.counts.refused, "refused", error),
            Failure::Unanswered(error) => (&self.counts.unanswered, "not answered", error),
            Failure::Broken(error) => (&self.counts.broken, "broken off", error),
        };
        let is_borne = match ending {
            None => false,
            Some(HostExit::Killed) => true,
            // The kernel may let one in between the last look at the queue and the end of the socket; not two.
            Some(HostExit::InOrder) => {
                what == "refused" || what == "not answered" && count.load(Relaxed) == 0
            }
        };
        count.fetch_add(1, Relaxed);
        if !is_borne {
            self.failures.lock().unwrap().push(format!("{whose} {what}: {error}"));
        }
    }

    fn event(&self) {
        *self.event.lock().unwrap() = Some(Instant::now());
    }

    fn report(&self, since: &str) -> u64 {
        let (event, last) = (*self.event.lock().unwrap(), *self.last_full.lock().unwrap());
        // No time at all if it was never gone.
        let after =
            last.zip(event).map_or(Duration::ZERO, |(last, event)| last.saturating_duration_since(event));
        let Counts { visits, full, refused, unanswered, broken } = &self.counts;
        let [visits, full, refused, unanswered, broken] =
            [visits, full, refused, unanswered, broken].map(|count| count.swap(0, Relaxed));
        println!(
            "{since}: resumption was back after {after:?} (wanted: within 1s; not judged here); of {visits} visits \
             {full} were full, {refused} refused, {unanswered} not answered, {broken} broken off"
        );
        full
    }
}

/// One visit; whether its session was resumed.
fn visit(client: &Client, host: SocketAddr) -> Result<bool, Failure> {
    let mut session = client.session();
    let socket = TcpStream::connect(host).map_err(Failure::Refused)?;
    let socket = answered(&mut session, socket).map_err(Failure::Unanswered)?;
    let served = Connection::complete(session, socket).and_then(|mut connection| {
        connection.get(10, true)?;
        Ok(connection.is_resumed())
    });
    served.map_err(Failure::Broken)
}

/// Sends the ClientHello and waits until there is an answer.
fn answered(session: &mut ClientConnection, mut socket: TcpStream) -> io::Result<TcpStream> {
    socket.set_read_timeout(Some(PATIENCE))?;
    session.write_tls(&mut socket)?;
    match socket.peek(&mut [0])? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(socket),
    }
}
