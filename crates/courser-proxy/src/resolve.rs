//! The addresses behind the names of servers.
//!
//! Names are looked up by the system's resolver, so that /etc/hosts, search domains and container networks work as
//! everywhere else on the machine. It does not say how long an answer holds, so every answer expires after
//! [`REFRESH`]. Each name has a thread of its own, as a look-up that hangs can neither be ended nor waited for; a
//! connection reads the latest answer.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use courser_net::{Address, Lookup, look_up};
use courser_telemetry::event::{Level, log};

use crate::supervision::Threads;

/// How long an answer holds: the time to live that most services with changing addresses use at least.
const REFRESH: Duration = Duration::from_secs(10);

/// Looks names up, each once for all pools and generations of settings.
#[derive(Debug, Default)]
pub struct Resolver {
    names: Mutex<HashMap<(String, u16), Name>>,
    lookups: Arc<Lookups>,
}

#[derive(Debug, Default)]
struct Name {
    answer: Weak<ResolvedName>,
    has_thread: bool,
}

/// The threads that look names up.
#[derive(Debug, Default)]
struct Lookups {
    state: Mutex<LookupState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LookupState {
    threads: usize,
    /// Threads that have not had their first answer.
    first_lookups: usize,
    is_stopped: bool,
}

impl Resolver {
    /// A name, which has no address before [`Resolver::start`].
    pub(crate) fn name(&self, host: &str, port: u16) -> Arc<ResolvedName> {
        let mut names = lock(&self.names);
        let name = names.entry((host.to_owned(), port)).or_default();
        name.answer.upgrade().unwrap_or_else(|| {
            let latest = Mutex::new(Arc::new([]) as Arc<[Address]>);
            let (host, subscribers) = (host.to_owned(), Mutex::default());
            let answer = Arc::new(ResolvedName { host, port, latest, subscribers });
            *name = Name { answer: Arc::downgrade(&answer), has_thread: false };
            answer
        })
    }

    /// Starts a thread for each name that has none. It ends when no pool has the name any more.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(&self, threads: &Threads) -> io::Result<()> {
        let mut names = lock(&self.names);
        names.retain(|_, name| name.answer.strong_count() > 0);
        for ((host, _), name) in names.iter_mut().filter(|(_, name)| !name.has_thread) {
            let (answer, lookup) = (Weak::clone(&name.answer), LookupThread::new(&self.lookups));
            threads.spawn(&thread_name(host), move || keep_fresh(&answer, lookup))?;
            name.has_thread = true;
        }
        Ok(())
    }

    /// Waits until every name has had its first answer, or `limit` is over, and warns about those without.
    pub fn wait_for_first_answers(&self, limit: Duration) {
        if self.lookups.wait(limit, |state| state.first_lookups == 0) {
            return;
        }
        let answers: Vec<_> = lock(&self.names).values().filter_map(|name| name.answer.upgrade()).collect();
        for answer in answers.iter().filter(|answer| answer.latest().is_empty()) {
            log(
                Level::Warning,
                format_args!("backend {}: no address yet; the resolver is slow", answer.host),
            );
        }
    }

    /// Ends the threads. Returns whether all have ended within `limit`: one in the middle of a look-up cannot be ended.
    pub fn stop(&self, limit: Duration) -> bool {
        lock(&self.lookups.state).is_stopped = true;
        self.lookups.changed.notify_all();
        self.lookups.wait(limit, |state| state.threads == 0)
    }
}

impl Lookups {
    /// Waits until `is_reached`, and returns whether it is within `limit`.
    fn wait(&self, limit: Duration, is_reached: impl Fn(&LookupState) -> bool) -> bool {
        let wait = self.changed.wait_timeout_while(lock(&self.state), limit, |state| !is_reached(state));
        !wait.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// One of the threads, counted until it is dropped.
struct LookupThread {
    lookups: Arc<Lookups>,
    has_answer: bool,
}

impl LookupThread {
    fn new(lookups: &Arc<Lookups>) -> Self {
        let mut state = lock(&lookups.state);
        state.threads += 1;
        state.first_lookups += 1;
        Self { lookups: Arc::clone(lookups), has_answer: false }
    }

    fn answered(&mut self) {
        if !std::mem::replace(&mut self.has_answer, true) {
            lock(&self.lookups.state).first_lookups -= 1;
            self.lookups.changed.notify_all();
        }
    }

    /// Returns false when the threads are to end.
    fn rest(&self) -> bool {
        !self.lookups.wait(REFRESH, |state| state.is_stopped)
    }
}

impl Drop for LookupThread {
    fn drop(&mut self) {
        self.answered();
        lock(&self.lookups.state).threads -= 1;
        self.lookups.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the kernel shows of a thread's name: 15 bytes.
fn thread_name(host: &str) -> String {
    format!("resolve-{host}").chars().take(15).collect()
}

/// Looks a name up again and again while a backend has it.
fn keep_fresh(name: &Weak<ResolvedName>, mut lookup: LookupThread) {
    let mut last = Outcome::Found;
    while let Some(answer) = name.upgrade() {
        last = answer.refresh(last);
        drop(answer);
        lookup.answered();
        if !lookup.rest() {
            return;
        }
    }
}

/// Who has to know when a name has other addresses.
pub(crate) trait Subscriber: fmt::Debug + Send + Sync {
    /// The name's [`ResolvedName::latest`] are others now.
    fn addresses_changed(&self);
}

#[derive(Debug)]
pub(crate) struct ResolvedName {
    host: String,
    port: u16,
    latest: Mutex<Arc<[Address]>>,
    /// Those that are told when they change.
    subscribers: Mutex<Vec<Weak<dyn Subscriber>>>,
}

impl fmt::Display for ResolvedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Found,
    NoSuchName,
    Failed,
}

impl ResolvedName {
    /// The name.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// What the last look-up has found, the resolver's preferred addresses first.
    pub(crate) fn latest(&self) -> Arc<[Address]> {
        Arc::clone(&lock(&self.latest))
    }

    /// Calls the subscriber now, and after every change.
    pub(crate) fn subscribe(&self, subscriber: Weak<dyn Subscriber>) {
        let alive = subscriber.upgrade();
        lock(&self.subscribers).push(subscriber);
        if let Some(subscriber) = alive {
            subscriber.addresses_changed();
        }
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
        let before = std::mem::replace(&mut *lock(&self.latest), Arc::clone(&found));
        if before != found {
            // Without the lock: subscribers look at the answer.
            let mut subscribers = std::mem::take(&mut *lock(&self.subscribers));
            subscribers.retain(|one| one.upgrade().inspect(|one| one.addresses_changed()).is_some());
            lock(&self.subscribers).append(&mut subscribers);
        }
        before.len()
    }
}

fn gone(lost: usize) -> String {
    if lost == 0 { String::new() } else { format!("; it had {lost}, which get no more connections") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_once_however_many_use_it() {
        let resolver = Resolver::default();
        let threads = Threads::new(|panicked| panic!("{panicked:?}"));
        let names = [(); 3].map(|()| resolver.name("localhost", 80));
        resolver.start(&threads).expect("a thread can be made");
        assert_eq!(lock(&resolver.lookups.state).threads, 1);
        resolver.wait_for_first_answers(Duration::from_secs(60));
        assert!(names.iter().all(|name| !name.latest().is_empty()));
        assert!(resolver.stop(Duration::from_secs(1)), "a thread that rests ends at once");
    }

    #[test]
    fn threads_have_names_that_the_kernel_shows_whole() {
        assert_eq!(thread_name("app.internal"), "resolve-app.int");
        assert_eq!(thread_name("db"), "resolve-db");
    }
}
