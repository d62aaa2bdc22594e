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
    pub const ALL: [Self; REASONS.len()] = {
        let mut all = [Self::NotOffered; REASONS.len()];
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
}

impl fmt::Display for ResumptionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REASONS[*self as usize].2)
    }
}

impl std::error::Error for ResumptionFailure {}

/// Each reason with its name and its sentence, in the order of declaration.
#[rustfmt::skip]
const REASONS: [(ResumptionFailure, &str, &str); 15] = [
    (ResumptionFailure::NotOffered, "not_offered", "the client offered no session"),
    (ResumptionFailure::NotFound, "not_found", "no session with this ID"),
    (ResumptionFailure::Evicted, "evicted", "the session had to make room for others"),
    (ResumptionFailure::Deleted, "deleted", "the session was deleted"),
    (ResumptionFailure::NotFoundRemotely, "not_found_remotely", "no host and no store has a session with this ID"),
    (ResumptionFailure::PullTimeout, "pull_timeout", "the other hosts did not answer in time"),
    (ResumptionFailure::StoreTimeout, "store_timeout", "the session store did not answer in time"),
    (ResumptionFailure::Expired, "expired", "the session has expired"),
    (ResumptionFailure::NotYetValid, "not_yet_valid", "the session was created in the future"),
    (ResumptionFailure::OtherPolicy, "other_policy", "the session was made under another policy"),
    (ResumptionFailure::OtherParameters, "other_parameters", "the session was made with another cipher suite or server name"),
    (ResumptionFailure::UnknownFormat, "unknown_format", "the ticket is of an unknown format"),
    (ResumptionFailure::UnknownKey, "unknown_key", "the ticket's key is unknown"),
    (ResumptionFailure::Forged, "forged", "the ticket is not what its key sealed"),
    (ResumptionFailure::Malformed, "malformed", "the ticket's length is impossible"),
];

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
