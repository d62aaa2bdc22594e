//! The longest call to a cache of a million sessions: `cargo run --release --example pauses [sessions] [state bytes]`.
//!
//! Linux only: a call during which the kernel took the processor away is told apart by the thread's count of involuntary
//! switches. What a hypervisor takes is not seen, nor that the holder of a lock was taken away: of several runs on a quiet
//! machine, the least counts.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use courser_session::{
    Cache, Cursor, DEFAULT_SHARDS, Lifespan, PolicyHash, Provenance, SessionId, State, UnixSeconds,
};

const START: UnixSeconds = UnixSeconds(1_800_000_000);

/// A call of this length is worth a look at why.
const SUSPICIOUS: Duration = Duration::from_micros(10);

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u32>().ok());
    let (sessions, state_len) = (arguments.next().unwrap_or(1_000_000), arguments.next().unwrap_or(150));
    let cache = Cache::new(400 * sessions as usize, DEFAULT_SHARDS);
    let (sessions, state_len) = (u64::from(sessions), state_len as usize);
    let run = Run { cache, sessions, state_len, policy: PolicyHash::builder("listener", "host").finish() };
    println!("{:>21} {:>9} {:>10} {:>9} {:>10}", "", "calls", "median ns", "max us", "preempted");
    run.fill_and_use();
    run.evict();
    run.expire();
}

struct Run {
    cache: Cache,
    sessions: u64,
    state_len: usize,
    policy: PolicyHash,
}

impl Run {
    fn fill_and_use(&self) {
        self.time("put while it fills", 0..self.sessions, |number| self.put(number, START));
        let stats = self.cache.stats();
        println!("{} sessions, {} bytes each", stats.entries, stats.bytes / stats.entries);
        self.time("get, hit", 0..self.sessions, |number| self.get(number, START));
        self.time("peek", 0..self.sessions, |number| self.cache.peek(&id(number), &self.policy, START));
        self.time("get, miss", self.sessions..2 * self.sessions, |number| self.get(number, START));
        let mut cursor = Some(Cursor::START);
        self.time("export of 1400 bytes", 0..self.sessions / 10, |_| {
            let (batch, next) = self.cache.export(cursor.unwrap_or(Cursor::START), 1400, START);
            cursor = next;
            batch.len()
        });
        self.time("bury", 0..self.sessions / 100, |number| {
            self.cache.delete(&id(number), START.plus(Duration::from_secs(7200)), START)
        });
    }

    fn evict(&self) {
        let more = self.sessions..3 * self.sessions;
        self.time("put while it evicts", more, |number| self.put(number, START));
        let stats = self.cache.stats();
        println!("{} sessions, {} bytes each", stats.entries, stats.bytes / stats.entries);
    }

    /// All expire at once. Another thread looks sessions up meanwhile: it waits for the steps of the sweep.
    fn expire(&self) {
        let later = START.plus(Duration::from_secs(7200));
        let (swept, begun) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let calls = (0..).take_while(|_| !swept.load(Ordering::Relaxed));
                begun.store(true, Ordering::Relaxed);
                self.time("get during the sweep", calls, |number| self.get(number % self.sessions, START));
            });
            while !begun.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            let start = Instant::now();
            let count = self.cache.sweep(later);
            swept.store(true, Ordering::Relaxed);
            println!("swept {count} expired sessions in {} ms", start.elapsed().as_millis());
        });
    }

    fn put(&self, number: u64, now: UnixSeconds) -> impl Sized {
        let lifespan = Lifespan::new(now, Duration::from_secs(7200));
        let state = State::from(vec![7; self.state_len]);
        self.cache.put(&id(number), self.policy, state, lifespan, Provenance::Local, now)
    }

    fn get(&self, number: u64, now: UnixSeconds) -> impl Sized {
        self.cache.get(&id(number), &self.policy, now)
    }

    /// Prints the median and the longest of `calls` in which the kernel did not take the processor away.
    fn time<T>(&self, what: &str, calls: impl Iterator<Item = u64>, mut call: impl FnMut(u64) -> T) {
        let (mut times, mut preempted, mut switches) = (Vec::new(), 0, switches());
        for number in calls {
            let start = Instant::now();
            drop(black_box(call(number)));
            let took = start.elapsed();
            if took > SUSPICIOUS && std::mem::replace(&mut switches, self::switches()) != switches {
                preempted += 1;
            } else {
                times.push(u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
            }
        }
        times.sort_unstable();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{what:>21} {:>9} {median:>10} {:>9} {preempted:>10}", times.len(), longest / 1000);
    }
}

fn id(number: u64) -> SessionId {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&number.to_be_bytes());
    SessionId::try_from(&id[..]).expect("32 bytes are an ID")
}

/// How often the kernel took the processor from this thread.
fn switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("this example is for Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("the kernel counts switches")
}
