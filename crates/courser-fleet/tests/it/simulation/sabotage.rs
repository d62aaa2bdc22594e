//! Mistakes that are made on purpose, to see that the simulation notices.

use courser_session::{SharedSession, UnixSeconds};

use super::workload::STOPPED;
use super::{Plan, run};
use crate::policy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sabotage {
    None,
    /// A host pushes sessions under another policy than they were made under.
    WrongPolicy,
    /// A host pushes sessions with other bytes.
    WrongBytes,
    /// Hosts look sessions up by a clock that stands still.
    StoppedClock,
    /// Hosts start again under the same start, and so number their messages from one again.
    SameBoot,
    /// Hosts do not remember what they delete.
    ForgetsDeletions,
}

impl Sabotage {
    /// What `maker` tells the others of a session.
    pub(super) fn pushed(self, session: &SharedSession, maker: usize) -> SharedSession {
        let mut pushed = session.clone();
        match self {
            Self::WrongPolicy if maker == 3 => pushed.policy = policy("anything"),
            Self::WrongBytes if maker == 3 => pushed.state = b"another state"[..].into(),
            _ => {}
        }
        pushed
    }

    /// What a host takes for the time.
    pub(super) fn clock(self, now: UnixSeconds) -> UnixSeconds {
        if self == Self::StoppedClock { STOPPED } else { now }
    }
}

#[test]
fn every_sabotage_is_noticed() {
    let expected = [
        (Sabotage::WrongPolicy, "under another policy"),
        (Sabotage::WrongBytes, "with other bytes"),
        (Sabotage::StoppedClock, "after its end"),
        (Sabotage::SameBoot, "used a nonce twice"),
        (Sabotage::ForgetsDeletions, "knows was deleted"),
    ];
    for (sabotage, notice) in expected {
        let violation = (1..=8).find_map(|seed| run(&Plan { sabotage, ..Plan::new(seed) }).1.err());
        let Some(violation) = violation else { panic!("{sabotage:?} goes unnoticed") };
        assert!(violation.0.contains(notice), "{sabotage:?}: {}", violation.0);
    }
}
