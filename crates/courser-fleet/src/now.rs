//! The two clocks that callers pass to a member. May not read either.

use courser_session::UnixSeconds;

/// Wall clock time in milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// The whole seconds of this time.
    pub const fn seconds(self) -> UnixSeconds {
        UnixSeconds(self.0 / 1000)
    }

    /// How long before `self` `earlier` was, in milliseconds; negative if it was after.
    pub(crate) fn since(self, earlier: Self) -> i64 {
        let (later, earlier) = (i128::from(self.0), i128::from(earlier.0));
        i64::try_from(later - earlier).unwrap_or(if later > earlier { i64::MAX } else { i64::MIN })
    }
}

/// This moment, by both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For what hosts compare: it may jump.
    pub wall: UnixMillis,
    /// For what a host waits for: milliseconds since the process began; never goes back.
    pub mono: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_times_have_a_difference() {
        assert_eq!(UnixMillis(5).since(UnixMillis(7)), -2);
        assert_eq!(UnixMillis(u64::MAX).since(UnixMillis(0)), i64::MAX);
        assert_eq!(UnixMillis(0).since(UnixMillis(u64::MAX)), i64::MIN);
    }
}
