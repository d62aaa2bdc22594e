//! Results of the cache. May not hold on to a state: it is shared, not lent.

use crate::{Lifespan, State};

/// Where a session was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// By a full handshake on this host.
    Local,
    /// On another host of the fleet.
    Remote,
}

/// The outcome of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is remembered.
    Stored,
    /// It is remembered in place of an older one with the same ID.
    Replaced,
    /// It came from elsewhere, and this host already has a session of this ID.
    Duplicate,
    /// It came from elsewhere, and was deleted before.
    Tombstoned,
    /// It was refused: its lifespan is over, or begins in the future.
    NotValid,
    /// It was refused: it would take more than an eighth of a shard.
    TooLarge,
}

impl Put {
    /// Whether the session is now remembered.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Stored | Self::Replaced)
    }
}

/// A session that may be resumed.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its state, shared with the cache.
    pub state: State,
    /// Its original lifespan.
    pub lifespan: Lifespan,
    /// Where it was made.
    pub origin: Provenance,
}
