//! Session tickets: a session's state, sealed so that any host with the same secret can open it.
//!
//! May not remember tickets, draw a nonce or read a clock. Serves TLS 1.2 tickets (RFC 5077) and TLS 1.3 PSK
//! identities (RFC 8446, section 4.6.1) alike.
//!
//! # Format, version 1
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format version, 1 |
//! | 16 | key name: tells the epoch to who has the secret, nothing to anyone else |
//! | 12 | nonce |
//! | n + 48 | sealed: state, created (8, big endian), expires (8), policy hash (32) |
//! | 16 | authentication tag |
//!
//! Sealed with AES-256-GCM-SIV (RFC 8452), version and key name as associated data: a repeated nonce then reveals
//! only that two tickets are equal, so hosts need not count nonces together.
//!
//! The policy hash is sealed in, and compared after opening, where it might have been associated data. Then a
//! ticket of another policy would fail to open just as a forged one does, and the two reasons could not be told
//! apart without a keyed tag beside it: another MAC to compute, and one that says on the wire which tickets share a
//! policy. Sealed, it costs 32 bytes, the reason is always right, and the wire learns nothing. It is as safe:
//! [`Ticketer::open`] is the only way in, and returns no state before the comparison.

mod epoch;
mod settings;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use aws_lc_rs::aead::{Aad, Nonce};
use zeroize::Zeroizing;

use crate::secret::Root;
use crate::{CLOCK_SKEW, Lifespan, Miss, PolicyHash, Secret, UnixSeconds};
use epoch::{EpochKey, KEY_NAME_LEN, Ring};
pub use settings::{BadTicketSettings, DEFAULT_EPOCH_LENGTH, TicketSettings};

/// Seals and opens tickets. Shared by all workers; the current epoch's key seals, those of all epochs that a live
/// ticket can be from open, and in its last minute the next epoch's too.
///
/// Keys derive from the secret and the epoch alone (HKDF-SHA-256), so hosts with the same secret and settings open
/// each other's tickets and roll their keys together, without a message. Who steals the secret can open every
/// ticket ever sealed under it.
pub struct Ticketer {
    root: Root,
    settings: TicketSettings,
    /// The same ring in each. A thread reads its own stripe, so no two workers meet at a lock; writing happens once
    /// an epoch. Wholly lock-free would be a ring per thread, but then a thread that sleeps keeps old keys alive.
    stripes: Box<[Stripe]>,
    /// Held while a new ring is derived, so that it is derived once.
    rolling: Mutex<()>,
}

/// What a ticket held.
pub struct Opened {
    /// The session's state, as it was sealed. It holds the session's secret: wipe it after use.
    pub state: Vec<u8>,
    /// The original lifespan: pass it on when the session's ticket is renewed.
    pub lifespan: Lifespan,
}

impl Ticketer {
    /// A ticketer of the fleet that shares `secret` and `settings`.
    ///
    /// Cheap: the keys of an epoch are derived when it is first needed.
    #[must_use]
    pub fn new(secret: &Secret, settings: TicketSettings) -> Self {
        let none = Arc::new(Ring::empty());
        let stripes = (0..STRIPES).map(|_| Stripe(RwLock::new(Arc::clone(&none)))).collect();
        Self { root: secret.root(), settings, stripes, rolling: Mutex::new(()) }
    }

    /// Makes a ticket for a session, of 93 bytes more than its state.
    ///
    /// `lifespan` is the original one, also when this ticket renews another. `nonce` is 12 random bytes. `None` if
    /// the session may not be resumed at `now`, or if the ticket would be longer than TLS can carry (65535 bytes):
    /// then send no ticket.
    #[must_use]
    pub fn seal(
        &self,
        policy: &PolicyHash,
        lifespan: Lifespan,
        state: &[u8],
        nonce: [u8; NONCE_LEN],
        now: UnixSeconds,
    ) -> Option<Vec<u8>> {
        let lifespan = self.settings.limit(lifespan);
        lifespan.check(now).ok()?;
        if state.len() > MAX_TICKET_LEN - OVERHEAD {
            return None;
        }
        let epoch = self.settings.epoch(now);
        Some(self.with_ring(epoch, |ring| seal(ring.current(epoch), policy, lifespan, state, nonce)))
    }

    /// Opens a ticket that a client offers. `ticket` is whatever the client sent.
    ///
    /// # Errors
    /// A [`Miss`] with the reason. Once a ticket's key has rolled out of use, the reason is
    /// [`Miss::UnknownKey`] and no longer [`Miss::Expired`].
    pub fn open(&self, policy: &PolicyHash, ticket: &[u8], now: UnixSeconds) -> Result<Opened, Miss> {
        let ticket = Ticket::parse(ticket)?;
        let epoch = self.settings.epoch(now);
        let window = self.settings.oldest_epoch(epoch)..=self.settings.epoch(now.plus(CLOCK_SKEW));
        let plaintext = self.with_ring(epoch, |ring| {
            let key = ring.find(&ticket.key_name, window).ok_or(Miss::UnknownKey)?;
            unseal(key, &ticket)
        })?;
        self.accept(plaintext, policy, now)
    }

    /// Takes the trailer off an authentic plaintext, and returns the state if the trailer allows it.
    fn accept(
        &self,
        mut plaintext: Zeroizing<Vec<u8>>,
        policy: &PolicyHash,
        now: UnixSeconds,
    ) -> Result<Opened, Miss> {
        let (state, trailer) = plaintext.split_last_chunk::<TRAILER_LEN>().ok_or(Miss::Malformed)?;
        let state_len = state.len();
        let (lifespan, sealed_policy) = read_trailer(trailer);
        if !policy.is(sealed_policy) {
            return Err(Miss::OtherPolicy);
        }
        let lifespan = self.settings.limit(lifespan);
        lifespan.check(now)?;
        plaintext.truncate(state_len);
        Ok(Opened { state: std::mem::take(&mut *plaintext), lifespan })
    }

    /// Calls `read` with a ring that has the keys for `epoch`.
    fn with_ring<T>(&self, epoch: u64, read: impl FnOnce(&Ring) -> T) -> T {
        let stripe = &self.stripes[stripe_of_this_thread()].0;
        {
            let ring = stripe.read().unwrap_or_else(PoisonError::into_inner);
            if ring.serves(epoch) {
                return read(&ring);
            }
        }
        read(&self.roll(epoch))
    }

    /// Derives the keys for `epoch` and puts them in place of the old ones, which wipes those.
    #[cold]
    fn roll(&self, epoch: u64) -> Arc<Ring> {
        let _one_at_a_time = self.rolling.lock().unwrap_or_else(PoisonError::into_inner);
        let present = Arc::clone(&self.stripes[0].0.read().unwrap_or_else(PoisonError::into_inner));
        if present.serves(epoch) {
            return present;
        }
        let next =
            Arc::new(Ring::derive(&self.root, epoch, self.settings.oldest_epoch(epoch.saturating_sub(1))));
        for stripe in &self.stripes {
            *stripe.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&next);
        }
        next
    }
}

impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticketer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("lifespan", &self.lifespan).finish_non_exhaustive()
    }
}

/// Two cache lines apart: processors fetch lines in pairs.
#[repr(align(128))]
struct Stripe(RwLock<Arc<Ring>>);

/// Threads are numbered as they first come here, so up to this many workers have a stripe each.
fn stripe_of_this_thread() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static STRIPE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
    STRIPE.with(|stripe| *stripe)
}

/// A ticket's parts, before anything about them is believed.
struct Ticket<'a> {
    header: &'a [u8],
    key_name: [u8; KEY_NAME_LEN],
    nonce: [u8; NONCE_LEN],
    sealed: &'a [u8],
}

impl<'a> Ticket<'a> {
    fn parse(ticket: &'a [u8]) -> Result<Self, Miss> {
        if !(OVERHEAD..=MAX_TICKET_LEN).contains(&ticket.len()) {
            return Err(Miss::Malformed);
        }
        let (header, rest) = ticket.split_at(HEADER_LEN);
        let (version, key_name) = header.split_at(1);
        if version != [FORMAT] {
            return Err(Miss::UnknownFormat);
        }
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>().ok_or(Miss::Malformed)?;
        let key_name = key_name.try_into().map_err(|_| Miss::Malformed)?;
        Ok(Self { header, key_name, nonce: *nonce, sealed })
    }
}

fn seal(
    key: &EpochKey,
    policy: &PolicyHash,
    lifespan: Lifespan,
    state: &[u8],
    nonce: [u8; NONCE_LEN],
) -> Vec<u8> {
    // The whole size at once: a vector that grows leaves the state behind in freed memory.
    let mut ticket = Vec::with_capacity(OVERHEAD + state.len());
    ticket.push(FORMAT);
    ticket.extend_from_slice(&key.name);
    ticket.extend_from_slice(&nonce);
    ticket.extend_from_slice(state);
    ticket.extend_from_slice(&trailer(lifespan, policy));
    let (head, plaintext) = ticket.split_at_mut(HEADER_LEN + NONCE_LEN);
    let aad = Aad::from(&head[..HEADER_LEN]);
    let tag = key
        .aead
        .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), aad, plaintext)
        .expect("sealing fails only beyond 2^36 bytes, and the length was checked");
    ticket.extend_from_slice(tag.as_ref());
    ticket
}

fn unseal(key: &EpochKey, ticket: &Ticket<'_>) -> Result<Zeroizing<Vec<u8>>, Miss> {
    let mut buffer = Zeroizing::new(ticket.sealed.to_vec());
    let plaintext_len = key
        .aead
        .open_in_place(Nonce::assume_unique_for_key(ticket.nonce), Aad::from(ticket.header), &mut buffer)
        .map_err(|_| Miss::Forged)?
        .len();
    buffer.truncate(plaintext_len);
    Ok(buffer)
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

/// Length of a ticket's nonce in bytes (RFC 8452, section 4).
pub const NONCE_LEN: usize = aws_lc_rs::aead::NONCE_LEN;

/// Enough that each worker of a large machine has its own; 128 bytes each.
const STRIPES: usize = 64;

const FORMAT: u8 = 1;
/// Format version and key name.
const HEADER_LEN: usize = 1 + KEY_NAME_LEN;
/// Created, expires, policy hash.
const TRAILER_LEN: usize = 8 + 8 + 32;
const TAG_LEN: usize = 16;
/// What a ticket has beyond the state.
const OVERHEAD: usize = HEADER_LEN + NONCE_LEN + TRAILER_LEN + TAG_LEN;
/// RFC 5077, section 3.3, and RFC 8446, section 4.6.1: a ticket's length is 16 bits.
const MAX_TICKET_LEN: usize = u16::MAX as usize;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A worker that sleeps through the roll must not keep the old keys in memory.
    #[test]
    fn whoever_rolls_first_takes_the_old_keys_from_all() {
        let hour = Duration::from_secs(3600);
        let settings = TicketSettings::new(hour, hour, UnixSeconds(0)).unwrap();
        let ticketer = Ticketer::new(&Secret::from_bytes([1; 32]), settings);
        let old = Arc::downgrade(&ticketer.roll(10));
        assert!(ticketer.stripes.iter().all(|stripe| stripe.0.read().unwrap().serves(10)));
        assert!(ticketer.with_ring(11, |ring| ring.serves(11)));
        assert!(ticketer.stripes.iter().all(|stripe| stripe.0.read().unwrap().serves(11)));
        assert!(old.upgrade().is_none(), "the old keys are still held");
    }
}
