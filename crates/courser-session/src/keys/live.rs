//! One live secret, and when it rolls. May not read a clock.

use std::cmp::Ordering;
use std::time::Duration;

use zeroize::Zeroizing;

use super::bounds::{MAX_EPOCHS_AT_ONCE, past_epochs};
use super::problem::BadFleetKeys;
use crate::epoch::Epochs;
use crate::{CLOCK_SKEW, FleetId, FleetKey, FleetState, UnixSeconds};

/// Where a live secret comes from.
#[derive(Debug)]
pub enum Source {
    /// A key file: simple mode.
    Simple(FleetKey),
    /// A state of its own: forward-secret mode.
    Ratcheted(FleetState),
}

/// A secret in use.
pub(super) struct Live {
    pub(super) state: FleetState,
    /// The key file, in simple mode.
    key: Option<FleetKey>,
    past_epochs: u64,
    /// Whether it is this host's alone: no other has to have the same.
    alone: bool,
    /// Whether `state` differs from what was last given to be written. Never in simple mode.
    unwritten: bool,
}

impl Live {
    /// The secret of `source` at `now`.
    pub(super) fn new(source: Source, lifetime: Duration, now: UnixSeconds) -> Result<Self, BadFleetKeys> {
        match source {
            Source::Simple(key) => {
                let state = FleetState::from_key(&key, lifetime, now)?;
                let past_epochs = past_epochs(&key.epochs, lifetime)?;
                Ok(Self { state, key: Some(key), past_epochs, alone: false, unwritten: false })
            }
            Source::Ratcheted(state) => Self::ratcheted(state, false, lifetime, now),
        }
    }

    /// A secret of this host alone.
    pub(super) fn alone(
        state: FleetState,
        lifetime: Duration,
        now: UnixSeconds,
    ) -> Result<Self, BadFleetKeys> {
        Self::ratcheted(state, true, lifetime, now)
    }

    fn ratcheted(
        state: FleetState,
        alone: bool,
        lifetime: Duration,
        now: UnixSeconds,
    ) -> Result<Self, BadFleetKeys> {
        let past_epochs = past_epochs(&state.epochs, lifetime)?;
        // Written at the start even if nothing rolls, so that a disk that refuses is known before it matters.
        let mut live = Self { state, key: None, past_epochs, alone, unwritten: true };
        if live.course().due(now) == Due::Refused && !alone {
            return Err(BadFleetKeys::StateTooOld { fleet: live.state.fleet });
        }
        live.state.keep_past(past_epochs);
        live.advance(now);
        Ok(live)
    }

    /// What decides when this secret rolls.
    pub(super) fn course(&self) -> Course {
        Course { epochs: self.state.epochs, epoch: self.state.epoch, simple: self.is_simple() }
    }

    pub(super) fn is_simple(&self) -> bool {
        self.key.is_some()
    }

    /// Does what is due at `now`. Says whether anything changed.
    pub(super) fn advance(&mut self, now: UnixSeconds) -> bool {
        let rolled = self.roll(now);
        let changed = self.state.forget_previous(now) || rolled;
        self.unwritten |= changed && !self.is_simple();
        changed
    }

    /// The text that has to be written, if any: once for each change.
    pub(super) fn take_unwritten(&mut self) -> Option<(FleetId, Zeroizing<String>)> {
        std::mem::take(&mut self.unwritten).then(|| (self.state.fleet, self.state.to_text()))
    }

    fn roll(&mut self, now: UnixSeconds) -> bool {
        if self.alone && self.course().is_lost(now) {
            return self.begin_anew(now);
        }
        match (self.course().due(now), &self.key) {
            (Due::Nothing | Due::Late | Due::Refused, _) | (Due::Back(_), None) => return false,
            (Due::Forward(epoch), _) => self.state.roll_to(epoch, self.past_epochs),
            (Due::Back(epoch), Some(key)) => self.state = FleetState::at(key, epoch, self.past_epochs),
        }
        true
    }
}

impl Live {
    /// Takes a new secret; what the old one sealed is lost. It stays where the system has no random bytes.
    fn begin_anew(&mut self, now: UnixSeconds) -> bool {
        let Ok(key) = FleetKey::generate(self.state.epochs.length, now) else { return false };
        self.state = FleetState::at(&key, 0, self.past_epochs);
        true
    }
}

/// When one secret rolls: pure arithmetic on its epoch and the time.
#[derive(Clone, Copy)]
pub(super) struct Course {
    pub(super) epochs: Epochs,
    pub(super) epoch: u64,
    pub(super) simple: bool,
}

/// What the time asks of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Roll on to this epoch.
    Forward(u64),
    /// Start again from the key file and go to this epoch: simple mode alone can.
    Back(u64),
    /// The clock is behind the keys, and what they were is gone: go on with them until the clock has caught up.
    Late,
    /// The clock says that so much time has passed that the clock is not believed.
    Refused,
}

impl Course {
    pub(super) fn due(&self, now: UnixSeconds) -> Due {
        let epoch = self.epochs.number(now);
        match epoch.cmp(&self.epoch) {
            Ordering::Equal => Due::Nothing,
            Ordering::Greater if self.believes(epoch) => Due::Forward(epoch),
            Ordering::Greater => Due::Refused,
            // Threads pass the end of an epoch at slightly different times, and need not roll it back and forth.
            Ordering::Less if now.plus(CLOCK_SKEW) >= self.epochs.begins(self.epoch) => Due::Nothing,
            Ordering::Less if self.simple => Due::Back(epoch),
            Ordering::Less => Due::Late,
        }
    }

    /// Whether the clock was wrong by so much when these epochs began, or is now, that nothing would roll for long.
    fn is_lost(&self, now: UnixSeconds) -> bool {
        let epoch_later = now.plus(Duration::from_secs(self.epochs.length.seconds()));
        self.due(now) == Due::Refused || epoch_later < self.epochs.begins(self.epoch)
    }

    /// In simple mode the key file leads back, so that only the work is bounded.
    fn believes(&self, epoch: u64) -> bool {
        let leap = self.epochs.begins(epoch).0 - self.epochs.begins(self.epoch).0;
        leap <= MAX_LEAP.as_secs() || self.simple && epoch <= MAX_EPOCHS_AT_ONCE
    }
}

/// A secret that has ratcheted cannot go back, so a clock that is decades ahead must not take it along: this host
/// would be of no use to its fleet until then. A host that was off for a year is believed; so is every mistake
/// of a time zone, a month or a leap year. All of a fleet's hosts have to agree on this, so it is not a setting.
const MAX_LEAP: Duration = Duration::from_secs(366 * 24 * 3600);
