//! Why a session was not resumed. May not reveal anything of the session itself: these names go to logs.

use crate::reasons;

reasons! {
    /// Why a client gets a full handshake. Its [`name`](ResumptionFailure::name) is stable: logs and metrics use it.
    ResumptionFailure {
        /// The client offered nothing to resume. Never returned by this crate: for callers who count every handshake.
        NotOffered = "not_offered", "the client offered no session";
        /// The cache has no session with this ID, and no peer or store was asked: it was never here, or was removed or taken.
        NotFound = "not_found", "no session with this ID";
        /// The session was here and had to make room: the cache is too small for how long clients stay away. Of IDs that
        /// were never here, up to one in 65,536 is taken for an evicted one (in shards above 16 MiB, more).
        Evicted = "evicted", "the session had to make room for others";
        /// The session was deleted, here or on another host, because a handshake with it ended badly.
        Deleted = "deleted", "the session was deleted";
        /// Neither this host nor the peers and the store that were asked have the session. Never returned by this crate: for
        /// callers that ask them.
        NotFoundRemotely = "not_found_remotely", "no host and no store has a session with this ID";
        /// The session is not here, and the peers that were asked did not all answer in time. Never returned by this crate.
        PullTimeout = "pull_timeout", "the other hosts did not answer in time";
        /// The session is not here, and the store that was asked did not answer in time, or is known not to. Never returned
        /// by this crate.
        StoreTimeout = "store_timeout", "the session store did not answer in time";
        /// The session's lifespan is over.
        Expired = "expired", "the session has expired";
        /// The session was created further in the future than clocks may differ.
        NotYetValid = "not_yet_valid", "the session was created in the future";
        /// The session is genuine, but was made under another policy.
        OtherPolicy = "other_policy", "the session was made under another policy";
        /// The session is genuine, but was made with another cipher suite or server name than this handshake chose. Never
        /// returned by this crate: for the TLS library's own check.
        OtherParameters = "other_parameters", "the session was made with another cipher suite or server name";
        /// The ticket is of a format that this version does not read, or was made by another program.
        UnknownFormat = "unknown_format", "the ticket is of an unknown format";
        /// The ticket's key is not, or no longer, or not yet, one of ours.
        UnknownKey = "unknown_key", "the ticket's key is unknown";
        /// The ticket names one of our keys, but the key did not seal these bytes.
        Forged = "forged", "the ticket is not what its key sealed";
        /// The ticket is shorter than the shortest one, or longer than the longest.
        Malformed = "malformed", "the ticket's length is impossible";
    }
}

impl std::error::Error for ResumptionFailure {}
