//! The share of its cores that a target is held to: where generator and origin have one core together, a target that has a
//! whole one can be faster than they are, and then its rate is theirs. Held to half of it, the target is the limit.

use courser_machine::quota::{CpuLimit, LimitError, LimitGroup};
use courser_record::lab::{Measure, ServerShare};

use crate::cores::CoreMap;
use crate::suite::CaseSpec;

/// The share where no other is asked for: the cheapest target is the limit with it, and 2.5 ms is a quota that distorts
/// little (METHODOLOGY.md, "A server held to a share of its core").
pub const HALF: f64 = 0.5;

/// What share of their cores targets are held to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ShareChoice {
    /// Half of one core where generator and origin have one together, all of them otherwise.
    #[default]
    Auto,
    /// All of them.
    Off,
    /// So much of each, below 1.
    Of(f64),
}

impl ShareChoice {
    /// The share of what is reached directly, where targets have `share`: it does so little for each connection that the
    /// generator would be its limit.
    pub(crate) fn of_direct(self, share: f64) -> f64 {
        if self == Self::Auto { share / 2.0 } else { share }
    }

    /// The share of a case; `None` for all of it. At a rate that is given the generator is no limit, and response times
    /// are what is asked: they would have the period of the limit in them.
    pub(crate) fn of(self, spec: &CaseSpec, map: &CoreMap) -> Option<f64> {
        match self {
            Self::Off => None,
            Self::Of(share) => Some(share),
            Self::Auto => {
                (map.is_shared() && spec.cores == 1 && spec.measure != Measure::Rate).then_some(HALF)
            }
        }
    }
}

/// Whether this machine lets us hold processes to a share, found out by doing it.
///
/// # Errors
/// What is missing.
pub fn probe(share: f64) -> Result<(), LimitError> {
    LimitGroup::new(CpuLimit::of_cores(share)).map(drop)
}

/// Holds a family of processes to a share of so many cores, for as long as the group lives.
///
/// # Errors
/// In a sentence.
pub fn hold(root: u32, share: f64, cores: usize) -> Result<(LimitGroup, ServerShare), String> {
    let limit = CpuLimit::of_cores(share * cores as f64);
    let group = LimitGroup::new(limit).map_err(|why| why.to_string())?;
    group.hold(root).map_err(|why| format!("cannot hold it to a share of its cores: {why}"))?;
    let us = crate::to_record::micros;
    Ok((group, ServerShare { share, quota_us: us(limit.quota), period_us: us(limit.period) }))
}
