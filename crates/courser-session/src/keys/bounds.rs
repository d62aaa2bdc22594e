//! How far epochs may lie apart: bounds on the work of rolling keys and on what a clock is believed. Pure arithmetic.

use std::time::Duration;

use super::problem::BadFleetKeys;
use crate::epoch::Epochs;
use crate::{FleetKey, MAX_LIFETIME, UnixSeconds};

/// How many past epochs' keys a session's lifetime needs: what is sealed in an epoch's last second lives on for a
/// lifetime.
pub(crate) fn past_epochs(epochs: &Epochs, lifetime: Duration) -> Result<u64, BadFleetKeys> {
    if lifetime.as_secs() == 0 || lifetime > MAX_LIFETIME {
        return Err(BadFleetKeys::LifetimeOutOfRange);
    }
    let past = epochs.touched_by(lifetime);
    if past > MAX_PAST_EPOCHS { Err(BadFleetKeys::TooManyKeys) } else { Ok(past) }
}

/// The epoch that a key file leads to at `now`, if a file and a clock that are right can say so.
pub(crate) fn epoch_of(key: &FleetKey, now: UnixSeconds) -> Result<u64, BadFleetKeys> {
    let Epochs { origin, .. } = key.epochs;
    if origin > now.plus(MAX_ORIGIN_AHEAD) {
        return Err(BadFleetKeys::OriginAhead { fleet: key.fleet, seconds: origin.0 - now.0 });
    }
    let epoch = key.epochs.number(now);
    if epoch > MAX_EPOCHS_AT_ONCE { Err(BadFleetKeys::OriginTooOld { fleet: key.fleet }) } else { Ok(epoch) }
}

/// Bounds the work of rolling keys (under 3 us each) and of finding a key by its name. A week of hourly epochs fits.
pub(crate) const MAX_PAST_EPOCHS: u64 = 256;

/// Bounds the work from a key file's origin to now: about five seconds in a build without optimisation. 900 years at 8
/// hours each, two at a minute.
pub(super) const MAX_EPOCHS_AT_ONCE: u64 = 1_000_000;

/// A key file that was made just now on a host whose clock is ahead.
const MAX_ORIGIN_AHEAD: Duration = Duration::from_secs(3600);
