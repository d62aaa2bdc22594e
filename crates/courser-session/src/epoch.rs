//! Epochs: how long a fleet's keys seal, and which epoch a time lies in. May not ask what time it is.

use std::fmt;
use std::time::Duration;

use crate::{CLOCK_SKEW, UnixSeconds};

/// How long a fleet seals with one set of keys: from [`CLOCK_SKEW`] to seven days, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochLength(u64);

impl EpochLength {
    /// What a key is made with unless configured otherwise: 8 hours.
    pub const DEFAULT: Self = Self(8 * 3600);

    pub(crate) const MIN: u64 = CLOCK_SKEW.as_secs();
    pub(crate) const MAX: u64 = 7 * 24 * 3600;

    /// Checks and takes a length; fractions of seconds are dropped.
    ///
    /// # Errors
    /// [`BadEpochLength`] if it is under 60 seconds or over seven days.
    pub fn new(length: Duration) -> Result<Self, BadEpochLength> {
        Self::from_seconds(length.as_secs()).ok_or(BadEpochLength)
    }

    /// The length in seconds.
    pub fn seconds(self) -> u64 {
        self.0
    }

    pub(crate) fn from_seconds(seconds: u64) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&seconds).then_some(Self(seconds))
    }
}

/// An epoch must last from 60 seconds to seven days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEpochLength;

impl fmt::Display for BadEpochLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fleet's keys must seal for at least 60 seconds and at most 7 days")
    }
}

impl std::error::Error for BadEpochLength {}

/// Where epochs begin. All hosts of a fleet have the same, from the key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epochs {
    /// When epoch 0 began; times before it count as epoch 0.
    pub(crate) origin: UnixSeconds,
    pub(crate) length: EpochLength,
}

impl Epochs {
    /// The number of the epoch that `now` lies in, at most [`LAST_EPOCH`].
    pub(crate) fn number(&self, now: UnixSeconds) -> u64 {
        (now.0.saturating_sub(self.origin.0) / self.length.0).min(LAST_EPOCH)
    }

    /// The first second of an epoch.
    pub(crate) fn begins(&self, epoch: u64) -> UnixSeconds {
        UnixSeconds(self.origin.0.saturating_add(epoch.saturating_mul(self.length.0)))
    }

    /// How many epochs fit into `span`, the last one perhaps in part.
    pub(crate) fn touched_by(&self, span: Duration) -> u64 {
        span.as_secs().div_ceil(self.length.0)
    }
}

/// No epoch has a higher number: at the shortest length this is 8000 years on, so that adding to an epoch cannot
/// overflow.
pub(crate) const LAST_EPOCH: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCHS: Epochs = Epochs { origin: UnixSeconds(1_000), length: EpochLength(3_600) };

    #[test]
    fn epochs_count_from_the_origin() {
        assert_eq!(EPOCHS.number(UnixSeconds(0)), 0);
        assert_eq!(EPOCHS.number(UnixSeconds(1_000 + 3_599)), 0);
        assert_eq!(EPOCHS.number(UnixSeconds(1_000 + 3_600)), 1);
        assert_eq!(EPOCHS.number(UnixSeconds(u64::MAX)), LAST_EPOCH);
        assert_eq!(EPOCHS.begins(1), UnixSeconds(4_600));
    }

    #[test]
    fn counts_the_epochs_that_a_lifetime_touches() {
        let touched = |seconds| EPOCHS.touched_by(Duration::from_secs(seconds));
        assert_eq!([touched(1), touched(3_600), touched(3_601), touched(86_400)], [1, 1, 2, 24]);
    }

    #[test]
    fn refuses_lengths_that_cannot_work() {
        let refused = |seconds| EpochLength::new(Duration::from_secs(seconds)) == Err(BadEpochLength);
        assert!(refused(0) && refused(59) && refused(7 * 86_400 + 1));
        assert!(!refused(60) && !refused(7 * 86_400));
    }
}
