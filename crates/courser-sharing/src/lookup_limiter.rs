//! How often a worker asks elsewhere for sessions: so often for each client's address, so many at a time, and not again
//! for a session that no peer had a moment ago. A stranger can invent IDs as fast as it sends ClientHellos.

use std::collections::HashSet;
use std::net::IpAddr;

use courser_fleet::{Buckets, Rate, source_of};
use courser_session::{ResumptionFailure, SessionId};

/// Look-ups of one worker at a time: with 5 ms each, 12,800 a second.
const AT_ONCE: usize = 64;

/// Client addresses with a budget of their own.
const SOURCES: usize = 4_096;

/// IDs of one generation of failed look-ups.
const REMEMBERED: usize = 4_096;

/// How long a generation collects: a failure is remembered for this long at least, and twice as long at most. A client
/// that lost its connection tries again within that time; a session that comes meanwhile is found here anyhow.
const GENERATION_MS: u64 = 2_000;

pub(crate) struct LookupLimiter {
    sources: Buckets<IpAddr>,
    in_flight: usize,
    failed: FailedLookups,
}

impl LookupLimiter {
    pub(crate) fn new(per_source: Rate) -> Self {
        Self { sources: Buckets::new(per_source, SOURCES), in_flight: 0, failed: FailedLookups::default() }
    }

    /// Whether a look-up may begin; it then has to [`leave`](Self::leave). `mono` is in milliseconds.
    ///
    /// # Errors
    /// [`ResumptionFailure::NotFoundRemotely`] if no peer had the session a moment ago, else [`ResumptionFailure::NotFound`].
    pub(crate) fn admit(
        &mut self,
        id: &SessionId,
        client: IpAddr,
        mono: u64,
    ) -> Result<(), ResumptionFailure> {
        if self.failed.contains(id, mono) {
            return Err(ResumptionFailure::NotFoundRemotely);
        }
        if self.in_flight == AT_ONCE || !self.sources.take(source_of(client), 1, mono) {
            return Err(ResumptionFailure::NotFound);
        }
        self.in_flight += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.in_flight -= 1;
    }

    /// Records that neither peers nor the store have this session.
    pub(crate) fn record_failure(&mut self, id: SessionId, mono: u64) {
        self.failed.add(id, mono);
    }
}

/// IDs that were asked for in vain, in two generations: the older one is forgotten as a whole.
#[derive(Default)]
struct FailedLookups {
    young: HashSet<SessionId>,
    old: HashSet<SessionId>,
    began: u64,
}

impl FailedLookups {
    fn contains(&mut self, id: &SessionId, mono: u64) -> bool {
        self.age(mono);
        self.young.contains(id) || self.old.contains(id)
    }

    fn add(&mut self, id: SessionId, mono: u64) {
        self.age(mono);
        if self.young.len() == REMEMBERED {
            self.next_generation(mono);
        }
        self.young.insert(id);
    }

    fn age(&mut self, mono: u64) {
        let age = mono.saturating_sub(self.began);
        if age >= 2 * GENERATION_MS {
            self.young.clear();
        }
        if age >= GENERATION_MS {
            self.next_generation(mono);
        }
    }

    fn next_generation(&mut self, mono: u64) {
        std::mem::swap(&mut self.young, &mut self.old);
        self.young.clear();
        self.began = mono;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10, burst: 3 };

    fn id(number: usize) -> SessionId {
        SessionId::try_from(&number.to_be_bytes()[..]).unwrap()
    }

    fn client(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn a_client_has_a_budget_and_others_theirs() {
        let mut limiter = LookupLimiter::new(RATE);
        assert!((0..3).all(|number| limiter.admit(&id(number), client(1), 0).is_ok()));
        assert_eq!(limiter.admit(&id(3), client(1), 0), Err(ResumptionFailure::NotFound));
        assert_eq!(limiter.admit(&id(3), client(2), 0), Ok(()));
        assert_eq!(limiter.admit(&id(4), client(1), 100), Ok(()), "it fills again");
    }

    #[test]
    fn only_so_many_are_under_way() {
        let mut limiter = LookupLimiter::new(Rate { per_second: 0, burst: 1_000 });
        let admitted = (0..100).filter(|&number| limiter.admit(&id(number), client(1), 0).is_ok()).count();
        assert_eq!(admitted, AT_ONCE);
        limiter.leave();
        assert_eq!(limiter.admit(&id(100), client(1), 0), Ok(()));
        assert_eq!(limiter.admit(&id(101), client(1), 0), Err(ResumptionFailure::NotFound));
    }

    #[test]
    fn what_nobody_has_is_not_asked_for_again_at_once() {
        let mut limiter = LookupLimiter::new(RATE);
        for begin in [0, 5_999, 50_000] {
            assert_eq!(limiter.admit(&id(7), client(1), begin), Ok(()), "at {begin}");
            limiter.record_failure(id(7), begin);
            for later in [0, 1, GENERATION_MS - 1] {
                assert_eq!(
                    limiter.admit(&id(7), client(1), begin + later),
                    Err(ResumptionFailure::NotFoundRemotely)
                );
            }
            assert_eq!(limiter.admit(&id(8), client(1), begin), Ok(()), "others are asked for");
        }
    }

    #[test]
    fn a_flood_of_ids_takes_no_more_room_than_two_generations() {
        let mut failed = FailedLookups::default();
        (0..100_000).for_each(|number| failed.add(id(number), 0));
        assert!(failed.young.len() + failed.old.len() <= 2 * REMEMBERED);
        assert!(failed.contains(&id(99_999), 0) && !failed.contains(&id(0), 0));
    }
}
