//! How long ticket keys and tickets live. May not accept a combination that the key ring cannot serve.

use std::fmt;
use std::time::Duration;

use crate::{CLOCK_SKEW, Lifespan, MAX_LIFETIME, UnixSeconds};

/// How long a ticket key seals unless configured otherwise: 8 hours.
pub const DEFAULT_EPOCH_LENGTH: Duration = Duration::from_secs(8 * 3600);

/// When ticket keys roll and how long tickets live. All hosts of a fleet must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketSettings {
    epoch_seconds: u64,
    lifetime: Duration,
    origin: UnixSeconds,
}

impl TicketSettings {
    /// Checks and takes the settings; fractions of seconds are dropped.
    ///
    /// * `epoch_length`: how long one key seals ([`DEFAULT_EPOCH_LENGTH`]).
    /// * `lifetime`: how long after its original full handshake a session may be resumed by ticket; cuts any longer
    ///   lifespan. Keys of past epochs are kept for as long.
    /// * `origin`: when epoch 0 began. Times before it count as epoch 0.
    ///
    /// # Errors
    /// [`BadTicketSettings`] says which value is out of range.
    pub fn new(
        epoch_length: Duration,
        lifetime: Duration,
        origin: UnixSeconds,
    ) -> Result<Self, BadTicketSettings> {
        if epoch_length < CLOCK_SKEW {
            return Err(BadTicketSettings::EpochTooShort);
        }
        if lifetime.as_secs() == 0 || lifetime > MAX_LIFETIME {
            return Err(BadTicketSettings::LifetimeOutOfRange);
        }
        let settings = Self { epoch_seconds: epoch_length.as_secs(), lifetime, origin };
        if settings.past_epochs() > MAX_PAST_EPOCHS {
            return Err(BadTicketSettings::TooManyKeys);
        }
        Ok(settings)
    }

    /// How long after its original full handshake a session may be resumed by ticket.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// The number of the epoch that `now` lies in.
    pub(super) fn epoch(&self, now: UnixSeconds) -> u64 {
        now.0.saturating_sub(self.origin.0) / self.epoch_seconds
    }

    /// The oldest epoch that a ticket which still lives in `epoch` can have been sealed in.
    pub(super) fn oldest_epoch(&self, epoch: u64) -> u64 {
        epoch.saturating_sub(self.past_epochs())
    }

    /// `lifespan`, cut to the lifetime of tickets.
    pub(super) fn limit(&self, lifespan: Lifespan) -> Lifespan {
        lifespan.ending_by(lifespan.created.plus(self.lifetime))
    }

    /// A ticket sealed in an epoch's last second lives for a lifetime more, so this many epochs are touched.
    fn past_epochs(&self) -> u64 {
        self.lifetime.as_secs().div_ceil(self.epoch_seconds)
    }
}

/// Bounds the work of rolling keys (about 3 us each) and of finding a key by its name. A week of hourly epochs fits.
const MAX_PAST_EPOCHS: u64 = 256;

/// Why ticket settings were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTicketSettings {
    /// The epoch is shorter than clocks may differ.
    EpochTooShort,
    /// The lifetime is under a second, or beyond [`MAX_LIFETIME`].
    LifetimeOutOfRange,
    /// The lifetime spans more than 256 epochs.
    TooManyKeys,
}

impl fmt::Display for BadTicketSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EpochTooShort => "a ticket key must be used for at least 60 seconds",
            Self::LifetimeOutOfRange => "a ticket's lifetime must be between one second and seven days",
            Self::TooManyKeys => "a ticket's lifetime must not span more than 256 key epochs",
        })
    }
}

impl std::error::Error for BadTicketSettings {}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const ORIGIN: UnixSeconds = UnixSeconds(1_000);

    #[test]
    fn epochs_count_from_the_origin() {
        let settings = TicketSettings::new(HOUR, HOUR, ORIGIN).unwrap();
        assert_eq!(settings.epoch(UnixSeconds(0)), 0);
        assert_eq!(settings.epoch(UnixSeconds(1_000 + 3_599)), 0);
        assert_eq!(settings.epoch(UnixSeconds(1_000 + 3_600)), 1);
        assert_eq!(settings.epoch(UnixSeconds(u64::MAX)), (u64::MAX - 1_000) / 3_600);
    }

    #[test]
    fn keeps_the_epochs_that_a_lifetime_touches() {
        let oldest =
            |lifetime: Duration| TicketSettings::new(HOUR, lifetime, ORIGIN).unwrap().oldest_epoch(100);
        assert_eq!(oldest(Duration::from_secs(1)), 99);
        assert_eq!(oldest(HOUR), 99);
        assert_eq!(oldest(HOUR + Duration::from_secs(1)), 98);
        assert_eq!(oldest(24 * HOUR), 76);
    }

    #[test]
    fn refuses_what_cannot_work() {
        let refusal = |epoch, lifetime| TicketSettings::new(epoch, lifetime, ORIGIN).unwrap_err();
        assert_eq!(refusal(Duration::ZERO, HOUR), BadTicketSettings::EpochTooShort);
        assert_eq!(refusal(Duration::from_secs(59), HOUR), BadTicketSettings::EpochTooShort);
        assert_eq!(refusal(HOUR, Duration::ZERO), BadTicketSettings::LifetimeOutOfRange);
        assert_eq!(refusal(HOUR, 169 * HOUR), BadTicketSettings::LifetimeOutOfRange);
        assert_eq!(refusal(Duration::from_secs(60), 24 * HOUR), BadTicketSettings::TooManyKeys);
        assert!(TicketSettings::new(HOUR, MAX_LIFETIME, ORIGIN).is_ok());
    }
}
