//! The ciphers of a connection, and application data that goes past the library's state machine.
//!
//! The library copies what it is given and what it gives, and allocates for each record: with records of 16 KiB that costs
//! more than the encryption. After the handshake a record of application data needs nothing that the library knows. It is
//! sealed where it leaves from and opened where it has arrived, under the same keys and the same count of records. All
//! else goes through the library: alerts, KeyUpdates, a renegotiation that has to be declined, what is no record.

use rustls::Error;

use crate::record_cipher::{Alert, Opened, Opener, RecordRoom, Sealed, Sealer};
use crate::records::State;

/// What a connection shares with the library.
#[derive(Default)]
pub(crate) struct Ciphers {
    /// None before the first key.
    sealer: Option<Sealer>,
    opener: Option<Opener>,
    /// The library has nothing left of what has come, not even a part of a message.
    library_is_done: bool,
    /// The library has seen something else than application data, and limits how often it may before some comes.
    library_is_owed_data: bool,
}

impl Ciphers {
    /// After each call of the library: takes the ciphers that it has made.
    pub(crate) fn update(&mut self) {
        if let Some(latest) = Sealer::take_latest() {
            if self.sealer.as_ref().is_some_and(Sealer::has_sent_alert) {
                latest.set_alert_sent();
            }
            self.sealer = Some(latest);
        }
        if let Some(latest) = Opener::take_latest() {
            self.opener = Some(latest);
        }
    }

    /// After a panic in the library.
    pub(crate) fn clear() {
        Sealer::clear();
        Opener::clear();
    }

    /// Opens records of application data at the front of `received`, and appends their plaintext. Returns the number of
    /// bytes they took, and whether nothing but the beginning of a record follows; else the library has to read on.
    pub(crate) fn open(&mut self, received: &mut [u8], plaintext: &mut Vec<u8>) -> (usize, bool) {
        let mut consumed = 0;
        let Some(opener) = &self.opener else { return (consumed, false) };
        while self.library_is_done && !self.library_is_owed_data {
            match opener.open_data(&mut received[consumed..], plaintext) {
                Opened::Data(bytes) => consumed += bytes,
                Opened::Incomplete => return (consumed, true),
                Opened::Library => self.library_is_owed_data = true,
            }
        }
        (consumed, false)
    }

    /// After the library has read: `rest` is what it has left.
    pub(crate) fn library_has_read(&mut self, rest: &[u8], state: State, got_data: bool) {
        // It keeps records whose message goes on in a later one, and has opened them.
        self.library_is_done = state == State::Open && !begins_with_record(rest);
        self.library_is_owed_data &= !got_data;
    }

    /// What a record of application data has around its plaintext; nothing where the library has to make it.
    pub(crate) fn room(&self) -> RecordRoom {
        self.sealer.as_ref().map_or_else(RecordRoom::default, Sealer::room)
    }

    /// Seals a record of application data: plaintext with [`Self::room`] around it.
    pub(crate) fn seal(&self, record: &mut [u8]) -> Result<Sealed, Error> {
        self.sealer.as_ref().map_or(Ok(Sealed::Library), |sealer| sealer.seal_data(record))
    }

    /// Whether the next record of application data would be read past the library.
    #[cfg(test)]
    fn goes_past_the_library(&self) -> bool {
        self.library_is_done && !self.library_is_owed_data
    }

    /// Records under the current key.
    #[cfg(test)]
    fn seals(&self) -> u64 {
        self.sealer.as_ref().expect("after the handshake").count()
    }

    /// Lets the current key seal so many more records, and returns how many that makes.
    #[cfg(test)]
    fn limit_seals(&self, more: u64) -> u64 {
        self.sealer.as_ref().expect("after the handshake").limit(more)
    }

    /// Seals a fatal alert.
    pub(crate) fn seal_alert(&self, description: u8) -> Alert {
        self.sealer.as_ref().map_or(Alert::InTheClear, |sealer| sealer.seal_alert(description))
    }
}

/// Whether a whole record is at the front.
fn begins_with_record(bytes: &[u8]) -> bool {
    match *bytes {
        [_, _, _, high, low, ref body @ ..] => body.len() >= usize::from(u16::from_be_bytes([high, low])),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
