//! Backends and the addresses behind their names.
//!
//! Names are looked up by the system's resolver, so that /etc/hosts, search domains and container networks work as
//! everywhere else on the machine. It does not say how long an answer holds, so every answer expires after
//! [`REFRESH`]. Each name has a thread of its own, as a look-up that hangs can neither be ended nor waited for; a
//! connection reads the latest answer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use std::{fmt, io, thread};

use courser_net::{Address, Lookup, look_up};
use courser_telemetry::event::{Level, log};

use crate::supervision::Threads;

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
    Resolved(Arc<ResolvedName>),
}

impl Backend {
    /// A backend with a known address.
    pub fn fixed(address: Address) -> Self {
        Self { name: address.to_string(), addresses: Addresses::Fixed([address]) }
    }

    pub(crate) fn may_have_several_addresses(&self) -> bool {
        matches!(self.addresses, Addresses::Resolved(_))
    }

    /// The addresses to try. Empty while a name has none.
    ///
    /// A fixed address, the common case, costs nothing; a looked-up one a lock of its own for the length of a copy of
    /// one pointer.
    pub(crate) fn addresses(&self) -> Candidates<'_> {
        match &self.addresses {
            Addresses::Fixed(address) => Candidates::Fixed(address),
            Addresses::Resolved(answer) => Candidates::Resolved(Arc::clone(&answer.latest())),
        }
    }
}

/// Addresses to try.
pub(crate) enum Candidates<'a> {
    Fixed(&'a [Address; 1]),
    Resolved(Arc<[Address]>),
}

impl Candidates<'_> {
    /// All of them, for the connection before which there were so many. Those of the resolver's preferred family take
    /// turns at being first; those of the other one are for when these fail, since they are mostly other ways to the
    /// same machines, and often no way at all (RFC 6724 sorts by that).
    pub(crate) fn rotated(&self, before: usize) -> impl Iterator<Item = &Address> {
        let all: &[Address] = match self {
            Self::Fixed(address) => *address,
            Self::Resolved(addresses) => addresses,
        };
        let is_v6 = |address: &Address| matches!(address, Address::Ip(SocketAddr::V6(_)));
        let preferred = all.iter().take_while(|address| is_v6(address) == is_v6(&all[0])).count();
        let turns = (0..preferred).map(move |step| (before + step) % preferred);
        turns.chain(preferred..all.len()).map(|index| &all[index])
    }
}

/// Makes backends out of names, and starts looking them up.
pub struct Resolver {
    names: HashMap<(String, u16), Arc<ResolvedName>>,
    /// Each look-up holds a copy until it has its first answer.
    looking: Sender<()>,
    first_answers: Receiver<()>,
}

impl Default for Resolver {
    fn default() -> Self {
        let (looking, first_answers) = channel();
        Self { names: HashMap::new(), looking, first_answers }
    }
}

impl Resolver {
    /// A backend by name. It is looked up from now on, for as long as something has the backend.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn backend(&mut self, host: &str, port: u16, threads: &Threads) -> io::Result<Backend> {
        let name = format!("{host}:{port}");
        if let Some(answer) = self.names.get(&(host.to_owned(), port)) {
            return Ok(Backend { name, addresses: Addresses::Resolved(Arc::clone(answer)) });
        }
        let latest = Mutex::new(Arc::new([]) as Arc<[Address]>);
        let answer = Arc::new(ResolvedName { host: host.to_owned(), port, latest });
        let (looked_up, looking) = (Arc::downgrade(&answer), self.looking.clone());
        threads.spawn(&thread_name(host), move || keep_fresh(&looked_up, looking))?;
        self.names.insert((host.to_owned(), port), Arc::clone(&answer));
        Ok(Backend { name, addresses: Addresses::Resolved(answer) })
    }

    /// Waits until every name has had its first answer, or `limit` is over, and warns about those without.
    pub fn wait_for_first_answers(self, limit: Duration) {
        let Self { names, looking, first_answers } = self;
        drop(looking);
        // Nothing is ever sent: the wait ends when the last sender is gone.
        if first_answers.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Disconnected) {
            return;
        }
        for answer in names.values().filter(|answer| answer.latest().is_empty()) {
            log(
                Level::Warning,
                format_args!("backend {}: no address yet; the resolver is slow", answer.host),
            );
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

/// What the kernel shows of a thread's name: 15 bytes.
fn thread_name(host: &str) -> String {
    format!("resolve-{host}").chars().take(15).collect()
}

/// Looks a name up every [`REFRESH`] while something uses it.
fn keep_fresh(name: &Weak<ResolvedName>, looking: Sender<()>) {
    let (mut looking, mut last) = (Some(looking), Outcome::Found);
    while let Some(answer) = name.upgrade() {
        last = answer.refresh(last);
        drop(answer);
        drop(looking.take());
        thread::sleep(REFRESH);
    }
}

/// The latest addresses of one name.
#[derive(Debug)]
struct ResolvedName {
    host: String,
    port: u16,
    latest: Mutex<Arc<[Address]>>,
}

/// What became of a look-up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Found,
    NoSuchName,
    Failed,
}

impl ResolvedName {
    fn latest(&self) -> std::sync::MutexGuard<'_, Arc<[Address]>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks the name up, and logs what has changed since `last`.
    fn refresh(&self, last: Outcome) -> Outcome {
        let host = &self.host;
        match look_up(host, self.port) {
            Lookup::Found(found) => {
                self.replace(found);
                if last != Outcome::Found {
                    log(Level::Info, format_args!("backend {host}: the name has addresses again"));
                }
                Outcome::Found
            }
            // Whoever gets an address next that was this name's is not who the plaintext is for.
            Lookup::NoSuchName => {
                let lost = self.replace(Vec::new());
                if lost > 0 || last != Outcome::NoSuchName {
                    log(
                        Level::Warning,
                        format_args!("backend {host}: no such name, or no address{}", gone(lost)),
                    );
                }
                Outcome::NoSuchName
            }
            // A resolver that is down must not take the service with it: what was known stays.
            Lookup::Failed(why) => {
                if last != Outcome::Failed {
                    log(Level::Warning, format_args!("backend {host}: cannot look the name up: {why}"));
                }
                Outcome::Failed
            }
        }
    }

    /// Returns how many addresses there were.
    fn replace(&self, found: Vec<SocketAddr>) -> usize {
        let found: Arc<[Address]> = found.into_iter().map(Address::Ip).collect();
        let mut latest = self.latest();
        let before = latest.len();
        if **latest != *found {
            *latest = found;
        }
        before
    }
}

fn gone(lost: usize) -> String {
    if lost == 0 { String::new() } else { format!("; it had {lost}, which get no more connections") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(addresses: &[&str], before: usize) -> Vec<String> {
        let parse = |address: &&str| Address::Ip(address.parse().expect("an address with a port"));
        let candidates = Candidates::Resolved(addresses.iter().map(parse).collect());
        candidates.rotated(before).map(ToString::to_string).collect()
    }

    #[test]
    fn addresses_of_the_preferred_family_take_turns_and_all_are_tried() {
        let all = ["192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1", "[2001:db8::2]:1"];
        assert_eq!(order(&all, 0), all);
        assert_eq!(order(&all, 1), [all[1], all[0], all[2], all[3]]);
        assert_eq!(order(&all, 6), all);
        assert_eq!(order(&[], 3), [""; 0]);
    }

    #[test]
    fn a_name_is_looked_up_once_however_many_use_it() {
        let mut resolver = Resolver::default();
        let threads = Threads::new(|panicked| panic!("{panicked:?}"));
        let backends =
            [(); 3].map(|()| resolver.backend("localhost", 80, &threads).expect("a thread can be made"));
        assert_eq!(resolver.names.len(), 1);
        resolver.wait_for_first_answers(Duration::from_secs(60));
        for backend in backends {
            assert!(backend.addresses().rotated(0).next().is_some());
        }
    }

    #[test]
    fn threads_have_names_that_the_kernel_shows_whole() {
        assert_eq!(thread_name("app.internal"), "resolve-app.int");
        assert_eq!(thread_name("db"), "resolve-db");
    }
}
