//! Extension numbers, and whether an extension came twice.

use std::collections::BTreeSet;

/// The extension types met so far. Real hellos carry none beyond 63 but a handful, so those sit in an array and
/// nothing is allocated; a hello of thousands still costs n log n, and not n squared.
#[derive(Debug, Default)]
pub(super) struct Seen {
    low: u64,
    high: [u16; 16],
    used: usize,
    spilled: BTreeSet<u16>,
}

impl Seen {
    /// Whether it is new.
    pub(super) fn insert(&mut self, kind: u16) -> bool {
        if kind < 64 {
            let bit = 1 << kind;
            let new = self.low & bit == 0;
            self.low |= bit;
            return new;
        }
        if self.high[..self.used].contains(&kind) {
            return false;
        }
        if let Some(slot) = self.high.get_mut(self.used) {
            *slot = kind;
            self.used += 1;
            return true;
        }
        self.spilled.insert(kind)
    }
}

/// The name of a type that is read, for errors.
pub(super) const fn name(kind: u16) -> &'static str {
    match kind {
        SERVER_NAME => "server_name",
        SUPPORTED_GROUPS => "supported_groups",
        SIGNATURE_ALGORITHMS => "signature_algorithms",
        ALPN => "application_layer_protocol_negotiation",
        EXTENDED_MASTER_SECRET => "extended_master_secret",
        PRE_SHARED_KEY => "pre_shared_key",
        EARLY_DATA => "early_data",
        SUPPORTED_VERSIONS => "supported_versions",
        PSK_KEY_EXCHANGE_MODES => "psk_key_exchange_modes",
        SIGNATURE_ALGORITHMS_CERT => "signature_algorithms_cert",
        KEY_SHARE => "key_share",
        _ => "extension",
    }
}

// IANA, TLS ExtensionType values.
pub(super) const SERVER_NAME: u16 = 0;
pub(super) const SUPPORTED_GROUPS: u16 = 10;
pub(super) const SIGNATURE_ALGORITHMS: u16 = 13;
pub(super) const ALPN: u16 = 16;
pub(super) const EXTENDED_MASTER_SECRET: u16 = 23;
pub(super) const SESSION_TICKET: u16 = 35;
pub(super) const PRE_SHARED_KEY: u16 = 41;
pub(super) const EARLY_DATA: u16 = 42;
pub(super) const SUPPORTED_VERSIONS: u16 = 43;
pub(super) const PSK_KEY_EXCHANGE_MODES: u16 = 45;
pub(super) const SIGNATURE_ALGORITHMS_CERT: u16 = 50;
pub(super) const KEY_SHARE: u16 = 51;
pub(super) const ECH: u16 = 0xfe0d;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_new_once() {
        let mut seen = Seen::default();
        for kind in (0..300).chain(65_000..65_535) {
            assert!(seen.insert(kind), "{kind} is new");
        }
        for kind in [0, 63, 64, 79, 80, 299, 65_534] {
            assert!(!seen.insert(kind), "{kind} was seen");
        }
    }
}
