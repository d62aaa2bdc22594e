//! Delays that a kernel's timers add, found by where they lie: a latency histogram with a second, narrow hill at 40 ms,
//! 200 ms, 1 s or 3 s is not a slow server.
//!
//! Method: for each known timer, the samples between its time (less 2 %, for coarse clocks) and its time plus what the
//! bulk takes, at most a quarter of the timer, are counted; they are a hill when they are ten at least, and ten times
//! as dense as the ranges of equal width on both sides. It is a look for shapes that are known, not a test: that a
//! hill is there is certain, that the timer is its cause is likely.
//!
//! Limits: hills below 0.001 % of the samples are not found, nor those on the slope of the bulk.

use std::fmt;
use std::time::Duration;

use crate::Histogram;
use crate::number::float;

/// A timer that delays packets or connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// 40 ms: Linux's shortest delayed acknowledgement, which a sender with Nagle's algorithm waits for.
    DelayedAck,
    /// 200 ms: Linux's shortest retransmission timeout, and the delayed acknowledgement of other systems.
    Retransmission,
    /// 1 s: the first retransmission of a SYN (RFC 6298, section 2): a full accept queue, or a lost packet.
    Syn,
    /// 3 s: the second one, or the first one of older systems (RFC 1122).
    SecondSyn,
}

/// A hill of samples apart from the bulk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// The timer that it lies at.
    pub timer: Timer,
    /// The median of its samples.
    pub centre: Duration,
    /// Its samples, of all.
    pub share: f64,
    /// How many they are.
    pub samples: u64,
}

/// One histogram against another: the same, only later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// By how much each sample is later, typically.
    pub by: Duration,
    /// The timer that would add that, if one does.
    pub timer: Option<Timer>,
}

impl Timer {
    /// All of them, shortest first.
    pub const ALL: [Self; 4] = [Self::DelayedAck, Self::Retransmission, Self::Syn, Self::SecondSyn];

    /// How long it runs.
    pub fn duration(self) -> Duration {
        Duration::from_millis(match self {
            Self::DelayedAck => 40,
            Self::Retransmission => 200,
            Self::Syn => 1000,
            Self::SecondSyn => 3000,
        })
    }

    /// What to look at.
    pub fn advice(self) -> &'static str {
        match self {
            Self::DelayedAck => {
                "delayed acknowledgement: set TCP_NODELAY, and write an answer's head and body at once"
            }
            Self::Retransmission => {
                "retransmission timeout: packets are lost at the end of an answer; look at nstat"
            }
            Self::Syn => {
                "retransmitted SYN: the accept queue is full; look at ListenOverflows and the backlog"
            }
            Self::SecondSyn => {
                "SYN retransmitted twice: the accept queue stays full; look at ListenOverflows and the backlog"
            }
        }
    }

    /// The timer that a delay of this length is likely from: up to an eighth longer than it runs.
    fn of(delay: Duration) -> Option<Self> {
        let ratio = |timer: &Self| delay.as_secs_f64() / timer.duration().as_secs_f64();
        Self::ALL.into_iter().find(|timer| (EARLY..=1.125).contains(&ratio(timer)))
    }
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DelayedAck => "delayed acknowledgement (40 ms)",
            Self::Retransmission => "retransmission timeout (200 ms)",
            Self::Syn => "retransmitted SYN (1 s)",
            Self::SecondSyn => "SYN retransmitted twice (3 s)",
        })
    }
}

/// Where a hill may begin, of the timer's time.
const EARLY: f64 = 0.98;

/// How wide it may be at most, of the timer's time.
const WIDEST: f64 = 0.25;

/// How much denser than its surroundings it has to be.
const DENSER: f64 = 10.0;

/// Samples and share that make a hill.
const FEWEST: u64 = 10;
const RAREST: f64 = 1e-5;

/// The hills at known timers, shortest timer first. A histogram whose bulk lies there has none: see [`shift`].
pub fn modes(histogram: &Histogram) -> Vec<Mode> {
    let Some(median) = histogram.quantile(0.5) else { return Vec::new() };
    Timer::ALL.into_iter().filter_map(|timer| mode(histogram, median.as_secs_f64(), timer)).collect()
}

/// Whether a histogram is a `base` (the path without what is examined, or another target) moved by a constant: from the
/// first to the ninth decile every quantile is later by the same, give or take an eighth, and by more than the base's
/// median. `None` where it is not so, or where either has under a hundred samples.
pub fn shift(histogram: &Histogram, base: &Histogram) -> Option<Shift> {
    let later = |decile: u32| -> Option<f64> {
        let at = f64::from(decile) / 10.0;
        Some(histogram.quantile(at)?.as_secs_f64() - base.quantile(at)?.as_secs_f64())
    };
    let delays: Vec<f64> = (1..=9).filter_map(later).collect();
    let by = *delays.get(4)?;
    let alike = delays.iter().all(|delay| (delay - by).abs() <= by / 8.0);
    let enough = histogram.count() >= 100 && base.count() >= 100;
    if !(alike && enough && by > base.quantile(0.5)?.as_secs_f64()) {
        return None;
    }
    let by = Duration::from_secs_f64(by);
    Some(Shift { by, timer: Timer::of(by) })
}

fn mode(histogram: &Histogram, bulk: f64, timer: Timer) -> Option<Mode> {
    let time = timer.duration().as_secs_f64();
    let width = (5.0 * bulk).clamp(0.05 * time, WIDEST * time);
    let low = EARLY * time;
    let inside = between(histogram, low, low + width);
    let around = [between(histogram, low - width, low), between(histogram, low + width, low + 2.0 * width)];
    let samples: u64 = inside.iter().map(|(_, count)| count).sum();
    let flank = around.iter().map(|flank| flank.iter().map(|(_, count)| count).sum::<u64>()).max()?;
    let share = float(samples) / float(histogram.count());
    let is_hill = samples >= FEWEST && share >= RAREST && float(samples) >= DENSER * float(flank);
    // Where half of the samples lie there it is the bulk, not a hill beside it.
    (is_hill && share < 0.5).then(|| Mode { timer, centre: centre(&inside, samples), share, samples })
}

/// Buckets from `low` up to `high`, seconds.
fn between(histogram: &Histogram, low: f64, high: f64) -> Vec<(Duration, u64)> {
    histogram.buckets().filter(|(time, _)| (low..high).contains(&time.as_secs_f64())).collect()
}

/// The median of buckets that hold so many samples.
fn centre(buckets: &[(Duration, u64)], samples: u64) -> Duration {
    let mut seen = 0;
    let half = buckets.iter().find(|(_, count)| {
        seen += count;
        2 * seen >= samples
    });
    half.or(buckets.last()).map_or(Duration::ZERO, |(time, _)| *time)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;
    use crate::simulate::{exponential, normal};

    /// Lognormal times around a median of 2 ms, of which some are `late` by so many milliseconds.
    fn times(count: u64, share: f64, late: f64, seed: u64) -> Histogram {
        let mut rng = Rng::with_seed(seed);
        let mut histogram = Histogram::default();
        for _ in 0..count {
            let usual = 2.0 * (0.5 * normal(&mut rng)).exp();
            let extra = if rng.f64() < share { late } else { 0.0 };
            histogram.record(Duration::from_secs_f64((usual + extra) / 1e3));
        }
        histogram
    }

    #[test]
    fn each_timer_is_found_with_its_share() {
        for (timer, late) in Timer::ALL.into_iter().zip([40.5, 201.0, 1010.0, 3030.0]) {
            let found = modes(&times(50_000, 0.002, late, 1));
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].timer, timer);
            assert!((found[0].share / 0.002 - 1.0).abs() < 0.3, "{found:?}");
            assert!((found[0].centre.as_secs_f64() * 1e3 / late - 1.0).abs() < 0.1, "{found:?}");
        }
    }

    #[test]
    fn a_long_tail_is_no_hill() {
        let mut rng = Rng::with_seed(2);
        let mut tail = Histogram::default();
        (0..50_000).for_each(|_| {
            tail.record(Duration::from_secs_f64(0.002 * exponential(&mut rng).exp()));
        });
        assert_eq!(modes(&tail), []);
        assert_eq!(modes(&times(50_000, 0.0, 0.0, 3)), []);
        assert_eq!(modes(&Histogram::default()), []);
    }

    #[test]
    fn two_hills_are_both_found() {
        let mut histogram = times(20_000, 0.01, 40.0, 4);
        histogram.merge(&times(20_000, 0.003, 1000.0, 5));
        let timers: Vec<Timer> = modes(&histogram).iter().map(|mode| mode.timer).collect();
        assert_eq!(timers, [Timer::DelayedAck, Timer::Syn]);
    }

    #[test]
    fn a_server_that_adds_forty_milliseconds_to_each_answer_is_a_shift() {
        let base = times(5000, 0.0, 0.0, 6);
        let slow = times(5000, 1.0, 40.0, 7);
        let shift = shift(&slow, &base).unwrap();
        assert_eq!(shift.timer, Some(Timer::DelayedAck));
        assert!((shift.by.as_secs_f64() - 0.04).abs() < 0.001, "{shift:?}");
        assert_eq!(modes(&slow), []);
    }

    #[test]
    fn a_server_that_is_slower_in_proportion_is_no_shift() {
        let base = times(5000, 0.0, 0.0, 8);
        let mut slow = Histogram::default();
        base.buckets().for_each(|(time, count)| slow.record_many(time * 20, count));
        assert_eq!(shift(&slow, &base), None);
        assert_eq!(shift(&base, &base), None);
        assert_eq!(shift(&base, &slow), None);
        assert_eq!(shift(&Histogram::default(), &base), None);
    }

    #[test]
    fn a_shift_by_no_known_timer_names_none() {
        let (base, slow) = (times(1000, 0.0, 0.0, 9), times(1000, 1.0, 70.0, 10));
        assert_eq!(shift(&slow, &base).map(|shift| shift.timer), Some(None));
    }

    #[test]
    fn the_advice_fits_the_timer() {
        for timer in Timer::ALL {
            assert_eq!(Timer::of(timer.duration()), Some(timer));
            assert!(!timer.advice().is_empty() && !timer.to_string().is_empty());
        }
    }
}
