//! Why a datagram from another host changed nothing. May not say anything of what was in it: these names go to logs.

use std::fmt;

/// Why a datagram was refused, in the order of the checks; but what its header alone gives away, an older start or a number
/// that was seen, is refused before it is opened. Its [`name`](Refusal::name) is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It is shorter than the shortest message.
    TooShort,
    /// It is no message of courser.
    NotOurs,
    /// It is of a version that this release does not speak.
    OtherVersion,
    /// This host sent it: multicast gave it back.
    OwnEcho,
    /// Its source is not in the list of those allowed.
    NotAllowed,
    /// It was not opened: too many were opened in vain in this time.
    TooManyForged,
    /// It belongs to another fleet, or to a fleet secret that this host has not got (any more).
    OtherFleet,
    /// Its epoch is not this one, nor one that clocks may differ by.
    UnknownEpoch,
    /// Its key did not seal these bytes.
    Forged,
    /// It bears this host's own name, but comes from another start of it: two hosts have the same name, or it was
    /// recorded before the restart.
    DuplicateName,
    /// It is from before the sender's last restart.
    StaleIncarnation,
    /// Its sender has yet to prove that it lives: it is challenged.
    UnverifiedPeer,
    /// It is a challenge, or the answer to one, that this host is not (any more) concerned by.
    StaleChallenge,
    /// There are as many peers as can be.
    TooManyPeers,
    /// It has been seen before, or is too old to tell.
    Replayed,
    /// Its sender, a peer, has sent more than it may.
    RateLimited,
    /// It was sent at a time too far from now by this host's clock: one of the two is wrong, or it was held back.
    ClockSkew,
    /// Its type is new to this release.
    UnknownType,
    /// It is authentic, but not in form: the sender's mistake.
    Malformed,
    /// It answers what was not asked.
    Unsolicited,
    /// It asks for more than one peer may in this time.
    QuotaExceeded,
}

impl Refusal {
    /// Every reason, in the order of their declaration, which is the order of [`Refused`](crate::Refused).
    pub const ALL: [Self; REASONS.len()] = {
        let mut all = [Self::TooShort; REASONS.len()];
        let mut place = 0;
        while place < all.len() {
            assert!(REASONS[place].0 as usize == place, "rows stand in the order of declaration");
            all[place] = REASONS[place].0;
            place += 1;
        }
        all
    };

    /// The reason's name in logs and metrics: snake case, and never changed once published.
    pub const fn name(self) -> &'static str {
        REASONS[self as usize].1
    }

    /// Whether it may be that two hosts do not fit together: by their keys, clocks, names, releases or lists. The others
    /// are part of an ordinary day, or somebody's noise.
    pub const fn may_be_a_mistake(self) -> bool {
        matches!(
            self,
            Self::OtherVersion
                | Self::NotAllowed
                | Self::OtherFleet
                | Self::UnknownEpoch
                | Self::Forged
                | Self::DuplicateName
                | Self::TooManyPeers
                | Self::ClockSkew
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REASONS[*self as usize].2)
    }
}

/// Each reason with its name and its sentence, in the order of declaration.
#[rustfmt::skip]
const REASONS: [(Refusal, &str, &str); 21] = [
    (Refusal::TooShort, "too_short", "shorter than the shortest message"),
    (Refusal::NotOurs, "not_ours", "no message of courser"),
    (Refusal::OtherVersion, "other_version", "of a version that this release does not speak"),
    (Refusal::OwnEcho, "own_echo", "our own, given back"),
    (Refusal::NotAllowed, "not_allowed", "from a source that is not in the list"),
    (Refusal::TooManyForged, "too_many_forged", "not opened: too many were forged, or recordings, in this time"),
    (Refusal::OtherFleet, "other_fleet", "of another fleet, or under a fleet secret that this host has not got"),
    (Refusal::UnknownEpoch, "unknown_epoch", "of another epoch: a clock is wrong, or the message is old"),
    (Refusal::Forged, "forged", "not sealed by the key that it names"),
    (Refusal::DuplicateName, "duplicate_name", "under our own name, from another start: two hosts of one name, or an old message"),
    (Refusal::StaleIncarnation, "stale_incarnation", "from before its sender's last restart"),
    (Refusal::UnverifiedPeer, "unverified_peer", "from a sender that has yet to prove that it lives"),
    (Refusal::StaleChallenge, "stale_challenge", "a challenge or an answer that does not concern this start of this host"),
    (Refusal::TooManyPeers, "too_many_peers", "from one peer more than there may be"),
    (Refusal::Replayed, "replayed", "seen before, or too old to tell"),
    (Refusal::RateLimited, "rate_limited", "from a peer that has sent more than it may"),
    (Refusal::ClockSkew, "clock_skew", "sent at a time too far from ours: a clock is wrong, or it was held back"),
    (Refusal::UnknownType, "unknown_type", "of a type that is new to this release"),
    (Refusal::Malformed, "malformed", "authentic, but not in form"),
    (Refusal::Unsolicited, "unsolicited", "an answer to what was not asked"),
    (Refusal::QuotaExceeded, "quota_exceeded", "asks for more than a peer may"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_the_order_of_declaration() {
        for (position, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, position, "{}", refusal.name());
        }
    }

    #[test]
    fn names_are_for_machines_and_sentences_for_people() {
        for refusal in Refusal::ALL {
            assert!(refusal.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
            assert!(refusal.to_string().contains(' '));
        }
        let names: std::collections::HashSet<_> = Refusal::ALL.map(Refusal::name).into();
        assert_eq!(names.len(), Refusal::ALL.len());
    }
}
