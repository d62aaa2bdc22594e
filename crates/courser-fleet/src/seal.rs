//! Seals messages and opens those of others. May not use a nonce twice, nor a key beyond the epochs that it is for.
//!
//! With AES-256-GCM-SIV (RFC 8452): a machine whose snapshot is resumed twice, or that is set back to one, does use nonces
//! twice. Then all that shows is whether two messages are the same. The nonce stays the number: a random one would be 12
//! bytes more in each message, and no better.

use std::collections::VecDeque;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use courser_session::{FleetId, FleetKeys, MessageSecret, NoKey, UnixSeconds};
use zeroize::Zeroizing;

use crate::identity::{Incarnation, MemberId};
use crate::message::{Draft, HEADER_LEN, Header, Sequence, TIME_LEN, To, Transmit, bound_to};
use crate::now::{Now, UnixMillis};
use crate::refusal::Refusal;

/// Seals the messages of one start of a member.
///
/// The key is of this start alone, whose random half no other has; each message has the next number: no key and nonce
/// come together twice in one memory of it.
pub(crate) struct Sealer {
    keys: Arc<FleetKeys>,
    sender: MemberId,
    incarnation: Incarnation,
    /// The key in use, and in which second it was found to be the right one.
    current: Option<(Scope, LessSafeKey, UnixSeconds)>,
    /// How many messages went to all, and to one.
    sent: [u64; 2],
}

impl Sealer {
    pub(crate) fn new(keys: Arc<FleetKeys>, sender: MemberId, incarnation: Incarnation) -> Self {
        Self { keys, sender, incarnation, current: None, sent: [0; 2] }
    }

    /// Fills in a draft's header and time, and seals it where it stands.
    pub(crate) fn seal(&mut self, mut draft: Draft, to: To, now: Now) -> Transmit {
        let sequence = self.next_sequence(to.member().is_some());
        let (scope, key) = self.key(now.wall.seconds());
        let header = scope.header(draft.kind as u8, sequence);
        let mut bytes = std::mem::take(&mut *draft.bytes);
        seal_in_place(key, &header, to.member(), now.wall, &mut bytes);
        Transmit { to: to.destination(), bytes }
    }

    /// The number of the last message that went to all.
    pub(crate) fn last_to_all(&self) -> u64 {
        self.sent[0]
    }

    fn next_sequence(&mut self, is_to_one: bool) -> Sequence {
        let count = &mut self.sent[usize::from(is_to_one)];
        *count += 1;
        Sequence::new(*count, is_to_one)
    }

    /// The key of this second, looked for once in it.
    fn key(&mut self, second: UnixSeconds) -> (Scope, &LessSafeKey) {
        let is_current = matches!(&self.current, Some((.., checked)) if *checked == second);
        if !is_current {
            let secret = self.keys.sealing(second);
            let scope = Scope {
                fleet: secret.fleet,
                epoch: secret.epoch,
                sender: self.sender,
                incarnation: self.incarnation,
            };
            let key = match self.current.take() {
                Some((old, key, _)) if old == scope => key,
                _ => scope.key(&secret),
            };
            self.current = Some((scope, key, second));
        }
        let (scope, key, _) = self.current.as_ref().expect("it was just set");
        (*scope, key)
    }
}

/// Opens messages, and remembers the keys of those that were authentic: so it takes one operation, and whoever invents
/// senders makes it forget none.
pub(crate) struct Opener {
    keys: Arc<FleetKeys>,
    /// Whom messages to one have to be for.
    recipient: MemberId,
    /// With the second in which their epoch was last found to be in use.
    known: VecDeque<(Scope, LessSafeKey, UnixSeconds)>,
}

impl Opener {
    pub(crate) fn new(keys: Arc<FleetKeys>, recipient: MemberId) -> Self {
        Self { keys, recipient, known: VecDeque::new() }
    }

    /// Whether something was opened with the key that this header names.
    pub(crate) fn knows(&self, header: &Header) -> bool {
        let scope = Scope::of(header);
        self.known.iter().any(|(known, ..)| *known == scope)
    }

    /// Opens a datagram where it stands; returns the time at which it was sent, and its content.
    pub(crate) fn open<'a>(
        &mut self,
        header: &Header,
        datagram: &'a mut [u8],
        now: UnixSeconds,
    ) -> Result<(UnixMillis, &'a [u8]), Refusal> {
        let scope = Scope::of(header);
        let recipient = header.sequence.is_to_one().then_some(self.recipient);
        if let Some(key) = self.known(&scope, now)? {
            return open(key, header, recipient, datagram);
        }
        let secret = self.keys.opening(scope.fleet, scope.epoch, now).map_err(refusal)?;
        let key = scope.key(&secret);
        let opened = open(&key, header, recipient, datagram)?;
        self.remember(scope, key, now);
        Ok(opened)
    }

    /// A key that has opened something before, if its epoch is still in use.
    fn known(&mut self, scope: &Scope, now: UnixSeconds) -> Result<Option<&LessSafeKey>, Refusal> {
        let Some((_, key, checked)) = self.known.iter_mut().find(|(known, ..)| known == scope) else {
            return Ok(None);
        };
        if *checked != now {
            self.keys.opening(scope.fleet, scope.epoch, now).map_err(refusal)?;
            *checked = now;
        }
        Ok(Some(key))
    }

    fn remember(&mut self, scope: Scope, key: LessSafeKey, now: UnixSeconds) {
        if self.known.len() >= MAX_KNOWN {
            self.known.pop_front();
        }
        self.known.push_back((scope, key, now));
    }

    /// Forgets the keys of epochs that are over.
    pub(crate) fn forget_old(&mut self, now: UnixSeconds) {
        let keys = &self.keys;
        self.known.retain(|(scope, ..)| keys.opening(scope.fleet, scope.epoch, now).is_ok());
    }
}

/// What a key is for. Not two members, nor two starts of one, ever seal under the same.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scope {
    sender: MemberId,
    incarnation: Incarnation,
    epoch: u64,
    fleet: FleetId,
}

impl Scope {
    fn of(header: &Header) -> Self {
        Self {
            fleet: header.fleet,
            epoch: header.epoch,
            sender: header.sender,
            incarnation: header.incarnation,
        }
    }

    fn header(&self, kind: u8, sequence: Sequence) -> Header {
        let Self { sender, incarnation, epoch, fleet } = *self;
        Header { kind, fleet, epoch, sender, incarnation, sequence }
    }

    /// HKDF-Expand (RFC 5869, section 2.3) of the epoch's message secret, which is uniform and needs no extraction.
    fn key(&self, secret: &MessageSecret) -> LessSafeKey {
        let mut bytes = Zeroizing::new([0; 32]);
        Prk::new_less_safe(HKDF_SHA256, secret.secret.as_bytes())
            .expand(&[b"courser message key 2", &self.sender.0, &self.incarnation.0], HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut bytes[..]))
            .expect("the length asked for is that of the hash, which is the buffer's");
        let key = UnboundKey::new(&AES_256_GCM_SIV, &bytes[..]).expect("AES-256-GCM-SIV takes 32 bytes");
        LessSafeKey::new(key)
    }
}

/// Turns the draft in `bytes` into a message.
fn seal_in_place(
    key: &LessSafeKey,
    header: &Header,
    recipient: Option<MemberId>,
    sent: UnixMillis,
    bytes: &mut Vec<u8>,
) {
    let (head, content) = bytes.split_at_mut(HEADER_LEN);
    let header_bytes = header.encode();
    head.copy_from_slice(&header_bytes);
    content[..TIME_LEN].copy_from_slice(&sent.0.to_be_bytes());
    let bound_to = Aad::from(bound_to(&header_bytes, recipient));
    let tag = key
        .seal_in_place_separate_tag(nonce(header.sequence), bound_to, content)
        .expect("sealing fails only beyond 2^36 bytes, and a datagram has under 2^16");
    bytes.extend_from_slice(tag.as_ref());
}

fn open<'a>(
    key: &LessSafeKey,
    header: &Header,
    recipient: Option<MemberId>,
    datagram: &'a mut [u8],
) -> Result<(UnixMillis, &'a [u8]), Refusal> {
    let (head, sealed) = datagram.split_first_chunk_mut::<HEADER_LEN>().ok_or(Refusal::TooShort)?;
    let bound_to = Aad::from(bound_to(head, recipient));
    let opened = key.open_in_place(nonce(header.sequence), bound_to, sealed).map_err(|_| Refusal::Forged)?;
    let (time, content) = opened.split_first_chunk::<TIME_LEN>().ok_or(Refusal::TooShort)?;
    Ok((UnixMillis(u64::from_be_bytes(*time)), content))
}

fn nonce(sequence: Sequence) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - 8..].copy_from_slice(&sequence.0.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

fn refusal(reason: NoKey) -> Refusal {
    match reason {
        NoKey::OtherFleet => Refusal::OtherFleet,
        NoKey::UnknownEpoch => Refusal::UnknownEpoch,
    }
}

/// For each of 64 peers a start under this epoch and one before.
const MAX_KNOWN: usize = 128;

/// A message as a peer of any release could send it, with whatever type and content: for tests and fuzzing.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct AnyMessage<'a> {
    pub sender: MemberId,
    pub incarnation: Incarnation,
    /// The member it is for; none for all.
    pub to: Option<MemberId>,
    /// Its number, among those to all or those to one.
    pub sequence: u64,
    pub kind: u8,
    pub sent: UnixMillis,
    /// What follows the time.
    pub content: &'a [u8],
}

impl AnyMessage<'_> {
    /// Seals it with what `keys` seal with at `now`.
    #[doc(hidden)]
    pub fn seal(&self, keys: &FleetKeys, now: UnixSeconds) -> Vec<u8> {
        let secret = keys.sealing(now);
        let scope = Scope {
            fleet: secret.fleet,
            epoch: secret.epoch,
            sender: self.sender,
            incarnation: self.incarnation,
        };
        let header = scope.header(self.kind, Sequence::new(self.sequence, self.to.is_some()));
        let mut bytes = vec![0; HEADER_LEN + TIME_LEN];
        bytes.extend_from_slice(self.content);
        seal_in_place(&scope.key(&secret), &header, self.to, self.sent, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests;
