//! The keys of one fleet as they are used: ready for the cipher, found by name. May not derive a secret for longer than
//! it takes to make a ring.

use super::live::{Course, Due, Live};
use crate::ratchet::KeysOfEpoch;
use crate::seal::{KEY_NAME_LEN, NamedKey};
use crate::{CLOCK_SKEW, FleetId, SecretBytes, UnixSeconds};

/// What the key of a sender's messages derives from: the fleet's secret for messages in one epoch.
#[derive(Debug)]
pub struct MessageSecret {
    /// Whose secret.
    pub fleet: FleetId,
    /// In which epoch.
    pub epoch: u64,
    /// 32 bytes, wiped on drop.
    pub secret: SecretBytes<32>,
}

/// What a key is for. No key is for two purposes.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Ticket,
    Vault,
}

/// The sealing keys of one epoch.
struct EpochKeys {
    epoch: u64,
    ticket: NamedKey,
    vault: NamedKey,
}

impl EpochKeys {
    fn new(keys: &KeysOfEpoch) -> Self {
        Self { epoch: keys.epoch, ticket: NamedKey::new(&keys.ticket), vault: NamedKey::new(&keys.vault) }
    }

    fn for_purpose(&self, purpose: Purpose) -> &NamedKey {
        match purpose {
            Purpose::Ticket => &self.ticket,
            Purpose::Vault => &self.vault,
        }
    }
}

/// One fleet's keys: of the epochs that a live session can be from, and of the next for hosts whose clock is ahead.
pub(super) struct Ring {
    pub(super) fleet: FleetId,
    pub(super) epoch: u64,
    course: Course,
    /// Newest first, as most tickets are recent: `next`, then `epoch`, then the past.
    keys: Vec<EpochKeys>,
    /// The previous epoch's, if it is still needed, this one's, the next one's.
    messages: [Option<SecretBytes<32>>; 3],
}

impl Ring {
    pub(super) fn of(live: &Live) -> Self {
        let state = &live.state;
        let root = state.secret.root(state.fleet);
        let next = root.next().root(state.fleet);
        let ahead = [next.keys(state.epoch + 1), root.keys(state.epoch)];
        let keys = ahead.iter().chain(state.past.iter().rev()).map(EpochKeys::new).collect();
        let previous = state.previous_message.as_ref().map(SecretBytes::copy);
        let messages = [previous, Some(root.message_secret()), Some(next.message_secret())];
        Self { fleet: state.fleet, epoch: state.epoch, course: live.course(), keys, messages }
    }

    /// Whether these are the right keys at `now`.
    pub(super) fn serves(&self, now: UnixSeconds) -> bool {
        matches!(self.course.due(now), Due::Nothing | Due::Late | Due::Refused)
    }

    /// The key that seals.
    pub(super) fn sealing(&self, purpose: Purpose) -> &NamedKey {
        self.keys[1].for_purpose(purpose)
    }

    /// The key of this name, if it may open at `now`. Names are public, so they are compared in any time.
    pub(super) fn find(
        &self,
        purpose: Purpose,
        name: &[u8; KEY_NAME_LEN],
        now: UnixSeconds,
    ) -> Option<&NamedKey> {
        let named = |keys: &&EpochKeys| keys.for_purpose(purpose).name == *name;
        let keys = self.keys.iter().find(named)?;
        let may_open = keys.epoch <= self.epoch || self.next_may_have_begun(now);
        may_open.then(|| keys.for_purpose(purpose))
    }

    /// The message secret of `epoch`, if a host whose clock differs by at most [`CLOCK_SKEW`] may be in it at `now`.
    pub(super) fn message(&self, epoch: u64, now: UnixSeconds) -> Option<MessageSecret> {
        let (position, may_be) = match epoch.checked_add(1)?.checked_sub(self.epoch)? {
            0 => (0, now < self.course.epochs.begins(self.epoch).plus(CLOCK_SKEW)),
            1 => (1, true),
            2 => (2, self.next_may_have_begun(now)),
            _ => return None,
        };
        let secret = self.messages[position].as_ref().filter(|_| may_be)?;
        Some(MessageSecret { fleet: self.fleet, epoch, secret: secret.copy() })
    }

    /// On a clock that is ahead by [`CLOCK_SKEW`].
    fn next_may_have_begun(&self, now: UnixSeconds) -> bool {
        now.plus(CLOCK_SKEW) >= self.course.epochs.begins(self.epoch + 1)
    }
}
