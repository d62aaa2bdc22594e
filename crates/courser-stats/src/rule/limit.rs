//! One limit: whether an observation keeps it, breaks it, or cannot say.

use std::fmt;
use std::time::Duration;

use super::Observation;
use crate::Histogram;
use crate::confidence::{share_above, share_below};
use crate::number::{float, whole};

/// One condition of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// `avg<TIME`: the mean response time.
    Mean(Duration),
    /// `p99<TIME`: the response time that `percent` (50 to 99.999) of the successes do not exceed.
    Percentile {
        /// Which percentile.
        percent: f64,
        /// What it has to stay under.
        time: Duration,
    },
    /// `max<TIME`: the longest response time.
    Max(Duration),
    /// `loss<PERCENT%`: failures among the attempts.
    Loss {
        /// What they have to stay under.
        percent: f64,
    },
    /// `rate>PERCENT%`: what was completed in the window, whenever it was to start, of what was scheduled in it.
    Rate {
        /// What it has to exceed.
        percent: f64,
    },
}

/// What was seen where a limit was not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    /// A response time.
    Time(Duration),
    /// A share, in percent.
    Percent(f64),
    /// So many a second.
    PerSecond(f64),
    /// No answer at all.
    Nothing,
}

/// Whether a limit is kept.
pub(super) enum LimitCheck {
    Yes,
    No(Seen),
    Unknown { more: u64 },
}

/// Samples from which on a mean or a maximum is one.
const FEW: u64 = 10;

/// Error of the one-sided bounds on a share.
const ERROR: f64 = 0.05;

impl Limit {
    pub(super) fn check(&self, observation: &Observation<'_>) -> LimitCheck {
        let response = observation.response;
        match *self {
            Self::Loss { percent } => losses(observation, percent / 100.0),
            Self::Rate { percent } => rate(observation, percent, self.samples_to_confirm()),
            _ if response.count() == 0 && observation.attempted > 0 => LimitCheck::No(Seen::Nothing),
            Self::Mean(time) => compared(response.count(), FEW, response.mean(), time),
            Self::Max(time) => compared(response.count(), FEW, response.max(), time),
            Self::Percentile { percent, time } => {
                let seen = response.quantile(percent / 100.0);
                compared(response.count(), self.samples_to_confirm(), seen, time)
            }
        }
    }

    /// See [`super::Rule::leaning`]. Shares by Wald's likelihood ratio between a third of the limit and what lies as
    /// far above it (Sequential Analysis, 1947), in its form for rare events: the losses seen in excess of those
    /// allowed, times a constant.
    pub(super) fn leaning(&self, observation: &Observation<'_>) -> f64 {
        let response = observation.response;
        match *self {
            Self::Loss { percent } => {
                excess(observation.failed, float(observation.attempted) * percent / 100.0)
            }
            Self::Rate { percent } => broken(observation.achieved * 100.0 <= observation.offered * percent),
            _ if observation.attempted == 0 => 0.5,
            _ if response.count() == 0 => 1.0,
            Self::Mean(time) => broken(response.mean().is_some_and(|mean| mean >= time)),
            Self::Max(time) => broken(response.max().is_some_and(|max| max >= time)),
            Self::Percentile { percent, time } => {
                excess(slower(response, time), float(response.count()) * (100.0 - percent) / 100.0)
            }
        }
    }

    pub(super) fn samples_to_confirm(&self) -> u64 {
        let of = |samples: f64| whole((samples - 0.01).ceil());
        match *self {
            Self::Loss { percent } => of(300.0 / percent),
            Self::Percentile { percent, .. } => of(1000.0 / (100.0 - percent)),
            // What may be missing is a share as losses are.
            Self::Rate { percent } => of(300.0 / (100.0 - percent)).max(FEW),
            Self::Mean(_) | Self::Max(_) => FEW,
        }
    }

    /// How much queue (in time) has to build up before the limit notices an overload, and which part of the trial's
    /// length it has for that: a mean feels half of what a maximum or a high percentile feels.
    pub(super) fn hidden_queue(&self) -> Option<(Duration, f64)> {
        match *self {
            Self::Mean(time) => Some((time, 0.5)),
            Self::Percentile { percent, time } => Some((time, percent / 100.0)),
            Self::Max(time) => Some((time, 1.0)),
            Self::Loss { .. } | Self::Rate { .. } => None,
        }
    }
}

fn compared(count: u64, needed: u64, seen: Option<Duration>, limit: Duration) -> LimitCheck {
    match seen {
        Some(seen) if count >= needed && seen < limit => LimitCheck::Yes,
        Some(seen) if count >= needed => LimitCheck::No(Seen::Time(seen)),
        _ => LimitCheck::Unknown { more: needed.saturating_sub(count) },
    }
}

/// Kept when at least 3/p attempts were made and the exact one-sided 95 % bound (Clopper and Pearson, 1934) on the true
/// share is below the limit; broken when the bound from the other side is above it.
fn losses(observation: &Observation<'_>, limit: f64) -> LimitCheck {
    let (failed, attempted) = (observation.failed, observation.attempted);
    if share_above(failed, attempted, ERROR) > limit {
        return LimitCheck::No(Seen::Percent(100.0 * float(failed) / float(attempted)));
    }
    if confirmed(failed, attempted, limit) {
        return LimitCheck::Yes;
    }
    LimitCheck::Unknown { more: decisive(failed, attempted, limit).saturating_sub(attempted).max(1) }
}

fn confirmed(failed: u64, attempted: u64, limit: f64) -> bool {
    // Half an attempt of tolerance: 3 / 0.001 is a little more than 3000.
    float(attempted) + 0.5 >= 3.0 / limit && share_below(failed, attempted, ERROR) < limit
}

/// From how many attempts on the limit would be decided, if losses go on as so far; in steps of a tenth, up to a
/// thousand times as many.
fn decisive(failed: u64, attempted: u64, limit: f64) -> u64 {
    let least = float(attempted).max(3.0 / limit);
    let share = if attempted == 0 { 0.0 } else { float(failed) / float(attempted) };
    let mut attempts = least;
    while attempts < 1000.0 * least {
        let (seen, of) = (whole((share * attempts).round()), whole(attempts.ceil()));
        if confirmed(seen, of, limit) || share_above(seen, of, ERROR) > limit {
            break;
        }
        attempts *= 1.1;
    }
    whole(attempts.ceil())
}

/// Judged from 3/p attempts on, where p is the share that may be missing: what ends just beyond an edge of the window is
/// then less than p. On fewer it is broken where the exact one-sided bound on what is missing is above p, and else unknown.
fn rate(observation: &Observation<'_>, percent: f64, needed: u64) -> LimitCheck {
    let attempted = observation.attempted;
    if attempted == 0 {
        return LimitCheck::Unknown { more: needed };
    }
    let seen = 100.0 * observation.achieved / observation.offered;
    // More than was offered is served where a queue from before the window is.
    let missing = whole((float(attempted) * (1.0 - seen / 100.0)).round().max(0.0));
    if attempted < needed && share_above(missing, attempted, ERROR) <= 1.0 - percent / 100.0 {
        return LimitCheck::Unknown { more: needed - attempted };
    }
    if seen > percent { LimitCheck::Yes } else { LimitCheck::No(Seen::Percent(seen)) }
}

fn broken(yes: bool) -> f64 {
    if yes { 1.0 } else { 0.0 }
}

/// The likelihood of a share above the limit, given how many were seen and how many the limit allows.
fn excess(seen: u64, allowed: f64) -> f64 {
    /// ln(3u), where a third of the limit and u times the limit are equally likely just at the limit: u = 2.238.
    const WEIGHT: f64 = 1.904;

    1.0 / (1.0 + (-WEIGHT * (float(seen) - allowed)).exp())
}

fn slower(response: &Histogram, than: Duration) -> u64 {
    response.buckets().filter(|(time, _)| *time >= than).map(|(_, count)| count).sum()
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Mean(time) => write!(f, "avg<{}", Time(time)),
            Self::Percentile { percent, time } => write!(f, "p{percent}<{}", Time(time)),
            Self::Max(time) => write!(f, "max<{}", Time(time)),
            Self::Loss { percent } => write!(f, "loss<{percent}%"),
            Self::Rate { percent } => write!(f, "rate>{percent}%"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Time(time) => write_rounded(f, time),
            Self::Percent(percent) => write!(f, "{}%", round_to_three_digits(percent)),
            Self::PerSecond(rate) => write!(f, "{}/s", round_to_three_digits(rate)),
            Self::Nothing => f.write_str("no answer"),
        }
    }
}

/// Three digits, which is what a histogram keeps.
fn write_rounded(f: &mut fmt::Formatter<'_>, time: Duration) -> fmt::Result {
    match time.as_secs_f64() {
        seconds if seconds >= 0.9995 => write!(f, "{}s", round_to_three_digits(seconds)),
        seconds if seconds >= 0.000_999_5 => write!(f, "{}ms", round_to_three_digits(seconds * 1e3)),
        seconds => write!(f, "{}us", round_to_three_digits(seconds * 1e6)),
    }
}

/// Three significant digits, as few decimals as that takes.
fn round_to_three_digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let exponent = 2.0 - value.log10().floor();
    // Division by a whole power of ten is exact where multiplication by its inverse is not.
    if exponent >= 0.0 {
        (value * 10_f64.powf(exponent)).round() / 10_f64.powf(exponent)
    } else {
        (value / 10_f64.powf(-exponent)).round() * 10_f64.powf(-exponent)
    }
}

/// A time in the largest unit that needs no decimals; below a microsecond's with decimals.
pub(super) struct Time(pub(super) Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        if nanoseconds.is_multiple_of(1_000_000_000) {
            return write!(f, "{}s", nanoseconds / 1_000_000_000);
        }
        if nanoseconds.is_multiple_of(1_000_000) {
            return write!(f, "{}ms", nanoseconds / 1_000_000);
        }
        write!(f, "{}us", self.0.as_secs_f64() * 1e6)
    }
}
