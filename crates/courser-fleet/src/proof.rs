//! The proof that a member lives: whoever answers a fresh challenge is no recording. May not remember whom it challenged,
//! so that no sender can displace that memory.

use aws_lc_rs::constant_time;
use aws_lc_rs::hmac::{self, HMAC_SHA256};

use crate::bucket::{Buckets, Rate};
use crate::content::Proof;
use crate::identity::{Incarnation, MemberId};

/// One start of a member.
pub(crate) type MemberStart = (MemberId, Incarnation);

/// Asks other members to prove that they live, and proves it to them.
pub(crate) struct Proofs {
    /// Makes challenges: each follows from it, the challenged start and the time.
    key: hmac::Key,
    /// Limits challenges to one start of a member.
    asked: Buckets<MemberStart>,
    /// Limits answers to one start of a member.
    answered: Buckets<MemberStart>,
}

impl Proofs {
    /// `random` is this start's alone, and secret.
    pub(crate) fn new(random: &[u8; 32]) -> Self {
        let key = hmac::Key::new(HMAC_SHA256, random);
        Self { key, asked: Buckets::new(ASKED, MAX_STARTS), answered: Buckets::new(ANSWERED, MAX_STARTS) }
    }

    /// The challenge for `start`; `None` if one was just sent.
    pub(crate) fn challenge(&mut self, start: MemberStart, mono: u64) -> Option<Proof> {
        let bytes = self.expected(start, mono / SLOT_MS);
        self.asked.take(start, 1, mono).then_some(Proof { to: start, bytes, last_to_all: 0 })
    }

    /// Whether `bytes` are the answer to a recent challenge of `start`.
    pub(crate) fn holds(&self, start: MemberStart, bytes: &[u8; 32], mono: u64) -> bool {
        let slot = mono / SLOT_MS;
        let slots = [Some(slot), slot.checked_sub(1)].into_iter().flatten();
        slots
            .into_iter()
            .any(|slot| constant_time::verify_slices_are_equal(&self.expected(start, slot), bytes).is_ok())
    }

    /// Whether a challenge from `start` may be answered now.
    pub(crate) fn may_answer(&mut self, start: MemberStart, mono: u64) -> bool {
        self.answered.take(start, 1, mono)
    }

    fn expected(&self, (member, incarnation): MemberStart, slot: u64) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        [&member.0[..], &incarnation.0, &slot.to_be_bytes()]
            .into_iter()
            .for_each(|part| context.update(part));
        context.sign().as_ref().try_into().expect("HMAC-SHA-256 has 32 bytes")
    }
}

/// How long a challenge stays the same; an answer is good for as long again.
const SLOT_MS: u64 = 10_000;
/// Once in 200 ms is enough for a member, and not worth a reflection.
const ASKED: Rate = Rate { per_second: 5, burst: 1 };
/// Twice what one member asks.
const ANSWERED: Rate = Rate { per_second: 10, burst: 10 };
const MAX_STARTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::now::UnixMillis;

    fn start(number: u8) -> MemberStart {
        (MemberId([number; 8]), Incarnation::new(UnixMillis(1), [number; 8]))
    }

    #[test]
    fn what_was_asked_of_one_start_holds_for_it_alone_and_not_for_long() {
        let mut proofs = Proofs::new(&[7; 32]);
        let asked = proofs.challenge(start(1), SLOT_MS - 1).unwrap();
        assert!(proofs.holds(start(1), &asked.bytes, SLOT_MS - 1));
        assert!(proofs.holds(start(1), &asked.bytes, 2 * SLOT_MS - 1));
        assert!(!proofs.holds(start(1), &asked.bytes, 2 * SLOT_MS), "too late");
        assert!(!proofs.holds(start(2), &asked.bytes, SLOT_MS), "another's");
        assert!(
            !Proofs::new(&[8; 32]).holds(start(1), &asked.bytes, SLOT_MS),
            "asked by another start of us"
        );
    }

    #[test]
    fn one_start_is_asked_five_times_a_second() {
        let mut proofs = Proofs::new(&[7; 32]);
        let asked = (0..1000).filter(|&mono| proofs.challenge(start(1), mono).is_some()).count();
        assert_eq!(asked, 5);
    }
}
