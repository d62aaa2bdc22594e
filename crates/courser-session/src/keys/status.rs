//! Where a live secret is, for people who ask. May not change it.

use super::live::{Due, Live};
use crate::{FleetId, UnixSeconds};

/// Where a live secret is: for a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyStatus {
    /// Whose secret.
    pub fleet: FleetId,
    /// Whether this host has a state of its own, and not the key file.
    pub forward_secret: bool,
    /// The epoch that it is in.
    pub epoch: u64,
    /// When that epoch ends.
    pub rolls_at: UnixSeconds,
    /// Whether the clock and the keys agree.
    pub clock: ClockStatus,
}

/// Whether a clock and the keys of a fleet agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStatus {
    /// They do.
    Agrees,
    /// The clock is behind the keys, which do not go back: it was ahead before, or is wrong now.
    Behind,
    /// The clock leapt so far ahead that the keys did not follow.
    TooFarAhead,
}

impl KeyStatus {
    pub(super) fn of(live: &Live, now: UnixSeconds) -> Self {
        let clock = match live.course().due(now) {
            Due::Nothing | Due::Forward(_) | Due::Back(_) => ClockStatus::Agrees,
            Due::Late => ClockStatus::Behind,
            Due::Refused => ClockStatus::TooFarAhead,
        };
        let state = &live.state;
        Self {
            fleet: state.fleet,
            forward_secret: !live.is_simple(),
            epoch: state.epoch,
            rolls_at: state.epochs.begins(state.epoch + 1),
            clock,
        }
    }
}
