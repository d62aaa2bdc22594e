//! What seals a connection's records at present.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::crypto::cipher::{
    MessageEncrypter, OutboundChunks, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload,
};
use rustls::{ContentType, Error, ProtocolVersion};

use super::APPLICATION_DATA;
use super::key::RecordKey;
use crate::records::MAX_PLAINTEXT;

/// The library's encrypter, which the connection shares: it seals alerts and application data itself.
#[derive(Clone)]
pub(crate) struct Sealer(Arc<Mutex<Sealing>>);

struct Sealing {
    key: RecordKey,
    /// Sequence number of the next record. The library's own does not count what goes past it.
    next: u64,
    /// Records that may be sealed with this key.
    limit: u64,
    /// An alert has been sealed: close_notify, or one that ends the connection.
    alert_sent: bool,
    /// The KeyUpdate before these keys, until the library sends it with the next record.
    key_update: Vec<u8>,
}

/// Result of sealing an alert.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Alert {
    /// The bytes of its record, and of what has to go in front.
    Sealed(Vec<u8>),
    /// An alert has been sent already, and nothing may follow it (RFC 8446, section 6).
    AlreadySent,
    /// Nothing is sealed yet: it leaves in the clear.
    InTheClear,
}

/// What a record has around its plaintext, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordRoom {
    /// Its header, and a part of the nonce.
    pub before: usize,
    /// Its type, and the tag.
    pub after: usize,
}

/// Whether application data was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// All of it.
    All,
    /// Nothing: the library has to send it, with what it has to send before.
    Library,
    /// Nothing: the key has sealed as much as it may.
    Exhausted,
}

thread_local! {
    /// Created by the library within the current call on this thread, which passes it no context.
    static LATEST: RefCell<Option<Sealer>> = const { RefCell::new(None) };

    /// Whether there is one: most calls make none, and find that out in an instruction.
    static IS_NEW: Cell<bool> = const { Cell::new(false) };

    /// The KeyUpdate that this thread has just sealed; its connection's next keys are made at once.
    static KEY_UPDATE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Sealer {
    /// Seals at most `limit` records.
    pub(super) fn start(key: RecordKey, limit: u64) -> Box<dyn MessageEncrypter> {
        let key_update = KEY_UPDATE.take();
        let sealing = Sealing { key, next: 0, limit, alert_sent: false, key_update };
        let sealer = Self(Arc::new(Mutex::new(sealing)));
        LATEST.set(Some(sealer.clone()));
        IS_NEW.set(true);
        Box::new(sealer)
    }

    /// The one that the library has made last on this thread, once.
    pub(crate) fn take_latest() -> Option<Self> {
        if IS_NEW.replace(false) { LATEST.take() } else { None }
    }

    /// Whether the connection has sent an alert that ends it.
    pub(crate) fn has_sent_alert(&self) -> bool {
        self.lock().alert_sent
    }

    /// Marks that the connection has sent such an alert, under the keys before these.
    pub(crate) fn set_alert_sent(&self) {
        self.lock().alert_sent = true;
    }

    /// After a panic in the library: what it left on this thread belongs to no other connection.
    pub(crate) fn clear() {
        drop((LATEST.take(), KEY_UPDATE.take()));
    }

    /// What a record of application data has around its plaintext.
    pub(crate) fn room(&self) -> RecordRoom {
        let sealing = self.lock();
        RecordRoom { before: HEADER + sealing.key.front_len(), after: sealing.key.back_len() }
    }

    /// Seals a record of application data past the library: the plaintext with room around it. Not if the library has
    /// something to send before: what a key's first record follows, a KeyUpdate, an alert.
    pub(crate) fn seal_data(&self, record: &mut [u8]) -> Result<Sealed, Error> {
        let sealing = &mut *self.lock();
        let longest = HEADER + sealing.key.body_len(MAX_PLAINTEXT);
        if sealing.next == 0 || sealing.alert_sent || !sealing.key_update.is_empty() || record.len() > longest
        {
            return Ok(Sealed::Library);
        }
        // One more is left, for the KeyUpdate or the alert that follows the last.
        if sealing.next + 1 >= sealing.limit {
            return Ok(Sealed::Exhausted);
        }
        let (header, body) = record.split_at_mut(HEADER);
        let [high, low] = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
        let [major, minor] = LEGACY_VERSION;
        header.copy_from_slice(&[APPLICATION_DATA, major, minor, high, low]);
        let sequence = sealing.take_number();
        sealing.key.seal(sequence, ContentType::ApplicationData, body)?;
        Ok(Sealed::All)
    }

    /// Seals a fatal alert of this description as the connection's next record.
    pub(crate) fn seal_alert(&self, description: u8) -> Alert {
        let sealing = &mut *self.lock();
        if sealing.alert_sent {
            return Alert::AlreadySent;
        }
        // TLS 1.2 seals from its Finished on, which is the first that the cipher sees.
        if !sealing.key.is_tls13() && sealing.next == 0 {
            return Alert::InTheClear;
        }
        sealing.alert_sent = true;
        let content = [FATAL, description];
        let alert = OutboundPlainMessage {
            typ: ContentType::Alert,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(&content),
        };
        match sealing.seal(&alert) {
            Ok(record) => {
                let mut bytes = std::mem::take(&mut sealing.key_update);
                bytes.extend(record.encode());
                Alert::Sealed(bytes)
            }
            Err(_) => Alert::AlreadySent,
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.lock().next
    }

    #[cfg(test)]
    pub(crate) fn limit(&self, more: u64) -> u64 {
        let sealing = &mut *self.lock();
        sealing.limit = sealing.next + more;
        sealing.limit
    }

    fn lock(&self) -> MutexGuard<'_, Sealing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sealing {
    /// The next record, as the library wants it.
    fn seal(&mut self, message: &OutboundPlainMessage<'_>) -> Result<OutboundOpaqueMessage, Error> {
        let sequence = self.take_number();
        let mut body = PrefixedPayload::with_capacity(self.key.body_len(message.payload.len()));
        body.extend_from_slice(&ROOM[..self.key.front_len()]);
        body.extend_from_chunks(&message.payload);
        body.extend_from_slice(&ROOM[..self.key.back_len()]);
        self.key.seal(sequence, message.typ, body.as_mut())?;
        let content = if self.key.is_tls13() { ContentType::ApplicationData } else { message.typ };
        Ok(OutboundOpaqueMessage::new(content, ProtocolVersion::TLSv1_2, body))
    }

    /// Before the record that it is for: one whose sealing fails takes its number along.
    fn take_number(&mut self) -> u64 {
        let sequence = self.next;
        self.next += 1;
        sequence
    }
}

impl MessageEncrypter for Sealer {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        _sequence: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let sealing = &mut *self.lock();
        if sealing.next == 0 {
            sealing.key_update = Vec::new();
        }
        // A warning other than close_notify (no_renegotiation) ends nothing, but no failure follows one unanswered.
        sealing.alert_sent |= message.typ == ContentType::Alert && !is_warning(&message.payload);
        let record = sealing.seal(&message)?;
        if is_key_update(&message) {
            KEY_UPDATE.set(record.clone().encode());
        }
        Ok(record)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        self.lock().key.body_len(payload_len)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

/// Whether an alert leaves the connection open: a warning that is no close_notify.
fn is_warning(content: &OutboundChunks<'_>) -> bool {
    let is_warning =
        |content: &[u8]| matches!(*content, [WARNING, description] if description != CLOSE_NOTIFY);
    match content {
        OutboundChunks::Single(content) => is_warning(content),
        several => is_warning(&several.to_vec()),
    }
}

/// Whether this is the KeyUpdate that answers the peer's (RFC 8446, section 4.6.3). The library holds it back until it
/// sends something else.
fn is_key_update(message: &OutboundPlainMessage<'_>) -> bool {
    const ANSWER: [u8; 5] = [24, 0, 0, 1, 0];
    message.typ == ContentType::Handshake
        && message.payload.len() == ANSWER.len()
        && message.payload.to_vec() == ANSWER
}

/// Levels of alerts, and the description of the orderly end (RFC 8446, section 6).
const WARNING: u8 = 1;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;

/// What is set when a record is sealed, at most.
const ROOM: [u8; 17] = [0; 17];

/// Length of a record's header, bytes; and the version in each (RFC 8446, section 5.1).
const HEADER: usize = 5;
const LEGACY_VERSION: [u8; 2] = [3, 3];
