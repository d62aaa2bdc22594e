//! The keys of the epochs in use. May not decide which of them may open a ticket now: the caller gives the window.

use std::ops::RangeInclusive;

use aws_lc_rs::aead::{AES_256_GCM_SIV, LessSafeKey, UnboundKey};

use crate::secret::Root;

/// Length of a key's name in a ticket, in bytes.
pub(super) const KEY_NAME_LEN: usize = 16;

/// One epoch's key. The library wipes it when it frees it.
pub(super) struct EpochKey {
    epoch: u64,
    pub(super) name: [u8; KEY_NAME_LEN],
    pub(super) aead: LessSafeKey,
}

impl EpochKey {
    fn derive(root: &Root, epoch: u64) -> Self {
        let bytes = root.derive::<{ KEY_NAME_LEN + 32 }>("courser ticket key", epoch);
        let (name, key) = bytes.split_at(KEY_NAME_LEN);
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).expect("AES-256-GCM-SIV takes 32 bytes");
        let name = name.try_into().expect("the split is at the name's length");
        Self { epoch, name, aead: LessSafeKey::new(key) }
    }
}

/// The keys of successive epochs, oldest first: up to the one after `newest`.
pub(super) struct Ring {
    newest: u64,
    keys: Vec<EpochKey>,
}

impl Ring {
    /// A ring that serves no epoch.
    pub(super) fn empty() -> Self {
        Self { newest: 0, keys: Vec::new() }
    }

    /// Keys from `oldest` to one after `newest`: that is for hosts whose clock is ahead.
    pub(super) fn derive(root: &Root, newest: u64, oldest: u64) -> Self {
        let keys = (oldest..=newest.saturating_add(1)).map(|epoch| EpochKey::derive(root, epoch)).collect();
        Self { newest, keys }
    }

    /// Whether this ring is for `epoch`, or for the one after it. Workers pass an epoch's end at slightly different
    /// times; were the ring for one epoch only, they would roll it back and forth.
    pub(super) fn serves(&self, epoch: u64) -> bool {
        !self.keys.is_empty() && (epoch == self.newest || epoch.checked_add(1) == Some(self.newest))
    }

    /// The key that seals in `epoch`, which this ring must serve.
    pub(super) fn current(&self, epoch: u64) -> &EpochKey {
        self.keys.iter().rev().find(|key| key.epoch == epoch).expect("the ring serves this epoch")
    }

    /// The key of this name, if it is of an epoch in `window`; newest first, as most tickets are recent. Names are
    /// public, so they are compared in any time.
    pub(super) fn find(&self, name: &[u8; KEY_NAME_LEN], window: RangeInclusive<u64>) -> Option<&EpochKey> {
        self.keys.iter().rev().find(|key| key.name == *name && window.contains(&key.epoch))
    }
}
