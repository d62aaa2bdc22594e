//! How long to wait before a store is tried again. Pure: chance is an argument.

use std::time::Duration;

/// The first pause: a server that restarts is back in that time or somewhat later.
const FIRST: Duration = Duration::from_millis(100);

/// The longest. A store that comes back is in use within this time.
const LONGEST: Duration = Duration::from_secs(10);

/// Pauses that double from [`FIRST`] to [`LONGEST`].
#[derive(Debug)]
pub(crate) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    /// The next pause: between half of it and the whole, by `chance` in 0..1, so that the workers of many hosts do not
    /// come back in step.
    pub(crate) fn next(&mut self, chance: f64) -> Duration {
        let pause = self.next.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        self.next = (self.next * 2).min(LONGEST);
        pause
    }

    /// The store has been steady: begin anew.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_double_up_to_ten_seconds_and_begin_anew() {
        let mut pauses = Pauses::new();
        let longest: Vec<_> = (0..9).map(|_| pauses.next(1.0).as_millis()).collect();
        assert_eq!(longest, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        pauses.reset();
        assert_eq!(pauses.next(0.0), Duration::from_millis(50));
    }
}
