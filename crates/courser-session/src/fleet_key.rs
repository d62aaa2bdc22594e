//! The key file of a fleet, as text: made once, copied to every host. May not open the file.

use std::fmt;

use zeroize::Zeroizing;

use crate::epoch::Epochs;
use crate::fleet_text::{BadText, Fields, Writer, hex};
use crate::{EpochLength, FleetId, NoRandomness, SecretBytes, UnixSeconds};

/// What a key file holds: everything that the hosts of a fleet need to agree on, without a message.
///
/// Who has it can open whatever the fleet seals, at any time: [`FleetState`](crate::FleetState) can be used instead.
pub struct FleetKey {
    pub(crate) fleet: FleetId,
    pub(crate) epochs: Epochs,
    /// The secret of epoch 0.
    pub(crate) secret: SecretBytes<32>,
}

impl FleetKey {
    /// A new fleet, whose epoch 0 begins at `now`.
    ///
    /// # Errors
    /// [`NoRandomness`] if the system's random number generator fails.
    pub fn generate(length: EpochLength, now: UnixSeconds) -> Result<Self, NoRandomness> {
        let fleet = FleetId::from_bytes(*SecretBytes::random()?.as_bytes());
        Ok(Self { fleet, epochs: Epochs { origin: now, length }, secret: SecretBytes::random()? })
    }

    /// Reads the text of a key file.
    ///
    /// # Errors
    /// [`BadFleetKey`] names the line, and repeats nothing of what it says.
    pub fn parse(text: &str) -> Result<Self, BadFleetKey> {
        read(text).map_err(BadFleetKey)
    }

    /// The text of the key file. It must be readable for the service alone.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Writer::new(COMMENT, FORMAT, 256);
        text.field("fleet", &hex(self.fleet.as_bytes()));
        write_epochs(&mut text, &self.epochs);
        text.secret("secret", self.secret.as_bytes());
        text.finish()
    }

    /// The fleet's name.
    pub fn id(&self) -> FleetId {
        self.fleet
    }
}

impl fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetKey").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

fn read(text: &str) -> Result<FleetKey, BadText> {
    let mut fields = Fields::parse(text, FORMAT)?;
    let fleet = fields.one("fleet")?.fleet_id("fleet")?;
    let epochs = read_epochs(&mut fields)?;
    let secret = fields.one("secret")?.secret("secret", "64 hexadecimal digits")?;
    fields.finish()?;
    Ok(FleetKey { fleet, epochs, secret })
}

pub(crate) fn read_epochs(fields: &mut Fields<'_>) -> Result<Epochs, BadText> {
    let seconds =
        fields.one("epoch-seconds")?.number("epoch-seconds", LENGTHS, "a number from 60 to 604800")?;
    let length = EpochLength::from_seconds(seconds).expect("the range was checked");
    let origin = fields.one("origin")?.number("origin", 0..=u64::MAX, "a time in seconds since 1970")?;
    Ok(Epochs { origin: UnixSeconds(origin), length })
}

pub(crate) fn write_epochs(text: &mut Writer, epochs: &Epochs) {
    text.number("epoch-seconds", epochs.length.seconds());
    text.number("origin", epochs.origin.0);
}

const FORMAT: &str = "courser-fleet-key-1";
const COMMENT: &str = "# The secret of a courser fleet: who can read this file can open the sessions of all its hosts.\n\
                       # Copy it to each of them, readable for the service alone.\n";
const LENGTHS: std::ops::RangeInclusive<u64> = EpochLength::MIN..=EpochLength::MAX;

/// Why a text is not a fleet's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFleetKey(BadText);

impl fmt::Display for BadFleetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not a fleet's key: {}; copy it again from another host, or make a new one with `courser \
             fleet keygen`",
            self.0
        )
    }
}

impl std::error::Error for BadFleetKey {}
