//! The secret of an epoch, and all that derives from it. Leads forward only: no secret here leads to the one before it.
//!
//! With `s` the secret of an epoch, 32 bytes, and HKDF with SHA-256 (RFC 5869):
//!
//! | what | derivation |
//! |---|---|
//! | root | Extract(salt = `courser fleet 1` and the fleet's ID, 8 bytes; `s`) |
//! | the next epoch's `s` | Expand(root, `next`, 32) |
//! | ticket key | Expand(root, `ticket key`, 48): name (16), AES-256-GCM-SIV key (32) |
//! | vault key | Expand(root, `vault key`, 48): the same parts |
//! | message secret | Expand(root, `message secret`, 32) |
//!
//! Epoch 0 has the secret of the key file.

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

use crate::{FleetId, SecretBytes};

/// The secret of one epoch.
pub(crate) struct EpochSecret(pub(crate) SecretBytes<32>);

impl EpochSecret {
    pub(crate) fn root(&self, fleet: FleetId) -> Root {
        let salt = [b"courser fleet 1", &fleet.as_bytes()[..]].concat();
        Root(Salt::new(HKDF_SHA256, &salt).extract(self.0.as_bytes()))
    }
}

/// An epoch's secret after extraction. Wiped on drop by the library that holds it.
pub(crate) struct Root(Prk);

impl Root {
    pub(crate) fn next(&self) -> EpochSecret {
        EpochSecret(self.derive(b"next"))
    }

    pub(crate) fn keys(&self, epoch: u64) -> KeysOfEpoch {
        KeysOfEpoch { epoch, ticket: self.derive(b"ticket key"), vault: self.derive(b"vault key") }
    }

    pub(crate) fn message_secret(&self) -> SecretBytes<32> {
        self.derive(b"message secret")
    }

    fn derive<const N: usize>(&self, label: &[u8]) -> SecretBytes<N> {
        SecretBytes::filled(|bytes| self.0.expand(&[label], Length(N)).and_then(|okm| okm.fill(bytes)))
            .expect("HKDF-SHA-256 yields up to 8160 bytes, and the length asked for is the buffer's")
    }
}

/// What opens the tickets and sealed sessions of one epoch, and nothing else.
pub(crate) struct KeysOfEpoch {
    pub(crate) epoch: u64,
    pub(crate) ticket: SecretBytes<48>,
    pub(crate) vault: SecretBytes<48>,
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}
