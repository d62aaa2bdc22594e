//! Why a session was not resumed. May not reveal anything of the session itself: these names go to logs.

use std::fmt;

/// Why a client gets a full handshake. Its [`name`](ResumptionFailure::name) is stable: logs and metrics use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumptionFailure {
    /// The client offered nothing to resume. Never returned by this crate: for callers who count every handshake.
    NotOffered,
    /// The cache has no session with this ID, and no peer or store was asked: it was never here, or was removed or taken.
    NotFound,
    /// The session was here and had to make room: the cache is too small for how long clients stay away. Of IDs that
    /// were never here, up to one in 65,536 is taken for an evicted one (in shards above 16 MiB, more).
    Evicted,
    /// The session was deleted, here or on another host, because a handshake with it ended badly.
    Deleted,
    /// Neither this host nor the peers and the store that were asked have the session. Never returned by this crate: for
    /// callers that ask them.
    NotFoundRemotely,
    /// The session is not here, and the peers that were asked did not all answer in time. Never returned by this crate.
    PullTimeout,
    /// The session is not here, and the store that was asked did not answer in time, or is known not to. Never returned
    /// by this crate.
    StoreTimeout,
    /// The session's lifespan is over.
    Expired,
    /// The session was created further in the future than clocks may differ.
    NotYetValid,
    /// The session is genuine, but was made under another policy.
    OtherPolicy,
    /// The session is genuine, but was made with another cipher suite or server name than this handshake chose. Never
    /// returned by this crate: for the TLS library's own check.
    OtherParameters,
    /// The ticket is of a format that this version does not read, or was made by another program.
    UnknownFormat,
    /// The ticket's key is not, or no longer, or not yet, one of ours.
    UnknownKey,
    /// The ticket names one of our keys, but the key did not seal these bytes.
    Forged,
    /// The ticket is shorter than the shortest one, or longer than the longest.
    Malformed,
}

impl ResumptionFailure {
    /// Every reason, in the order of their declaration, which is the order of [`FailureCounts`](crate::FailureCounts).
    pub const ALL: [Self; 15] = [
        Self::NotOffered,
        Self::NotFound,
        Self::Evicted,
        Self::Deleted,
        Self::NotFoundRemotely,
        Self::PullTimeout,
        Self::StoreTimeout,
        Self::Expired,
        Self::NotYetValid,
        Self::OtherPolicy,
        Self::OtherParameters,
        Self::UnknownFormat,
        Self::UnknownKey,
        Self::Forged,
        Self::Malformed,
    ];

    /// The reason's name in logs and metrics: snake case, and never changed once published.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotOffered => "not_offered",
            Self::NotFound => "not_found",
            Self::Evicted => "evicted",
            Self::Deleted => "deleted",
            Self::NotFoundRemotely => "not_found_remotely",
            Self::PullTimeout => "pull_timeout",
            Self::StoreTimeout => "store_timeout",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::OtherPolicy => "other_policy",
            Self::OtherParameters => "other_parameters",
            Self::UnknownFormat => "unknown_format",
            Self::UnknownKey => "unknown_key",
            Self::Forged => "forged",
            Self::Malformed => "malformed",
        }
    }
}

impl fmt::Display for ResumptionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOffered => "the client offered no session",
            Self::NotFound => "no session with this ID",
            Self::Evicted => "the session had to make room for others",
            Self::Deleted => "the session was deleted",
            Self::NotFoundRemotely => "no host and no store has a session with this ID",
            Self::PullTimeout => "the other hosts did not answer in time",
            Self::StoreTimeout => "the session store did not answer in time",
            Self::Expired => "the session has expired",
            Self::NotYetValid => "the session was created in the future",
            Self::OtherPolicy => "the session was made under another policy",
            Self::OtherParameters => "the session was made with another cipher suite or server name",
            Self::UnknownFormat => "the ticket is of an unknown format",
            Self::UnknownKey => "the ticket's key is unknown",
            Self::Forged => "the ticket is not what its key sealed",
            Self::Malformed => "the ticket's length is impossible",
        })
    }
}

impl std::error::Error for ResumptionFailure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_the_order_of_declaration() {
        for (position, failure) in ResumptionFailure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, position, "{}", failure.name());
        }
    }

    #[test]
    fn names_are_distinct_snake_case() {
        let mut names: Vec<_> = ResumptionFailure::ALL.map(ResumptionFailure::name).to_vec();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ResumptionFailure::ALL.len());
    }
}
