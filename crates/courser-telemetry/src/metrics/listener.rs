//! What is counted of listeners and hosts: by each worker in a block of its own, added up when it is read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::table::{State, VERSIONS};
use crate::close::CloseReason;
use crate::connection::Resumption;
use crate::handshake_result::HandshakeResult;

/// Hosts that are counted by name, over all listeners. Others are counted together.
pub const MOST_HOSTS: usize = 1000;
/// Listeners that are counted by name.
const MOST_LISTENERS: usize = 100;

/// Name of those beyond the limit.
pub const OTHER: &str = "other";

/// Name of the host of handshakes that failed before it was known.
pub const UNKNOWN: &str = "unknown";

/// Combinations of suite, group and scheme that a worker counts of a listener. There are nine suites, and each is used with few.
const MOST_COMBINATIONS: usize = 128;

/// A number that one thread writes.
#[derive(Debug, Default)]
struct Slot(AtomicU64);

impl Slot {
    fn add(&self, amount: u64) {
        // No `fetch_add`, which would lock the bus: nothing else writes.
        self.set(self.get().wrapping_add(amount));
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All listeners and hosts that were counted since the start. What is gone after a reload keeps its numbers.
#[derive(Debug)]
pub struct Directory {
    workers: usize,
    listeners: Mutex<BTreeMap<String, Arc<ListenerCounters>>>,
    hosts: Mutex<BTreeMap<(String, String), Arc<HostCounters>>>,
}

impl Directory {
    /// For so many workers.
    pub fn new(workers: usize) -> Self {
        Self { workers, listeners: Mutex::default(), hosts: Mutex::default() }
    }

    /// The counters of the listener of this name.
    pub fn listener(&self, name: &str) -> Arc<ListenerCounters> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = listeners.len() >= MOST_LISTENERS && !listeners.contains_key(name);
        let name = if is_full { OTHER } else { name };
        let make = || Arc::new(ListenerCounters::new(name, self.workers));
        Arc::clone(listeners.entry(name.to_owned()).or_insert_with(make))
    }

    /// The counters of a host of a listener.
    pub fn host(&self, listener: &str, name: &str) -> Arc<HostCounters> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (listener.to_owned(), name.to_owned());
        let is_full = hosts.len() >= MOST_HOSTS && !hosts.contains_key(&key);
        let key = if is_full { (OTHER.to_owned(), OTHER.to_owned()) } else { key };
        let make = || Arc::new(HostCounters::new(self.workers));
        Arc::clone(hosts.entry(key).or_insert_with(make))
    }

    /// All listeners, by name.
    pub fn listeners(&self) -> Vec<Arc<ListenerCounters>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// All hosts, by listener and name.
    pub fn hosts(&self) -> Vec<((String, String), Arc<HostCounters>)> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.iter().map(|(key, host)| (key.clone(), Arc::clone(host))).collect()
    }
}

/// What is counted of the connections of a listener.
#[derive(Debug)]
pub struct ListenerCounters {
    /// As it is configured.
    pub name: String,
    workers: Box<[ListenerBlock]>,
}

/// By one worker, which is the only one that writes it.
#[derive(Debug)]
#[repr(align(128))]
pub struct ListenerBlock {
    states: [Slot; State::ALL.len()],
    closed: [Slot; CloseReason::ALL.len()],
    queue: [Slot; 3],
    combinations: [(Slot, Slot); MOST_COMBINATIONS],
}

impl Default for ListenerBlock {
    fn default() -> Self {
        Self {
            states: Default::default(),
            closed: [const { Slot(AtomicU64::new(0)) }; CloseReason::ALL.len()],
            queue: Default::default(),
            combinations: [const { (Slot(AtomicU64::new(0)), Slot(AtomicU64::new(0))) }; MOST_COMBINATIONS],
        }
    }
}

/// What a handshake agreed on, by code points; 0 stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Combination {
    /// Cipher suite.
    pub suite: u16,
    /// Key exchange group.
    pub group: u16,
    /// Signature scheme.
    pub scheme: u16,
}

impl Combination {
    fn key(self) -> u64 {
        u64::from(self.suite) << 32 | u64::from(self.group) << 16 | u64::from(self.scheme)
    }

    fn of_key(key: u64) -> Self {
        let part = |shift: u32| u16::try_from(key >> shift & 0xffff).unwrap_or_default();
        Self { suite: part(32), group: part(16), scheme: part(0) }
    }
}

/// The queue of a listener's sockets of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptQueue {
    /// Connections that wait to be accepted.
    pub length: u64,
    /// How many may.
    pub limit: u64,
    /// Connection requests that were dropped, since the start.
    pub dropped: u64,
}

impl ListenerBlock {
    /// A connection comes into a state, from another where it was in one.
    pub fn enter(&self, state: State, from: Option<State>) {
        if let Some(from) = from {
            self.leave(from);
        }
        self.states[state as usize].add(1);
    }

    fn leave(&self, state: State) {
        self.states[state as usize].add(u64::MAX);
    }

    /// A connection that was in this state ends.
    pub fn close(&self, reason: CloseReason, state: State) {
        self.leave(state);
        self.closed[reason as usize].add(1);
    }

    /// A handshake has agreed on this.
    pub fn negotiated(&self, combination: Combination) {
        let key = combination.key();
        // Fibonacci hashing (Knuth, volume 3, section 6.4) to seven bits.
        let start = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize;
        for probe in 0..MOST_COMBINATIONS {
            let (known, count) = &self.combinations[(start + probe) % MOST_COMBINATIONS];
            match known.get() {
                found if found == key => return count.add(1),
                0 => {
                    known.set(key);
                    return count.add(1);
                }
                _ => {}
            }
        }
    }

    /// Sets what the kernel says of the sockets.
    pub fn set_queue(&self, queue: AcceptQueue) {
        let AcceptQueue { length, limit, dropped } = queue;
        self.queue.iter().zip([length, limit, dropped]).for_each(|(slot, value)| slot.set(value));
    }

    /// What the kernel said last.
    pub fn queue(&self) -> AcceptQueue {
        let [length, limit, dropped] = self.queue.each_ref().map(Slot::get);
        AcceptQueue { length, limit, dropped }
    }

    /// Connections that are open, by state.
    pub fn open(&self) -> [u64; State::ALL.len()] {
        self.states.each_ref().map(Slot::get)
    }
}

impl ListenerCounters {
    fn new(name: &str, workers: usize) -> Self {
        Self { name: name.to_owned(), workers: (0..workers).map(|_| ListenerBlock::default()).collect() }
    }

    /// The block of a worker, counted from 0.
    ///
    /// # Panics
    /// Where there are fewer workers.
    pub fn of(&self, worker: u16) -> &ListenerBlock {
        &self.workers[usize::from(worker)]
    }

    /// The blocks of all workers.
    pub fn workers(&self) -> &[ListenerBlock] {
        &self.workers
    }

    /// Connections that are open, by state.
    pub fn open(&self) -> [u64; State::ALL.len()] {
        let mut sum = [0u64; State::ALL.len()];
        for block in &self.workers {
            sum.iter_mut().zip(block.open()).for_each(|(sum, count)| *sum = sum.wrapping_add(count));
        }
        // Read while it changes, one of two may be one behind.
        sum.map(|count| if count > u64::MAX / 2 { 0 } else { count })
    }

    /// Connections that have ended, in the order of the reasons.
    pub fn closed(&self) -> [u64; CloseReason::ALL.len()] {
        let mut sum = [0; CloseReason::ALL.len()];
        for block in &self.workers {
            sum.iter_mut().zip(&block.closed).for_each(|(sum, slot)| *sum += slot.get());
        }
        sum
    }

    /// Handshakes that are done, by what they agreed on.
    pub fn negotiated(&self) -> BTreeMap<Combination, u64> {
        let mut sum = BTreeMap::new();
        for (key, count) in self.workers.iter().flat_map(|block| &block.combinations) {
            if key.get() != 0 {
                *sum.entry(Combination::of_key(key.get())).or_default() += count.get();
            }
        }
        sum
    }
}

const DONE: usize = Resumption::ALL.len() * VERSIONS.len();
/// Series of the handshakes of a host at most.
pub const MOST_OF_HOST: usize = RESULTS;

const RESULTS: usize = DONE + HandshakeResult::ALL.len();

/// What is counted of the handshakes of a host.
#[derive(Debug)]
pub struct HostCounters {
    workers: Box<[HostBlock]>,
}

#[derive(Debug)]
#[repr(align(128))]
struct HostBlock([Slot; RESULTS]);

/// A kind of handshake and how it came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `None` where it failed.
    pub kind: Option<Resumption>,
    /// Of those that are done; its name.
    pub version: Option<&'static str>,
    /// How it came out.
    pub result: HandshakeResult,
}

impl HostCounters {
    fn new(workers: usize) -> Self {
        let block = || HostBlock([const { Slot(AtomicU64::new(0)) }; RESULTS]);
        Self { workers: (0..workers).map(|_| block()).collect() }
    }

    /// A handshake is done. `version`: its code point.
    pub fn done(&self, worker: u16, kind: Resumption, version: u16) {
        let version = VERSIONS.iter().position(|(code, _)| *code == version).unwrap_or_default();
        self.workers[usize::from(worker)].0[kind as usize * VERSIONS.len() + version].add(1);
    }

    /// A handshake has failed.
    pub fn failed(&self, worker: u16, result: HandshakeResult) {
        self.workers[usize::from(worker)].0[DONE + result as usize].add(1);
    }

    /// What there was, and how often.
    pub fn outcomes(&self) -> impl Iterator<Item = (Outcome, u64)> {
        let count = |slot: usize| self.workers.iter().map(|block| block.0[slot].get()).sum::<u64>();
        (0..RESULTS).map(move |slot| (outcome(slot), count(slot))).filter(|(_, count)| *count > 0)
    }
}

fn outcome(slot: usize) -> Outcome {
    match slot.checked_sub(DONE) {
        Some(failed) => Outcome { kind: None, version: None, result: HandshakeResult::ALL[failed] },
        None => Outcome {
            kind: Some(Resumption::ALL[slot / VERSIONS.len()]),
            version: Some(VERSIONS[slot % VERSIONS.len()].1),
            result: HandshakeResult::Success,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_move_through_states_and_end_once() {
        let directory = Directory::new(2);
        let listener = directory.listener("web");
        for worker in [0, 1] {
            let block = listener.of(worker);
            block.enter(State::Hello, None);
            block.enter(State::Hello, None);
            block.enter(State::Handshake, Some(State::Hello));
            block.close(CloseReason::HandshakeTimeout, State::Handshake);
        }
        assert_eq!(listener.open(), [2, 0, 0, 0]);
        assert_eq!(listener.closed()[CloseReason::HandshakeTimeout as usize], 2);
        assert_eq!(listener.closed().iter().sum::<u64>(), 2);
        assert!(Arc::ptr_eq(&listener, &directory.listener("web")), "a reload goes on counting");
    }

    #[test]
    fn what_was_agreed_on_adds_up_over_workers() {
        let directory = Directory::new(2);
        let listener = directory.listener("web");
        let combination = |suite, group| Combination { suite, group, scheme: 0x0403 };
        for suite in 0x1301..0x1304 {
            for group in 1..=40 {
                listener.of(0).negotiated(combination(suite, group));
                listener.of(1).negotiated(combination(suite, group));
            }
        }
        let found = listener.negotiated();
        assert_eq!(found.len(), 120);
        assert!(found.values().all(|count| *count == 2));
        // No room, and no harm.
        (0..100).for_each(|group| listener.of(0).negotiated(combination(0xc02b, group)));
        assert_eq!(listener.of(0).combinations.iter().filter(|(key, _)| key.get() != 0).count(), 128);
    }

    #[test]
    fn each_outcome_has_a_number_of_its_own() {
        let host = HostCounters::new(1);
        host.done(0, Resumption::Psk, 0x0304);
        host.done(0, Resumption::Full, 0x0303);
        host.failed(0, HandshakeResult::HandshakeTimeout);
        let outcomes: Vec<_> = host.outcomes().collect();
        let done = |kind, version| Outcome {
            kind: Some(kind),
            version: Some(version),
            result: HandshakeResult::Success,
        };
        let failed = Outcome { kind: None, version: None, result: HandshakeResult::HandshakeTimeout };
        let expected = [done(Resumption::Full, "TLSv1.2"), done(Resumption::Psk, "TLSv1.3"), failed]
            .map(|outcome| (outcome, 1));
        assert_eq!(outcomes, expected);
    }

    #[test]
    fn hosts_beyond_the_limit_are_counted_together() {
        let directory = Directory::new(1);
        for number in 0..MOST_HOSTS + 5 {
            directory.host("web", &number.to_string()).done(0, Resumption::Full, 0x0304);
        }
        let hosts = directory.hosts();
        assert_eq!(hosts.len(), MOST_HOSTS + 1);
        let other = hosts.iter().find(|((_, name), _)| name == OTHER).unwrap();
        assert_eq!(other.1.outcomes().map(|(_, count)| count).sum::<u64>(), 5);
        directory.host("web", "7").done(0, Resumption::Full, 0x0304);
        assert_eq!(directory.hosts().len(), MOST_HOSTS + 1);
    }
}
