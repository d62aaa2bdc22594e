//! What a host has of its fleet's keys at one time: the secret of the current epoch, and of past epochs what opens
//! the sessions that still live. May not go back, open a file or read a clock.

pub(crate) mod text;

use std::fmt;
use std::time::Duration;

use crate::epoch::Epochs;
use crate::keys::bounds::{epoch_of, past_epochs};
use crate::keys::problem::BadFleetKeys;
use crate::ratchet::{EpochSecret, KeysOfEpoch};
use crate::{CLOCK_SKEW, FleetId, FleetKey, SecretBytes, UnixSeconds};

/// A fleet's keys in one epoch. In forward-secret mode this, as [text](Self::to_text), is all that a host keeps:
/// who steals it can open what is sealed from this epoch on, and sessions that could be resumed anyway, but no
/// older capture.
///
/// A host that joins gets the state of any member.
pub struct FleetState {
    pub(crate) fleet: FleetId,
    pub(crate) epochs: Epochs,
    pub(crate) epoch: u64,
    pub(crate) secret: EpochSecret,
    /// Oldest first; of epochs before `epoch` alone.
    pub(crate) past: Vec<KeysOfEpoch>,
    /// While a host whose clock is late may still send under it: see [`Self::forget_previous`].
    pub(crate) previous_message: Option<SecretBytes<32>>,
}

impl FleetState {
    /// The state that a key file leads to at `now`, for sessions that live for `lifetime`. Once every host has its
    /// own, the file can be destroyed.
    ///
    /// # Errors
    /// [`BadFleetKeys`] if the file's origin and the clock do not fit, or the lifetime is out of range.
    pub fn from_key(key: &FleetKey, lifetime: Duration, now: UnixSeconds) -> Result<Self, BadFleetKeys> {
        Ok(Self::at(key, epoch_of(key, now)?, past_epochs(&key.epochs, lifetime)?))
    }

    /// The state that `key` leads to in `epoch`, with the keys of `past_epochs` before it.
    pub(crate) fn at(key: &FleetKey, epoch: u64, past_epochs: u64) -> Self {
        let mut state = Self {
            fleet: key.fleet,
            epochs: key.epochs,
            epoch: 0,
            secret: EpochSecret(key.secret.copy()),
            past: Vec::new(),
            previous_message: None,
        };
        state.roll_to(epoch, past_epochs);
        state
    }

    /// The fleet's name.
    pub fn id(&self) -> FleetId {
        self.fleet
    }

    /// When the fleet's first epoch began: of two fleets the one made later has the later origin.
    pub fn origin(&self) -> UnixSeconds {
        self.epochs.origin
    }

    /// The epoch whose secret this holds.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Rolls on to `epoch`, if that is later, and keeps the keys of `past_epochs` before it. The rest is wiped.
    pub(crate) fn roll_to(&mut self, epoch: u64, past_epochs: u64) {
        let oldest = epoch.saturating_sub(past_epochs);
        while self.epoch < epoch {
            let root = self.secret.root(self.fleet);
            if self.epoch >= oldest {
                self.past.push(root.keys(self.epoch));
            }
            self.previous_message = (self.epoch + 1 == epoch).then(|| root.message_secret());
            self.secret = root.next();
            self.epoch += 1;
        }
        self.keep_past(past_epochs);
    }

    /// Wipes the keys of epochs further back than `past_epochs`.
    pub(crate) fn keep_past(&mut self, past_epochs: u64) {
        let oldest = self.epoch.saturating_sub(past_epochs);
        self.past.retain(|keys| keys.epoch >= oldest);
    }

    /// Wipes the message secret of the previous epoch when no clock that is right can be in it. Says whether it did.
    pub(crate) fn forget_previous(&mut self, now: UnixSeconds) -> bool {
        let needed = now < self.epochs.begins(self.epoch).plus(CLOCK_SKEW);
        !needed && self.previous_message.take().is_some()
    }
}

impl fmt::Debug for FleetState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FleetState");
        shown.field("fleet", &self.fleet).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
