//! The text of a fleet's state: what a host writes to its disk, and gives to a host that joins.

use std::fmt;

use zeroize::Zeroizing;

use super::FleetState;
use crate::epoch::LAST_EPOCH;
use crate::fleet_key::{read_epochs, write_epochs};
use crate::fleet_text::{BadText, Field, Fields, Writer, hex};
use crate::keys::bounds::MAX_PAST_EPOCHS;
use crate::ratchet::{EpochSecret, KeysOfEpoch};

impl FleetState {
    /// Reads the text of a state.
    ///
    /// # Errors
    /// [`BadFleetState`] names the line, and repeats nothing of what it says.
    pub fn parse(text: &str) -> Result<Self, BadFleetState> {
        read(text).map_err(BadFleetState)
    }

    /// The state as text. It must be readable for the service alone, and take the place of older ones.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Writer::new(COMMENT, FORMAT, 512 + self.past.len() * 256);
        text.field("fleet", &hex(self.fleet.as_bytes()));
        write_epochs(&mut text, &self.epochs);
        text.number("epoch", self.epoch);
        text.secret("secret", self.secret.0.as_bytes());
        if let Some(secret) = &self.previous_message {
            text.secret("previous-message-secret", secret.as_bytes());
        }
        for keys in &self.past {
            text.secrets("past", keys.epoch, [keys.ticket.as_bytes(), keys.vault.as_bytes()]);
        }
        text.finish()
    }
}

fn read(text: &str) -> Result<FleetState, BadText> {
    let mut fields = Fields::parse(text, FORMAT)?;
    let fleet = fields.one("fleet")?.fleet_id("fleet")?;
    let epochs = read_epochs(&mut fields)?;
    let epoch = fields.one("epoch")?.number("epoch", 0..=LAST_EPOCH, "the number of an epoch")?;
    let secret = fields.one("secret")?.secret("secret", KEY)?;
    let previous = fields.optional("previous-message-secret")?;
    let previous_message = previous.map(|field| field.secret("previous-message-secret", KEY)).transpose()?;
    let past = read_past(&mut fields, epoch)?;
    fields.finish()?;
    Ok(FleetState { fleet, epochs, epoch, secret: EpochSecret(secret), past, previous_message })
}

/// Epochs must rise and stay below `epoch`, so that each has one key.
fn read_past(fields: &mut Fields<'_>, epoch: u64) -> Result<Vec<KeysOfEpoch>, BadText> {
    let mut past = Vec::new();
    let mut lowest = epoch.saturating_sub(MAX_PAST_EPOCHS);
    for field in fields.all("past") {
        let keys = read_keys(&field, lowest, epoch)?;
        lowest = keys.epoch + 1;
        past.push(keys);
    }
    Ok(past)
}

fn read_keys(field: &Field<'_>, lowest: u64, epoch: u64) -> Result<KeysOfEpoch, BadText> {
    let [number, ticket, vault] = field.parts("past", PAST)?;
    let last = epoch.checked_sub(1).ok_or_else(|| field.bad("past", PAST))?;
    let number = number.number("past", lowest..=last, PAST)?;
    Ok(KeysOfEpoch {
        epoch: number,
        ticket: ticket.secret("past", PAST)?,
        vault: vault.secret("past", PAST)?,
    })
}

const FORMAT: &str = "courser-fleet-state-1";
const COMMENT: &str = "# The state of a courser fleet: who can read this file can open its sessions from this epoch on.\n\
                       # The service replaces it when the epoch ends. Do not keep copies: they undo that.\n";
const KEY: &str = "64 hexadecimal digits";
const PAST: &str =
    "an epoch of the last 256, later than the line before, and two keys of 96 hexadecimal digits";

/// Why a text is not a fleet's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFleetState(BadText);

impl fmt::Display for BadFleetState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a fleet's state: {}; take that of another member with `courser fleet export`", self.0)
    }
}

impl std::error::Error for BadFleetState {}
