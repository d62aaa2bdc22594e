//! The addresses behind the names of servers.
//!
//! Names are looked up by the system's resolver, so that /etc/hosts, search domains and container networks work as
//! everywhere else on the machine. It does not say how long an answer holds, so every answer expires after
//! [`REFRESH`]. SRV records say it. Each name has a thread of its own, as a look-up that hangs can neither be ended nor waited for; a
//! connection reads the latest answer.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use courser_dns::{ServiceLookup, ServiceRecord, look_up_service};
use courser_net::{Address, Lookup, look_up};
use courser_telemetry::event::{Level, log};

use crate::supervision::Threads;

/// How long an answer holds: the time to live that most services with changing addresses use at least.
const REFRESH: Duration = Duration::from_secs(10);

/// The least time between two look-ups. It is the time, too, to the second answer without an address, after which it gets no
/// more connections: so a denial ends what was known within [`REFRESH`] and this.
const SOON: Duration = Duration::from_secs(5);

/// The most that an answer holds, whatever its time to live: a server that is taken out of a service is gone by then.
const LATE: Duration = Duration::from_secs(60);

/// Looks names up, each once for all pools and generations of settings.
#[derive(Debug, Default)]
pub struct Resolver {
    names: Mutex<HashMap<Lookable, Name>>,
    lookups: Arc<Lookups>,
    /// What another process had found, until there are names that ask for it.
    known: Mutex<HashMap<Lookable, Vec<Answer>>>,
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
    /// What is looked up; it has no address before [`Resolver::start`].
    pub(crate) fn name(&self, what: Lookable) -> Arc<ResolvedName> {
        let mut names = lock(&self.names);
        let name = names.entry(what.clone()).or_default();
        name.answer.upgrade().unwrap_or_else(|| {
            let answers = lock(&self.known).remove(&what).unwrap_or_default().into();
            let latest = Mutex::new(Latest { answers, missing: HashSet::new() });
            let answer = ResolvedName { what, latest, subscribers: Mutex::default() };
            let answer = Arc::new(answer);
            *name = Name { answer: Arc::downgrade(&answer), has_thread: false };
            answer
        })
    }

    /// What is known of every name.
    pub fn answers(&self) -> Vec<(Lookable, Vec<Answer>)> {
        let names: Vec<_> = lock(&self.names).values().filter_map(|name| name.answer.upgrade()).collect();
        names.iter().map(|name| (name.what.clone(), name.latest().to_vec())).collect()
    }

    /// Takes over what another process has found, before there are names: they need not wait for the first answer.
    pub fn take_over(&self, answers: impl IntoIterator<Item = (Lookable, Vec<Answer>)>) {
        lock(&self.known).extend(answers.into_iter().filter(|(_, answers)| !answers.is_empty()));
    }

    /// Starts a thread for each name that has none. It ends when no pool has the name any more.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(&self, threads: &Threads) -> io::Result<()> {
        let mut names = lock(&self.names);
        names.retain(|_, name| name.answer.strong_count() > 0);
        for (what, name) in names.iter_mut().filter(|(_, name)| !name.has_thread) {
            let (answer, mut lookup) = (Weak::clone(&name.answer), LookupThread::new(&self.lookups));
            if answer.upgrade().is_some_and(|answer| !answer.latest().is_empty()) {
                lookup.answered();
            }
            threads.spawn(&thread_name(what.name()), move || keep_fresh(&answer, lookup))?;
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
                format_args!("backend {}: no address yet; the resolver is slow", answer.what.name()),
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
    fn rest(&self, pause: Duration) -> bool {
        !self.lookups.wait(pause, |state| state.is_stopped)
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
        let (outcome, pause) = answer.refresh(last);
        last = outcome;
        drop(answer);
        lookup.answered();
        if !lookup.rest(pause) {
            return;
        }
    }
}

/// Who has to know when a name has other addresses.
pub(crate) trait Subscriber: fmt::Debug + Send + Sync {
    /// The name's [`ResolvedName::latest`] are others now.
    fn addresses_changed(&self);
}

/// What is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lookable {
    /// The addresses of a name.
    Name {
        /// Looked up by the system's resolver.
        host: String,
        /// The port at each address.
        port: u16,
    },
    /// The servers of a service: the name of its SRV records.
    Service(String),
}

#[derive(Debug)]
pub(crate) struct ResolvedName {
    what: Lookable,
    latest: Mutex<Latest>,
    /// Those that are told when they change.
    subscribers: Mutex<Vec<Weak<dyn Subscriber>>>,
}

/// A server that an answer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Where it is.
    pub address: Address,
    /// The name that it is at.
    pub host: Arc<str>,
    /// The port that was asked for, or that its record has.
    pub port: u16,
    /// Of its SRV record; 0 without one.
    pub priority: u16,
    /// Of its SRV record; `None` without one.
    pub weight: Option<NonZeroU32>,
}

#[derive(Debug, Default)]
struct Latest {
    answers: Arc<[Answer]>,
    /// Those of them that the last answer did not have.
    missing: HashSet<Address>,
}

impl fmt::Display for ResolvedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)
    }
}

impl fmt::Display for Lookable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Service(name) => write!(f, "srv:{name}"),
        }
    }
}

impl Lookable {
    /// For messages.
    fn name(&self) -> &str {
        match self {
            Self::Name { host, .. } => host,
            Self::Service(name) => name,
        }
    }

    /// Looks it up.
    fn look_up(&self) -> Found {
        match self {
            Self::Name { host, port } => match look_up(host, *port) {
                Lookup::Found(addresses) => Found::Answers(answers(host, &addresses, 0, None), REFRESH),
                Lookup::NoSuchName => Found::Denied,
                Lookup::Failed(why) => Found::Failed(why),
            },
            Self::Service(name) => match look_up_service(name) {
                ServiceLookup::Found(records, lifetime) => servers(&records, lifetime),
                ServiceLookup::Denied => Found::Denied,
                ServiceLookup::Failed(why) => Found::Failed(why),
            },
        }
    }
}

/// What a look-up has found.
enum Found {
    /// Servers, and how long they hold.
    Answers(Vec<Answer>, Duration),
    Denied,
    Failed(String),
}

/// The addresses behind the records of a service. Where one of its targets cannot be looked up, what is known of all stays.
fn servers(records: &[ServiceRecord], lifetime: Duration) -> Found {
    let mut found = Vec::new();
    for ServiceRecord { priority, weight, port, target } in records {
        match look_up(target, *port) {
            Lookup::Found(addresses) => {
                // Of those that have some weight, one without gets little; among themselves they are equals.
                let weight = NonZeroU32::new(u32::from(*weight)).unwrap_or(NonZeroU32::MIN);
                found.extend(answers(target, &addresses, *priority, Some(weight)));
            }
            Lookup::NoSuchName => {}
            Lookup::Failed(why) => return Found::Failed(format!("{target}: {why}")),
        }
    }
    let mut seen = HashSet::new();
    found.retain(|answer| seen.insert(answer.address.clone()));
    if found.is_empty() { Found::Denied } else { Found::Answers(found, lifetime.clamp(SOON, LATE)) }
}

fn answers(host: &str, addresses: &[SocketAddr], priority: u16, weight: Option<NonZeroU32>) -> Vec<Answer> {
    let host: Arc<str> = host.into();
    let answer = |address: &SocketAddr| {
        let (host, port) = (Arc::clone(&host), address.port());
        Answer { address: Address::Ip(*address), host, port, priority, weight }
    };
    addresses.iter().map(answer).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Found,
    NoSuchName,
    Failed,
}

impl ResolvedName {
    /// The name that a certificate has to have. Of a service it is the domain that is configured, not the target in its records:
    /// whoever forges those must not choose it (RFC 6125, section 1.7.2).
    pub(crate) fn own_name(&self) -> &str {
        match &self.what {
            Lookable::Name { host, .. } => host,
            Lookable::Service(name) => name.splitn(3, '.').nth(2).unwrap_or(name),
        }
    }

    /// What the last look-ups have found, the resolver's preferred addresses first.
    pub(crate) fn latest(&self) -> Arc<[Answer]> {
        Arc::clone(&lock(&self.latest).answers)
    }

    /// Calls the subscriber now, and after every change.
    pub(crate) fn subscribe(&self, subscriber: Weak<dyn Subscriber>) {
        let alive = subscriber.upgrade();
        lock(&self.subscribers).push(subscriber);
        if let Some(subscriber) = alive {
            subscriber.addresses_changed();
        }
    }

    /// Looks the name up, and logs what has changed since `last`. Returns also when to look again.
    fn refresh(&self, last: Outcome) -> (Outcome, Duration) {
        let name = self.what.name();
        match self.what.look_up() {
            Found::Answers(found, lifetime) => {
                let (lost, is_missing) = self.replace(found);
                if last != Outcome::Found {
                    log(Level::Info, format_args!("backend {name}: the name has addresses again"));
                }
                if lost > 0 {
                    log(Level::Info, format_args!("backend {name}: addresses that are gone: {lost}"));
                }
                (Outcome::Found, if is_missing { SOON } else { lifetime })
            }
            // Whoever gets an address next that was this name's is not who the plaintext is for.
            Found::Denied => {
                let (lost, is_missing) = self.replace(Vec::new());
                if lost > 0 || last != Outcome::NoSuchName {
                    let gone = gone(lost, is_missing);
                    log(Level::Warning, format_args!("backend {name}: no such name, or no address{gone}"));
                }
                (Outcome::NoSuchName, if is_missing { SOON } else { REFRESH })
            }
            // A resolver that is down must not take the service with it: what was known stays.
            Found::Failed(why) => {
                if last != Outcome::Failed {
                    log(Level::Warning, format_args!("backend {name}: cannot look the name up: {why}"));
                }
                (Outcome::Failed, REFRESH)
            }
        }
    }

    /// Takes an answer over. An address that it does not have goes if the answer before did not have it either: one that comes
    /// and goes, as where answers are a part of all, would lose its health and its limit each time. Returns how many have
    /// gone, and whether some are missing that have not.
    fn replace(&self, mut found: Vec<Answer>) -> (usize, bool) {
        let mut latest = lock(&self.latest);
        let is_found = |old: &&Answer| found.iter().any(|answer| answer.address == old.address);
        let missing: Vec<_> = latest.answers.iter().filter(|old| !is_found(old)).cloned().collect();
        let (gone, kept): (Vec<_>, Vec<_>) =
            missing.into_iter().partition(|answer| latest.missing.contains(&answer.address));
        let before = Arc::clone(&latest.answers);
        let is_missing = !kept.is_empty();
        latest.missing = kept.iter().map(|answer| answer.address.clone()).collect();
        found.extend(kept);
        latest.answers = found.into();
        let has_changed = before != latest.answers;
        drop(latest);
        if has_changed {
            // Without the lock: subscribers look at the answer.
            let mut subscribers = std::mem::take(&mut *lock(&self.subscribers));
            subscribers.retain(|one| one.upgrade().inspect(|one| one.addresses_changed()).is_some());
            lock(&self.subscribers).append(&mut subscribers);
        }
        (gone.len(), is_missing)
    }
}

fn gone(lost: usize, is_missing: bool) -> String {
    match (lost, is_missing) {
        (0, false) => String::new(),
        (0, true) => "; what it had stays for one more look".to_owned(),
        _ => format!("; it had {lost}, which get no more connections"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_once_however_many_use_it() {
        let resolver = Resolver::default();
        let threads = Threads::new(|panicked| panic!("{panicked:?}"));
        let names =
            [(); 3].map(|()| resolver.name(Lookable::Name { host: "localhost".to_owned(), port: 80 }));
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
