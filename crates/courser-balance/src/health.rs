//! Whether a server may get connections: what checks, connections and the operator say of it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Failures in a row after which a server is ejected. One or two happen to every server that restarts.
const FAILURES: u32 = 3;

/// Time of the first ejection; each further one is twice as long.
const FIRST_EJECTION: Duration = Duration::from_secs(5);

/// The longest ejection, and the time without failures after which the next one is short again.
const LONGEST_EJECTION: Duration = Duration::from_secs(300);

/// Time from the least weight to the whole one, after a server has come back.
const SLOW_START: Duration = Duration::from_secs(30);

/// Percent of its weight that a server has right after it has come back.
const LEAST_PERCENT: u32 = 10;

/// What a server's state says of new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Gets its share.
    Up,
    /// Has come back lately, and gets this percentage of its share.
    Starting(u32),
    /// Has failed connections; gets none for a while.
    Ejected,
    /// Fails its checks.
    Down,
    /// Gets no new connections because the operator, or the server's agent, has said so.
    Draining,
}

impl Availability {
    /// Whether the server gets connections as things are.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Up | Self::Starting(_))
    }

    /// Whether the server may get connections when no other one is good.
    pub fn is_last_resort(self) -> bool {
        self != Self::Draining
    }
}

/// Who has drained a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// The operator.
    Operator = 1,
    /// The server's agent.
    Agent = 2,
    /// Its address is in no answer of the resolver any more.
    Resolver = 4,
}

#[derive(Debug, Default)]
pub(crate) struct Health {
    failures_in_a_row: AtomicU32,
    /// Ejections without a pause of [`LONGEST_EJECTION`] between them.
    ejections: AtomicU32,
    /// Milliseconds since the start of the process, as all times here; 0 for never.
    ejected_until: AtomicU64,
    /// When it came back; 0 where it was never away.
    up_since: AtomicU64,
    is_down: AtomicBool,
    drained: AtomicU8,
}

impl Health {
    pub(crate) fn availability(&self, now: Duration) -> Availability {
        if self.drained.load(Ordering::Relaxed) != 0 {
            return Availability::Draining;
        }
        if self.is_down.load(Ordering::Relaxed) {
            return Availability::Down;
        }
        let now = millis(now);
        if now < self.ejected_until.load(Ordering::Relaxed) {
            return Availability::Ejected;
        }
        match self.up_since.load(Ordering::Relaxed) {
            0 => Availability::Up,
            since => starting(now.saturating_sub(since)),
        }
    }

    pub(crate) fn is_drained_by(&self, by: Drain) -> bool {
        self.drained.load(Ordering::Relaxed) & by as u8 != 0
    }

    pub(crate) fn ejected_for(&self, now: Duration) -> Duration {
        Duration::from_millis(self.ejected_until.load(Ordering::Relaxed).saturating_sub(millis(now)))
    }

    /// Whether it may be given connections by whoever knows no time: neither down nor drained.
    pub(crate) fn is_wanted(&self) -> bool {
        self.drained.load(Ordering::Relaxed) == 0 && !self.is_down.load(Ordering::Relaxed)
    }

    pub(crate) fn succeeded(&self) {
        // Nearly always 0 already: a load does not take the cache line from the other workers, a store does.
        if self.failures_in_a_row.load(Ordering::Relaxed) != 0 {
            self.failures_in_a_row.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a failure. Returns whether there are enough in a row for an ejection.
    pub(crate) fn failed(&self) -> bool {
        self.failures_in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES
    }

    /// Ejects the server, for twice as long as the time before. Returns for how long, or `None` where it is ejected already: of
    /// connections that fail together only the first one ejects.
    pub(crate) fn eject(&self, now: Duration) -> Option<Duration> {
        let (now_ms, until) = (millis(now), self.ejected_until.load(Ordering::Relaxed));
        if now_ms < until {
            return None;
        }
        let is_new = until == 0 || now_ms - until >= millis(LONGEST_EJECTION);
        let ejections = if is_new { 0 } else { self.ejections.load(Ordering::Relaxed) };
        let length = FIRST_EJECTION.saturating_mul(1 << ejections.min(10)).min(LONGEST_EJECTION);
        let ends = now_ms + millis(length);
        self.ejected_until.compare_exchange(until, ends, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        self.ejections.store(ejections + 1, Ordering::Relaxed);
        self.up_since.store(ends, Ordering::Relaxed);
        Some(length)
    }

    /// Sets what checks say. Returns whether that has changed.
    pub(crate) fn set_down(&self, is_down: bool, now: Duration) -> bool {
        let was_down = self.is_down.swap(is_down, Ordering::Relaxed);
        if was_down && !is_down {
            self.come_back(now);
        }
        was_down != is_down
    }

    /// Begins or ends a drain. Returns whether that has changed.
    pub(crate) fn set_drained(&self, by: Drain, is_drained: bool, now: Duration) -> bool {
        let bit = by as u8;
        let before = match is_drained {
            true => self.drained.fetch_or(bit, Ordering::Relaxed),
            false => self.drained.fetch_and(!bit, Ordering::Relaxed),
        };
        if before == bit && !is_drained {
            self.come_back(now);
        }
        (before & bit != 0) != is_drained
    }

    fn come_back(&self, now: Duration) {
        self.failures_in_a_row.store(0, Ordering::Relaxed);
        self.ejected_until.store(0, Ordering::Relaxed);
        self.up_since.store(millis(now).max(1), Ordering::Relaxed);
    }
}

fn starting(age_ms: u64) -> Availability {
    let whole = millis(SLOW_START);
    if age_ms >= whole {
        return Availability::Up;
    }
    let gained = age_ms * u64::from(100 - LEAST_PERCENT) / whole;
    Availability::Starting(LEAST_PERCENT + u32::try_from(gained).unwrap_or(0))
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn ejected(health: &Health, now: Duration) -> Option<Duration> {
        let enough = (0..FAILURES).map(|_| health.failed()).last();
        assert_eq!(enough, Some(true));
        health.eject(now)
    }

    #[test]
    fn three_failures_in_a_row_are_enough_and_a_success_between_them_starts_anew() {
        let health = Health::default();
        assert!(!health.failed());
        assert!(!health.failed());
        health.succeeded();
        assert!(!health.failed());
        assert!(!health.failed());
        assert!(health.failed());
    }

    #[test]
    fn each_ejection_is_twice_as_long_up_to_five_minutes() {
        let (health, mut now, mut lengths) = (Health::default(), at(100), Vec::new());
        for _ in 0..9 {
            let length = ejected(&health, now).unwrap();
            assert_eq!(health.availability(now), Availability::Ejected);
            now += length;
            lengths.push(length.as_secs());
        }
        assert_eq!(lengths, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(health.availability(now), Availability::Starting(LEAST_PERCENT));
    }

    #[test]
    fn five_quiet_minutes_make_the_next_ejection_short_again() {
        let health = Health::default();
        assert_eq!(ejected(&health, at(1)), Some(at(5)));
        assert_eq!(ejected(&health, at(10)), Some(at(10)));
        assert_eq!(ejected(&health, at(20 + 300)), Some(at(5)));
    }

    #[test]
    fn connections_that_fail_together_eject_once() {
        let health = Health::default();
        assert_eq!(ejected(&health, at(1)), Some(at(5)));
        assert_eq!(ejected(&health, at(2)), None);
        assert_eq!(health.availability(at(6)), Availability::Starting(LEAST_PERCENT));
    }

    #[test]
    fn a_server_that_comes_back_gets_its_weight_within_half_a_minute() {
        let health = Health::default();
        assert!(health.set_down(true, at(1)));
        assert!(!health.set_down(true, at(2)), "it was down already");
        assert_eq!(health.availability(at(3)), Availability::Down);
        assert!(health.set_down(false, at(10)));
        let percent = [10, 20, 25, 39, 40].map(|second| health.availability(at(second)));
        let expected = [10, 40, 55, 97].map(Availability::Starting);
        assert_eq!(percent[..4], expected);
        assert_eq!(percent[4], Availability::Up);
    }

    #[test]
    fn a_drain_ends_when_everyone_who_drained_has_ended_it() {
        let health = Health::default();
        assert!(health.set_drained(Drain::Operator, true, at(1)));
        assert!(health.set_drained(Drain::Agent, true, at(1)));
        assert!(health.set_drained(Drain::Agent, false, at(2)));
        assert_eq!(health.availability(at(3)), Availability::Draining);
        assert!(health.set_drained(Drain::Operator, false, at(4)));
        assert_eq!(health.availability(at(4)), Availability::Starting(LEAST_PERCENT));
        assert!(!health.set_drained(Drain::Operator, false, at(5)), "nothing has changed");
    }
}
