//! Session tickets: a session's state, sealed so that any host with the same keys can open it.
//!
//! May not remember tickets, draw a nonce or read a clock. Serves TLS 1.2 tickets (RFC 5077) and TLS 1.3 PSK
//! identities (RFC 8446, section 4.6.1) alike.
//!
//! # Format, version 1
//!
//! Sealed as `seal.rs` says: state, created (8 bytes, big endian), expires (8), policy hash (32).
//!
//! The policy hash is sealed in, and compared after opening, where it might have been associated data. Then a
//! ticket of another policy would fail to open just as a forged one does, and the two reasons could not be distinguished
//! without a keyed tag beside it: another MAC to compute, and one that shows on the wire which tickets share a
//! policy. Sealed, it costs 32 bytes, the reason is always right, and the wire learns nothing. It is as safe:
//! [`Ticketer::open`] is the only way in, and returns no state before the comparison.

use std::fmt;
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use crate::keys::Purpose;
use crate::seal::{NONCE_LEN, NamedKey, OVERHEAD, Sealed};
use crate::{FleetKeys, Lifespan, PolicyHash, ResumptionFailure, UnixSeconds};

/// Seals and opens tickets. Shared by all workers; the current epoch's key seals, those of all epochs that a live
/// ticket can be from open, and in an epoch's last minute the next one's too.
#[derive(Debug)]
pub struct Ticketer {
    keys: Arc<FleetKeys>,
}

/// What a ticket held.
pub struct Opened {
    /// The session's state, as it was sealed. It holds the session's secret: wipe it after use.
    pub state: Vec<u8>,
    /// The original lifespan: pass it on when the session's ticket is renewed.
    pub lifespan: Lifespan,
}

impl Ticketer {
    /// A ticketer with these keys: hosts that have the same open each other's tickets.
    pub fn new(keys: Arc<FleetKeys>) -> Self {
        Self { keys }
    }

    /// Makes a ticket for a session, of 93 bytes more than its state.
    ///
    /// `lifespan` is the original one, also when this ticket renews another. `nonce` is 12 random bytes. `None` if
    /// the session may not be resumed at `now`, or if the ticket would be longer than TLS can carry (65535 bytes):
    /// then send no ticket.
    pub fn seal(
        &self,
        policy: &PolicyHash,
        lifespan: Lifespan,
        state: &[u8],
        nonce: [u8; NONCE_LEN],
        now: UnixSeconds,
    ) -> Option<Vec<u8>> {
        let lifespan = self.keys.limit(lifespan);
        lifespan.check(now).ok()?;
        let plaintext_len = state.len().checked_add(TRAILER_LEN)?;
        if plaintext_len > MAX_TICKET_LEN - OVERHEAD {
            return None;
        }
        Some(self.keys.seal_with(Purpose::Ticket, now, |key| {
            key.seal(FORMAT, nonce, &[], plaintext_len, |ticket| {
                ticket.extend_from_slice(state);
                ticket.extend_from_slice(&trailer(lifespan, policy));
            })
        }))
    }

    /// Opens a ticket that a client offers. `ticket` is whatever the client sent.
    ///
    /// # Errors
    /// A [`ResumptionFailure`] with the reason. Once a ticket's key has rolled out of use, the reason is
    /// [`ResumptionFailure::UnknownKey`] and no longer [`ResumptionFailure::Expired`].
    pub fn open(
        &self,
        policy: &PolicyHash,
        ticket: &[u8],
        now: UnixSeconds,
    ) -> Result<Opened, ResumptionFailure> {
        if !(OVERHEAD + TRAILER_LEN..=MAX_TICKET_LEN).contains(&ticket.len()) {
            return Err(ResumptionFailure::Malformed);
        }
        let sealed = Sealed::parse(FORMAT, ticket)?;
        let open = |key: &NamedKey| key.open(&sealed, &[]);
        let plaintext = self.keys.open_with(Purpose::Ticket, &sealed.key_name, now, open)?;
        self.accept(plaintext, policy, now)
    }

    /// The original lifespan of the session in a ticket; the session is wiped. For who asks whether a client has been here.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn lifespan(
        &self,
        policy: &PolicyHash,
        ticket: &[u8],
        now: UnixSeconds,
    ) -> Result<Lifespan, ResumptionFailure> {
        let mut opened = self.open(policy, ticket, now)?;
        opened.state.zeroize();
        Ok(opened.lifespan)
    }

    /// Takes the trailer off an authentic plaintext, and returns the state if the trailer allows it.
    fn accept(
        &self,
        mut plaintext: Zeroizing<Vec<u8>>,
        policy: &PolicyHash,
        now: UnixSeconds,
    ) -> Result<Opened, ResumptionFailure> {
        let (state, trailer) =
            plaintext.split_last_chunk::<TRAILER_LEN>().ok_or(ResumptionFailure::Malformed)?;
        let state_len = state.len();
        let (lifespan, sealed_policy) = read_trailer(trailer);
        if !policy.is(sealed_policy) {
            return Err(ResumptionFailure::OtherPolicy);
        }
        let lifespan = self.keys.limit(lifespan);
        lifespan.check(now)?;
        plaintext.truncate(state_len);
        Ok(Opened { state: std::mem::take(&mut *plaintext), lifespan })
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("lifespan", &self.lifespan).finish_non_exhaustive()
    }
}

fn trailer(lifespan: Lifespan, policy: &PolicyHash) -> [u8; TRAILER_LEN] {
    let mut trailer = [0; TRAILER_LEN];
    trailer[..8].copy_from_slice(&lifespan.created.0.to_be_bytes());
    trailer[8..16].copy_from_slice(&lifespan.expires.0.to_be_bytes());
    trailer[16..].copy_from_slice(policy.as_bytes());
    trailer
}

fn read_trailer(trailer: &[u8; TRAILER_LEN]) -> (Lifespan, &[u8]) {
    let seconds = |at: usize| {
        let bytes = trailer[at..at + 8].try_into().expect("a slice of 8 bytes");
        UnixSeconds(u64::from_be_bytes(bytes))
    };
    (Lifespan { created: seconds(0), expires: seconds(8) }, &trailer[16..])
}

const FORMAT: u8 = 1;
/// Created, expires, policy hash.
const TRAILER_LEN: usize = 8 + 8 + 32;
/// RFC 5077, section 3.3, and RFC 8446, section 4.6.1: a ticket's length is 16 bits.
const MAX_TICKET_LEN: usize = u16::MAX as usize;
