//! Points in time and lifespans, as values: this module may not ask what time it is.

use std::time::Duration;

use crate::ResumptionFailure;

/// How far two hosts' clocks may differ before a session from one is refused by the other.
///
/// It applies to the start of a lifespan and to the first minute of a ticket epoch. It never makes a session live
/// longer: an expiry is compared exactly.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// The longest life of a session, whatever its stored expiry says: seven days (RFC 8446, section 4.6.1).
///
/// A peer of the fleet that writes an absurd expiry must not be able to make a session immortal.
pub const MAX_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Wall clock time in whole seconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixSeconds(pub u64);

impl UnixSeconds {
    /// This time plus the whole seconds of `duration`; saturates at the end of time.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_secs()))
    }
}

/// From when to when a session may be resumed. Both ends are absolute, and use never extends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifespan {
    /// When the full handshake of this session ended, on the host where it happened. Stays the same on every host
    /// that the session travels to and in every ticket that renews it.
    pub created: UnixSeconds,
    /// The first second at which the session may no longer be resumed.
    pub expires: UnixSeconds,
}

impl Lifespan {
    /// A lifespan that starts at `created` and lasts `lifetime`, but at most [`MAX_LIFETIME`].
    pub fn new(created: UnixSeconds, lifetime: Duration) -> Self {
        Self { created, expires: created.plus(lifetime.min(MAX_LIFETIME)) }
    }

    /// The same lifespan, ended at `limit` if it would last longer: for a client certificate's notAfter.
    #[must_use]
    pub fn ending_by(self, limit: UnixSeconds) -> Self {
        Self { expires: self.expires.min(limit), ..self }
    }

    /// Whole seconds that are left at `now`; zero if the session may not be resumed (any more).
    pub fn remaining(&self, now: UnixSeconds) -> Duration {
        match self.check(now) {
            Ok(()) => Duration::from_secs(self.end().0.saturating_sub(now.0)),
            Err(_) => Duration::ZERO,
        }
    }

    /// Whether a session with this lifespan may be resumed at `now`.
    ///
    /// # Errors
    /// [`ResumptionFailure::Expired`], or [`ResumptionFailure::NotYetValid`] if it was created more than [`CLOCK_SKEW`] in
    /// the future.
    pub fn check(&self, now: UnixSeconds) -> Result<(), ResumptionFailure> {
        if now >= self.end() {
            return Err(ResumptionFailure::Expired);
        }
        if self.created > now.plus(CLOCK_SKEW) {
            return Err(ResumptionFailure::NotYetValid);
        }
        Ok(())
    }

    fn end(&self) -> UnixSeconds {
        self.expires.min(self.created.plus(MAX_LIFETIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: UnixSeconds = UnixSeconds(1_000_000);

    #[test]
    fn lives_from_creation_until_just_before_expiry() {
        let lifespan = Lifespan::new(NOON, Duration::from_secs(10));
        assert_eq!(lifespan.check(NOON), Ok(()));
        assert_eq!(lifespan.check(UnixSeconds(NOON.0 + 9)), Ok(()));
        assert_eq!(lifespan.check(UnixSeconds(NOON.0 + 10)), Err(ResumptionFailure::Expired));
        assert_eq!(lifespan.remaining(UnixSeconds(NOON.0 + 4)), Duration::from_secs(6));
        assert_eq!(lifespan.remaining(UnixSeconds(NOON.0 + 11)), Duration::ZERO);
    }

    #[test]
    fn tolerates_a_clock_that_is_a_minute_behind_and_no_more() {
        let lifespan = Lifespan::new(NOON, Duration::from_secs(600));
        assert_eq!(lifespan.check(UnixSeconds(NOON.0 - 60)), Ok(()));
        assert_eq!(lifespan.check(UnixSeconds(NOON.0 - 61)), Err(ResumptionFailure::NotYetValid));
    }

    #[test]
    fn no_expiry_makes_a_session_outlive_a_week() {
        let immortal = Lifespan { created: NOON, expires: UnixSeconds(u64::MAX) };
        let week_later = NOON.plus(MAX_LIFETIME);
        assert_eq!(immortal.check(UnixSeconds(week_later.0 - 1)), Ok(()));
        assert_eq!(immortal.check(week_later), Err(ResumptionFailure::Expired));
        assert_eq!(Lifespan::new(NOON, Duration::MAX).expires, week_later);
    }

    #[test]
    fn a_certificate_that_ends_earlier_ends_the_session() {
        let lifespan = Lifespan::new(NOON, Duration::from_secs(600));
        let not_after = UnixSeconds(NOON.0 + 60);
        assert_eq!(lifespan.ending_by(not_after).expires, not_after);
        assert_eq!(lifespan.ending_by(UnixSeconds(u64::MAX)), lifespan);
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        let last = UnixSeconds(u64::MAX);
        assert_eq!(Lifespan::new(last, MAX_LIFETIME).check(last), Err(ResumptionFailure::Expired));
    }
}
