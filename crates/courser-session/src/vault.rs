//! Sessions sealed for where others can read them: a store, a disk. May not talk to either, remember a session or draw a
//! nonce.
//!
//! # Format, version 1
//!
//! Sealed as `seal.rs` says, under a key of the epoch: a session as [`SharedSession::encode`] writes it. A value for a
//! store is bound to `value` and the session's ID, so that it cannot be moved to another name; a record of a file to
//! `record`. A store or a disk can lose sessions and bring back old ones, which live no longer for it; it cannot make,
//! change, read or swap them.

pub(crate) mod file;

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};

use crate::keys::Purpose;
use crate::seal::{NONCE_LEN, NamedKey, OVERHEAD, Sealed};
use crate::{FleetKeys, ResumptionFailure, SessionId, SharedSession, UnixSeconds};

/// Seals sessions and opens them, with the keys of the fleet: what one host seals all open, for as long as the session
/// lives.
#[derive(Debug)]
pub struct Vault {
    keys: Arc<FleetKeys>,
}

impl Vault {
    /// A vault with these keys.
    pub fn new(keys: Arc<FleetKeys>) -> Self {
        Self { keys }
    }

    /// The name under which a store keeps a session: SHA-256 over a label and the ID.
    ///
    /// It is not the ID, which a client presents. It names no fleet and no epoch, so that a look-up stays one
    /// while keys roll or a fleet is re-keyed; IDs are random, and fleets that share a store do not meet.
    pub fn name(id: &SessionId) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        context.update(b"courser session name 1");
        context.update(id.as_bytes());
        context.finish().as_ref().try_into().expect("SHA-256 yields 32 bytes")
    }

    /// Seals a session for a store. `nonce` is 12 random bytes. `None` if the session may not be resumed at `now`, or
    /// its state is longer than travels (65,535 bytes).
    pub fn seal(&self, session: &SharedSession, nonce: [u8; NONCE_LEN], now: UnixSeconds) -> Option<Vec<u8>> {
        self.seal_as(&value_of(&session.id), session, nonce, now)
    }

    /// Opens what a store has under the [`name`](Self::name) of `id`. The session's policy is not compared: that is up
    /// to who resumes it.
    ///
    /// # Errors
    /// A [`ResumptionFailure`] with the reason.
    pub fn open(
        &self,
        id: &SessionId,
        value: &[u8],
        now: UnixSeconds,
    ) -> Result<SharedSession, ResumptionFailure> {
        let session = self.open_as(&value_of(id), value, now)?;
        if session.id == *id { Ok(session) } else { Err(ResumptionFailure::Malformed) }
    }

    fn seal_as(
        &self,
        bound_to: &[u8],
        session: &SharedSession,
        nonce: [u8; NONCE_LEN],
        now: UnixSeconds,
    ) -> Option<Vec<u8>> {
        let session = SharedSession { lifespan: self.keys.limit(session.lifespan), ..session.clone() };
        session.lifespan.check(now).ok()?;
        let len = session.encoded_len();
        if len > MAX_SESSION_LEN || session.state.len() > usize::from(u16::MAX) {
            return None;
        }
        Some(self.keys.seal_with(Purpose::Vault, now, |key| {
            key.seal(FORMAT, nonce, bound_to, len, |out| {
                let travels = session.encode(out);
                debug_assert!(travels, "its length was checked");
            })
        }))
    }

    fn open_as(
        &self,
        bound_to: &[u8],
        bytes: &[u8],
        now: UnixSeconds,
    ) -> Result<SharedSession, ResumptionFailure> {
        if bytes.len() > MAX_SEALED_LEN {
            return Err(ResumptionFailure::Malformed);
        }
        let sealed = Sealed::parse(FORMAT, bytes)?;
        let open = |key: &NamedKey| key.open(&sealed, bound_to);
        let plaintext = self.keys.open_with(Purpose::Vault, &sealed.key_name, now, open)?;
        let mut rest = &plaintext[..];
        let mut session = SharedSession::decode(&mut rest).ok_or(ResumptionFailure::Malformed)?;
        if !rest.is_empty() {
            return Err(ResumptionFailure::Malformed);
        }
        session.lifespan = self.keys.limit(session.lifespan);
        session.lifespan.check(now)?;
        Ok(session)
    }
}

fn value_of(id: &SessionId) -> Vec<u8> {
    [b"value", id.as_bytes()].concat()
}

const FORMAT: u8 = 1;
/// More than the longest state, ID and what stands around them.
const MAX_SESSION_LEN: usize = u16::MAX as usize + 256;
const MAX_SEALED_LEN: usize = MAX_SESSION_LEN + OVERHEAD;
