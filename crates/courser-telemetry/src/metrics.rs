//! What is counted: the [table](Definition) of all metrics, the counters of one worker, and the numbers of a process. May
//! not know who reads them, nor how they are printed.
//!
//! Each worker has its own [`Counters`] and is the only one that writes them, so that counting costs a load and a store;
//! others read them when they are asked. What is counted elsewhere is [set](Counts::set) when it is read.

mod listener;
mod table;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use self::listener::{
    AcceptQueue, Combination, Directory, HostCounters, ListenerBlock, ListenerCounters, MOST_HOSTS,
    MOST_OF_HOST, OTHER, Outcome, UNKNOWN,
};
pub use self::table::{
    ByteDirection, Definition, Kind, METRICS, Metric, REFUSALS, RESUMPTION_FAILURES, RemoteLookup, Shed,
    State, Step, VERSIONS, cpu_series,
};
use crate::time::micros;

const SLOTS: usize = OFFSETS[METRICS.len()];

/// Where each metric's numbers begin, and where the last one's end.
const OFFSETS: [usize; METRICS.len() + 1] = {
    let (mut offsets, mut index) = ([0; METRICS.len() + 1], 0);
    while index < METRICS.len() {
        offsets[index + 1] = offsets[index] + METRICS[index].slots();
        index += 1;
    }
    offsets
};

impl Definition {
    /// Numbers that it takes.
    const fn slots(&self) -> usize {
        self.series.len() * if matches!(self.kind, Kind::Histogram) { HISTOGRAM } else { 1 }
    }
}

/// Microseconds below 8 have a bucket each, then each octave has 8: a bucket is at most an eighth wide. The last one, from
/// 2.1 hours on, takes the rest.
const BUCKETS: usize = 8 * 31;

/// Bounds of the exposition, as powers of two of microseconds: 128 us to 8.4 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 7..=23;

/// A histogram's buckets and the sum of what is in them.
const HISTOGRAM: usize = BUCKETS + 1;

fn bucket(micros: u64) -> usize {
    let octave = micros.max(8).ilog2();
    let index = u64::from(octave - 3) * 8 + (micros >> (octave - 3));
    usize::try_from(index).map_or(BUCKETS - 1, |index| index.min(BUCKETS - 1))
}

/// The first duration that is above a bucket, in microseconds.
fn upper_bound(bucket: usize) -> u64 {
    let next = bucket as u64 + 1;
    if next < 16 { next } else { (next % 8 + 8) << (next / 8 - 1) }
}

/// The counters of one worker, on cache lines of their own. Those of what no worker counts stay zero.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters([AtomicU64; SLOTS]);

impl Default for Counters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; SLOTS])
    }
}

impl Counters {
    /// Adds to the number of a metric that `series` stands for: the place of its labels' value, in the order of declaration.
    /// Only the thread whose counters these are may call it.
    pub fn add(&self, metric: Metric, series: usize, amount: u64) {
        debug_assert!(series < METRICS[metric as usize].slots());
        let slot = &self.0[OFFSETS[metric as usize] + series];
        // No `fetch_add`, which would lock the bus: nothing else writes.
        slot.store(slot.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
    }

    /// As [`add`](Self::add), one.
    pub fn count(&self, metric: Metric, series: usize) {
        self.add(metric, series, 1);
    }

    /// Counts how long a step took.
    pub fn observe(&self, step: Step, time: Duration) {
        let micros = micros(time);
        self.count(Metric::StepDuration, step as usize * HISTOGRAM + bucket(micros));
        self.add(Metric::StepDuration, step as usize * HISTOGRAM + BUCKETS, micros);
    }

    /// What was counted so far. Numbers of a busy worker are not of one instant.
    pub fn read(&self) -> Counts {
        Counts(self.0.each_ref().map(|slot| slot.load(Ordering::Relaxed)))
    }
}

/// What was counted since the start, by one worker or several.
#[derive(Clone, Debug)]
pub struct Counts([u64; SLOTS]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; SLOTS])
    }
}

impl Counts {
    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }

    /// What was counted since earlier ones of the same program; numbers that have fallen become 0.
    pub fn subtract(&mut self, earlier: &Self) {
        self.0.iter_mut().zip(earlier.0).for_each(|(count, earlier)| *count = count.saturating_sub(earlier));
    }

    /// Puts in the numbers of what no worker counts, by the place of their labels' values; durations in microseconds.
    ///
    /// # Panics
    /// Where these are not as many as the metric has.
    pub fn set(&mut self, metric: Metric, numbers: &[u64]) {
        self.0[OFFSETS[metric as usize]..OFFSETS[metric as usize + 1]].copy_from_slice(numbers);
    }

    /// All numbers whose [place in the status](Definition::place) is directly below this one, by name; durations in
    /// milliseconds.
    pub fn below(&self, place: &str) -> impl Iterator<Item = (String, u64)> {
        let counted =
            METRICS.iter().filter(|metric| metric.kind != Kind::Histogram && !metric.status.is_empty());
        counted.flat_map(move |metric| {
            let series = metric.series.iter().zip(self.of(metric.metric)).enumerate();
            series.filter_map(move |(index, (value, number))| {
                let at = metric.place(index, value);
                let name = at.strip_prefix(place)?.strip_prefix('.')?;
                let scale = if metric.unit == "seconds" { 1000 } else { 1 };
                (!name.contains('.')).then(|| (name.to_owned(), number / scale))
            })
        })
    }

    /// The numbers of a counter by the place of their labels' values.
    pub fn of(&self, metric: Metric) -> &[u64] {
        &self.0[OFFSETS[metric as usize]..OFFSETS[metric as usize + 1]]
    }

    /// How often a step was completed, and how long it took.
    pub fn step(&self, step: Step) -> Distribution<'_> {
        let slots = &self.of(Metric::StepDuration)[step as usize * HISTOGRAM..][..HISTOGRAM];
        Distribution { buckets: &slots[..BUCKETS], sum: Duration::from_micros(slots[BUCKETS]) }
    }
}

/// Durations by size.
#[derive(Debug)]
pub struct Distribution<'a> {
    buckets: &'a [u64],
    /// All of them together.
    pub sum: Duration,
}

impl Distribution<'_> {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The buckets that have any, each by the first duration that is above it.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let some = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        some.map(|(bucket, count)| (Duration::from_micros(upper_bound(bucket)), *count))
    }

    /// How many there are below each bound of the exposition. The bounds are those of buckets: nothing is estimated.
    pub fn below_bounds(&self) -> impl Iterator<Item = (Duration, u64)> {
        let below = |power: u32| {
            let end = bucket(1 << power);
            self.buckets[..end].iter().sum()
        };
        BOUNDS.map(move |power| (Duration::from_micros(1 << power), below(power)))
    }

    /// What `percent` of them do not exceed, at most an eighth too long; `None` where there are none.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let last = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        last.map(|bucket| Duration::from_micros(upper_bound(bucket)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_the_form_of_prometheus() {
        let names: std::collections::HashSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            let name = metric.name;
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            let unit = match (metric.kind, metric.unit) {
                (Kind::Counter, "") => "_total".to_owned(),
                (Kind::Counter, unit) => format!("_{unit}_total"),
                (Kind::Gauge, "") => String::new(),
                (Kind::Info, _) => "_info".to_owned(),
                (_, unit) => format!("_{unit}"),
            };
            assert!(name.starts_with("courser_") && name.ends_with(&unit), "{name} in {unit}");
        }
    }

    #[test]
    fn each_series_has_a_number_of_its_own_and_workers_add_up() {
        let (one, other) = (Counters::default(), Counters::default());
        for (index, metric) in
            [Metric::Connections, Metric::RemoteSessions, Metric::RemoteLookups].into_iter().enumerate()
        {
            let slots = METRICS[metric as usize].slots();
            (0..slots).for_each(|series| one.add(metric, series, 1 + index as u64));
            other.add(metric, slots - 1, 10);
        }
        let mut sum = one.read();
        sum.add(&other.read());
        assert!(
            sum.of(Metric::PlaintextBytes)
                .iter()
                .chain(sum.of(Metric::StepDuration))
                .all(|&count| count == 0)
        );
        let (last, rest) = sum.of(Metric::Connections).split_last().unwrap();
        assert!(*last == 11 && rest.iter().all(|&count| count == 1));
        assert_eq!(sum.of(Metric::RemoteSessions), [12]);
        assert_eq!(sum.of(Metric::RemoteLookups), [3, 3, 3, 13]);
    }

    #[test]
    fn a_bucket_holds_what_is_below_its_bound_and_is_an_eighth_wide() {
        for micros in (0..10_000).chain((0..33).map(|power| (1 << power) - 1)).chain([u64::MAX]) {
            let bucket = bucket(micros);
            assert!(bucket == BUCKETS - 1 || micros < upper_bound(bucket), "{micros}");
            assert!(bucket == 0 || upper_bound(bucket - 1) <= micros, "{micros}");
            assert!(micros >= 1 << 33 || upper_bound(bucket) <= micros + micros / 8 + 1, "{micros}");
        }
    }

    #[test]
    fn percentiles_of_a_step_are_of_that_step() {
        let counters = Counters::default();
        (1..=100).for_each(|millis| counters.observe(Step::Handshake, Duration::from_millis(millis)));
        counters.observe(Step::Connect, Duration::from_secs(9));
        let counts = counters.read();
        let handshakes = counts.step(Step::Handshake);
        assert_eq!((handshakes.count(), handshakes.sum), (100, Duration::from_millis(5050)));
        for (percent, millis) in [(50, 50), (99, 99)] {
            let found = handshakes.percentile(percent).unwrap();
            let (least, most) = (Duration::from_millis(millis), Duration::from_micros(1125 * millis + 1));
            assert!(least < found && found <= most, "{percent}: {found:?}");
        }
        assert!(counts.step(Step::Hello).percentile(50).is_none());
    }
}
