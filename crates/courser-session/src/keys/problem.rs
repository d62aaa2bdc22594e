//! Why the keys of a fleet cannot be used, in words for who configured them.

use std::fmt;

use crate::{FleetId, NoRandomness};

/// Why secrets cannot be used, or not together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFleetKeys {
    /// There is no secret.
    None,
    /// There are more than two.
    TooMany,
    /// The two are of one fleet.
    SameFleet {
        /// Which.
        fleet: FleetId,
    },
    /// The lifetime of sessions is under a second, or beyond [`MAX_LIFETIME`](crate::MAX_LIFETIME).
    LifetimeOutOfRange,
    /// The lifetime of sessions spans more than 256 epochs.
    TooManyKeys,
    /// The key file is from the future.
    OriginAhead {
        /// Which.
        fleet: FleetId,
        /// How far.
        seconds: u64,
    },
    /// The key file is more than a million epochs old.
    OriginTooOld {
        /// Which.
        fleet: FleetId,
    },
    /// The clock is more than 366 days ahead of the state.
    StateTooOld {
        /// Which.
        fleet: FleetId,
    },
    /// The system gave no random bytes for a secret of our own.
    NoRandomness(NoRandomness),
}

impl fmt::Display for BadFleetKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("there is no fleet key"),
            Self::TooMany => {
                f.write_str("there are more than two fleet keys: one seals, and one more can open")
            }
            Self::SameFleet { fleet } => write!(f, "both keys are of fleet {fleet}: name it once"),
            Self::LifetimeOutOfRange => {
                f.write_str("the lifetime of sessions must be between one second and seven days")
            }
            Self::TooManyKeys => f.write_str(
                "the lifetime of sessions must not span more than 256 epochs: make it shorter, or a key with \
                 longer epochs",
            ),
            Self::OriginAhead { fleet, seconds } => write!(
                f,
                "the key of fleet {fleet} was made {seconds} seconds in the future: set the clock of this host"
            ),
            Self::OriginTooOld { fleet } => write!(
                f,
                "the key of fleet {fleet} was made more than a million epochs ago: set the clock of this host, or make \
                 a new key with `courser fleet keygen`"
            ),
            Self::StateTooOld { fleet } => write!(
                f,
                "the state of fleet {fleet} is more than a year behind the clock: set the clock of this host, or take \
                 the state of another member with `courser fleet export`"
            ),
            Self::NoRandomness(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BadFleetKeys {}
