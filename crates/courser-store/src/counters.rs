//! What became of every question to the store, and the lines that a person reads about it. May not print: the caller
//! decides where a line goes.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Lines about refused commands, at most one in so long: a refusal repeats with each handshake.
const REFUSALS_APART: Duration = Duration::from_secs(60);

/// The counts of all workers of a process, and where its lines go. Shared behind an `Arc`.
pub struct StoreCounters {
    counts: [AtomicU64; StoreCount::ALL.len()],
    log: Box<dyn Fn(&str) + Send + Sync>,
    began: Instant,
    /// Milliseconds after `began` before which no refusal is logged.
    next_refusal: AtomicU64,
}

impl StoreCounters {
    /// All zero. `log` gets a line, without its end, when a breaker opens or closes, or the store refuses commands;
    /// it must not wait.
    pub fn new(log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; _],
            log: Box::new(log),
            began: Instant::now(),
            next_refusal: AtomicU64::new(0),
        }
    }

    pub(crate) fn count(&self, what: StoreCount) {
        self.add(what, 1);
    }

    /// A worker's breaker has opened. One line for the process, by the first of its workers.
    pub(crate) fn opened(&self, store: &dyn fmt::Display, why: &dyn fmt::Display) {
        self.count(StoreCount::BreakerOpened);
        if self.add(StoreCount::BreakerOpenNow, 1) == 0 {
            self.log_line(format_args!(
                "session store {store}: breaker open, not used until it answers in time: {why}"
            ));
        }
    }

    /// A worker's breaker has closed after so long. One line for the process, by the last of its workers.
    pub(crate) fn closed(&self, store: &dyn fmt::Display, after: Duration) {
        self.count(StoreCount::BreakerClosed);
        self.no_longer_open();
        if self.get(StoreCount::BreakerOpenNow) == 0 {
            self.log_line(format_args!(
                "session store {store}: breaker closed, in use again after {:.1} s",
                after.as_secs_f64()
            ));
        }
    }

    /// So many that were counted are no longer so: for counts of what there is now.
    pub(crate) fn uncount(&self, what: StoreCount, by: u64) {
        self.counts[what as usize].fetch_sub(by, Relaxed);
    }

    /// A worker ends with its breaker open.
    pub(crate) fn no_longer_open(&self) {
        self.uncount(StoreCount::BreakerOpenNow, 1);
    }

    /// The store answered, with an error.
    pub(crate) fn refused(&self, store: &dyn fmt::Display, why: &dyn fmt::Display) {
        self.count(StoreCount::Errors);
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = self.next_refusal.load(Relaxed);
        let apart = u64::try_from(REFUSALS_APART.as_millis()).unwrap_or(u64::MAX);
        // Of several workers at once, one succeeds.
        let is_ours =
            now >= due && self.next_refusal.compare_exchange(due, now + apart, Relaxed, Relaxed).is_ok();
        if is_ours {
            self.log_line(format_args!("session store {store}: {why}; more of these are counted"));
        }
    }

    /// Time during which a worker did without the store.
    pub(crate) fn open_for(&self, time: Duration) {
        self.add(StoreCount::BreakerOpenMillis, u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }

    fn add(&self, what: StoreCount, by: u64) -> u64 {
        self.counts[what as usize].fetch_add(by, Relaxed)
    }

    /// How often this was counted, or how much there is of it now.
    pub fn get(&self, what: StoreCount) -> u64 {
        self.counts[what as usize].load(Relaxed)
    }

    fn log_line(&self, line: fmt::Arguments<'_>) {
        let mut text = String::new();
        let _ = text.write_fmt(line);
        (self.log)(&text);
    }
}

impl fmt::Debug for StoreCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(StoreCount::ALL.iter().map(|&what| (what, self.get(what)))).finish()
    }
}

macro_rules! counts {
    ($($(#[doc = $doc:literal])* $count:ident,)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug)]
        pub enum StoreCount { $($(#[doc = $doc])* $count,)* }

        impl StoreCount {
            const ALL: &'static [Self] = &[$(Self::$count,)*];
        }
    };
}

counts! {
    /// Questions asked.
    Gets,
    /// Those answered with a value.
    Hits,
    /// Those answered with "not here".
    Misses,
    /// Questions and commands that were not answered in time.
    Timeouts,
    /// Those whose connection was lost.
    ConnectionsLost,
    /// Those answered with an error.
    Errors,
    /// Those answered with something that is no answer.
    ProtocolErrors,
    /// Questions not asked, because the breaker is open or there is no connection.
    Skipped,
    /// Sessions given to be stored.
    Puts,
    /// Those that the store has acknowledged.
    Stored,
    /// Sessions given to be deleted.
    Deletes,
    /// Those that the store has acknowledged, whether or not it had them.
    Deleted,
    /// Puts dropped: too many or too large, or the breaker is open.
    Dropped,
    /// Deletes that wait until the store is there.
    DeletesWaiting,
    /// Deletes that will never be done, since too many waited.
    DeletesLost,
    /// Connections made.
    Connected,
    /// How often a worker's breaker has opened.
    BreakerOpened,
    /// How often one has closed again.
    BreakerClosed,
    /// Workers whose breaker is open now.
    BreakerOpenNow,
    /// Milliseconds that workers did without the store, of all workers together.
    BreakerOpenMillis,
}
