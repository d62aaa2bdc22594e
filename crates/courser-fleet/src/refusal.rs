//! Why a datagram from another host changed nothing. May not say anything of what was in it: these names go to logs.

use courser_session::reasons;

reasons! {
    /// Why a datagram was refused, in the order of the checks; but what its header alone gives away, an older start or a number
    /// that was seen, is refused before it is opened. Its [`name`](Refusal::name) is stable.
    Refusal {
        /// It is shorter than the shortest message.
        TooShort = "too_short", "shorter than the shortest message";
        /// It is no message of courser.
        NotOurs = "not_ours", "no message of courser";
        /// It is of a version that this release does not speak.
        OtherVersion = "other_version", "of a version that this release does not speak";
        /// This host sent it: multicast gave it back.
        OwnEcho = "own_echo", "our own, given back";
        /// Its source is not in the list of those allowed.
        NotAllowed = "not_allowed", "from a source that is not in the list";
        /// It was not opened: too many were opened in vain in this time.
        TooManyForged = "too_many_forged", "not opened: too many were forged, or recordings, in this time";
        /// It belongs to another fleet, or to a fleet secret that this host has not got (any more).
        OtherFleet = "other_fleet", "of another fleet, or under a fleet secret that this host has not got";
        /// Its epoch is not this one, nor one that clocks may differ by.
        UnknownEpoch = "unknown_epoch", "of another epoch: a clock is wrong, or the message is old";
        /// Its key did not seal these bytes.
        Forged = "forged", "not sealed by the key that it names";
        /// It bears this host's own name, but comes from another start of it: two hosts have the same name, or it was
        /// recorded before the restart.
        DuplicateName = "duplicate_name", "under our own name, from another start: two hosts of one name, or an old message";
        /// It is from before the sender's last restart.
        StaleIncarnation = "stale_incarnation", "from before its sender's last restart";
        /// Its sender has yet to prove that it lives: it is challenged.
        UnverifiedPeer = "unverified_peer", "from a sender that has yet to prove that it lives";
        /// It is a challenge, or the answer to one, that this host is not (any more) concerned by.
        StaleChallenge = "stale_challenge", "a challenge or an answer that does not concern this start of this host";
        /// There are as many peers as can be.
        TooManyPeers = "too_many_peers", "from one peer more than there may be";
        /// It has been seen before, or is too old to tell.
        Replayed = "replayed", "seen before, or too old to tell";
        /// Its sender, a peer, has sent more than it may.
        RateLimited = "rate_limited", "from a peer that has sent more than it may";
        /// It was sent at a time too far from now by this host's clock: one of the two is wrong, or it was held back.
        ClockSkew = "clock_skew", "sent at a time too far from ours: a clock is wrong, or it was held back";
        /// Its type is new to this release.
        UnknownType = "unknown_type", "of a type that is new to this release";
        /// It is authentic, but not in form: the sender's mistake.
        Malformed = "malformed", "authentic, but not in form";
        /// It answers what was not asked.
        Unsolicited = "unsolicited", "an answer to what was not asked";
        /// It asks for more than one peer may in this time.
        QuotaExceeded = "quota_exceeded", "asks for more than a peer may";
    }
}

impl Refusal {
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
