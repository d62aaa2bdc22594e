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
    pub const ALL: [Self; 21] = [
        Self::TooShort,
        Self::NotOurs,
        Self::OtherVersion,
        Self::OwnEcho,
        Self::NotAllowed,
        Self::TooManyForged,
        Self::OtherFleet,
        Self::UnknownEpoch,
        Self::Forged,
        Self::DuplicateName,
        Self::StaleIncarnation,
        Self::UnverifiedPeer,
        Self::StaleChallenge,
        Self::TooManyPeers,
        Self::Replayed,
        Self::RateLimited,
        Self::ClockSkew,
        Self::UnknownType,
        Self::Malformed,
        Self::Unsolicited,
        Self::QuotaExceeded,
    ];

    /// The reason's name in logs and metrics: snake case, and never changed once published.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooShort => "too_short",
            Self::NotOurs => "not_ours",
            Self::OtherVersion => "other_version",
            Self::OwnEcho => "own_echo",
            Self::NotAllowed => "not_allowed",
            Self::TooManyForged => "too_many_forged",
            Self::OtherFleet => "other_fleet",
            Self::UnknownEpoch => "unknown_epoch",
            Self::Forged => "forged",
            Self::DuplicateName => "duplicate_name",
            Self::StaleIncarnation => "stale_incarnation",
            Self::UnverifiedPeer => "unverified_peer",
            Self::StaleChallenge => "stale_challenge",
            Self::TooManyPeers => "too_many_peers",
            Self::Replayed => "replayed",
            Self::RateLimited => "rate_limited",
            Self::ClockSkew => "clock_skew",
            Self::UnknownType => "unknown_type",
            Self::Malformed => "malformed",
            Self::Unsolicited => "unsolicited",
            Self::QuotaExceeded => "quota_exceeded",
        }
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
        f.write_str(match self {
            Self::TooShort => "shorter than the shortest message",
            Self::NotOurs => "no message of courser",
            Self::OtherVersion => "of a version that this release does not speak",
            Self::OwnEcho => "our own, given back",
            Self::NotAllowed => "from a source that is not in the list",
            Self::TooManyForged => "not opened: too many were forged, or recordings, in this time",
            Self::OtherFleet => "of another fleet, or under a fleet secret that this host has not got",
            Self::UnknownEpoch => "of another epoch: a clock is wrong, or the message is old",
            Self::Forged => "not sealed by the key that it names",
            Self::DuplicateName => {
                "under our own name, from another start: two hosts of one name, or an old message"
            }
            Self::StaleIncarnation => "from before its sender's last restart",
            Self::UnverifiedPeer => "from a sender that has yet to prove that it lives",
            Self::StaleChallenge => "a challenge or an answer that does not concern this start of this host",
            Self::TooManyPeers => "from one peer more than there may be",
            Self::Replayed => "seen before, or too old to tell",
            Self::RateLimited => "from a peer that has sent more than it may",
            Self::ClockSkew => "sent at a time too far from ours: a clock is wrong, or it was held back",
            Self::UnknownType => "of a type that is new to this release",
            Self::Malformed => "authentic, but not in form",
            Self::Unsolicited => "an answer to what was not asked",
            Self::QuotaExceeded => "asks for more than a peer may",
        })
    }
}

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
