//! What the cryptographic library does on this machine: the physical limit of any terminator on it.
//!
//! Processor time of this thread, not time on the wall: whoever else runs on the machine disturbs caches and clock speed,
//! but is not counted. It pins nothing and prints nothing.

use std::fmt;
use std::time::Duration;

use courser_stats::{ConfidenceInterval, confidence};
pub use courser_tls_client::primitives::{Family, library_version};
use courser_tls_client::primitives::{Operation, Primitive};

use crate::clock::thread_time;

/// Rounds per figure. An interval needs eight; with more, one bad round moves it less.
const ROUNDS: u32 = 20;

/// The shortest round: some hundred times what reading the clock takes.
const SHORTEST_ROUND: Duration = Duration::from_micros(20);

/// What an operation takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Algorithm, and step where it has several.
    pub name: &'static str,
    /// What it is for.
    pub family: Family,
    /// Size of what is processed, or derived; none where the algorithm fixes it.
    pub bytes: Option<usize>,
    /// Operations per second on one processor: the inverse of `us`.
    pub per_second: f64,
    /// Processor time of one, microseconds: the median of the rounds.
    pub us: f64,
    /// 95 % interval of `us`, by resampling the rounds.
    pub interval: ConfidenceInterval,
    /// Operations behind the figure.
    pub operations: u64,
}

impl Figure {
    /// Bytes per second, where it processes any.
    pub fn bytes_per_second(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 * self.per_second)
    }
}

/// Measures every operation for about `time`, one after the other, in rounds of equal work. `progress` is called with
/// how many are done, and of how many, before the first and after each.
///
/// # Errors
/// An operation that gave a wrong result: a broken machine or library.
pub fn measure(time: Duration, mut progress: impl FnMut(usize, usize)) -> Result<Vec<Figure>, Broken> {
    let all = courser_tls_client::primitives::all();
    let total = all.len();
    progress(0, total);
    let measured = all.into_iter().enumerate().map(|(done, primitive)| {
        let figure = figure(primitive, time / ROUNDS);
        progress(done + 1, total);
        figure
    });
    measured.collect()
}

/// Measures one operation for about `time`; `None` when there is none of this name, family and size.
pub fn measure_one(
    name: &str,
    family: Family,
    bytes: Option<usize>,
    time: Duration,
) -> Option<Result<Figure, Broken>> {
    let is_it = |one: &Primitive| one.name == name && one.family == family && one.bytes == bytes;
    courser_tls_client::primitives::all()
        .into_iter()
        .find(is_it)
        .map(|primitive| figure(primitive, time / ROUNDS))
}

fn figure(primitive: Primitive, round: Duration) -> Result<Figure, Broken> {
    let (name, family, bytes) = (primitive.name, primitive.family, primitive.bytes);
    let mut batches = Batches { operation: primitive.prepare(), good: true };
    let times = batches.calibrate(round.max(SHORTEST_ROUND));
    let rounds: Vec<f64> = (0..ROUNDS).map(|_| batches.us_each(times)).collect();
    if !batches.good {
        return Err(Broken { name, family });
    }
    let us = median(&rounds);
    Ok(Figure {
        name,
        family,
        bytes,
        per_second: 1e6 / us,
        us,
        interval: confidence::median(&rounds, 1).expect("there are more rounds than an interval needs"),
        operations: times * u64::from(ROUNDS),
    })
}

/// An operation, repeated on the clock.
struct Batches {
    operation: Operation,
    good: bool,
}

impl Batches {
    /// How many repetitions take about as long as a round.
    fn calibrate(&mut self, round: Duration) -> u64 {
        let mut times = 1;
        loop {
            let took = self.time(times);
            if took * 2 >= round {
                #[expect(clippy::cast_possible_truncation, reason = "at most twice")]
                let fitting = (times as f64 * round.as_secs_f64() / took.as_secs_f64()) as u64;
                return fitting.max(1);
            }
            times *= 2;
        }
    }

    fn us_each(&mut self, times: u64) -> f64 {
        let times_float = times as f64;
        self.time(times).as_secs_f64() * 1e6 / times_float
    }

    fn time(&mut self, times: u64) -> Duration {
        let start = thread_time();
        self.good &= self.operation.run(times);
        thread_time().saturating_sub(start)
    }
}

/// The middle of some values; the caller has at least one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// An operation gave a wrong result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which one.
    pub name: &'static str,
    /// What for.
    pub family: Family,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}) gave a wrong result: this machine or the cryptographic library is broken, so trust no figure of it",
            self.name, self.family
        )
    }
}

impl std::error::Error for Broken {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_gets_a_figure_with_its_interval() {
        let mut steps = Vec::new();
        let figures = measure(Duration::ZERO, |done, total| steps.push((done, total))).unwrap();
        let total = figures.len();
        assert_eq!(steps, (0..=total).map(|done| (done, total)).collect::<Vec<_>>());
        for figure in &figures {
            assert!(figure.us > 0.0 && figure.operations >= u64::from(ROUNDS), "{figure:?}");
            assert!(figure.interval.low <= figure.us && figure.us <= figure.interval.high, "{figure:?}");
            assert!((figure.per_second * figure.us - 1e6).abs() < 1.0, "{figure:?}");
        }
    }

    #[test]
    fn one_operation_can_be_had_alone() {
        let one = |name, bytes| measure_one(name, Family::Digest, bytes, Duration::ZERO);
        let figure = one("SHA-256", Some(1024)).unwrap().unwrap();
        assert_eq!((figure.name, figure.bytes), ("SHA-256", Some(1024)));
        assert_eq!((one("SHA-256", Some(1025)), one("MD5", Some(1024))), (None, None));
    }

    #[test]
    fn throughput_counts_bytes() {
        let figure = Figure {
            name: "SHA-256",
            family: Family::Digest,
            bytes: Some(1024),
            per_second: 2000.0,
            us: 500.0,
            interval: ConfidenceInterval { low: 499.0, high: 501.0 },
            operations: 100,
        };
        assert_eq!(figure.bytes_per_second(), Some(2_048_000.0));
        assert_eq!(Figure { bytes: None, ..figure }.bytes_per_second(), None);
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
    }
}
