//! What is measured: the rows of the tables of 1997 by the names that they have there, then what TLS uses
//! today.

use courser_record::lab::Era;

/// Sizes of blocks, bytes: the columns of 1997.
pub(super) const SIZES: [usize; 5] = [8, 64, 256, 1024, 8192];

/// A cipher or hash.
pub(super) struct Throughput {
    pub(super) title: &'static str,
    pub(super) era: Era,
    /// As our primitives call it, where the library has it.
    pub(super) ours: Option<&'static str>,
    /// As OpenSSL calls it.
    pub(super) theirs: &'static str,
    /// Whether it authenticates, so that a block is a record with its header.
    pub(super) is_aead: bool,
}

const fn historic(title: &'static str, ours: Option<&'static str>, theirs: &'static str) -> Throughput {
    Throughput { title, era: Era::Historic, ours, theirs, is_aead: false }
}

const fn modern(title: &'static str, ours: &'static str, theirs: &'static str, is_aead: bool) -> Throughput {
    Throughput { title, era: Era::Modern, ours: Some(ours), theirs, is_aead }
}

pub(super) const THROUGHPUT: [Throughput; 16] = [
    modern("AES-128-GCM", "AES-128-GCM seal", "aes-128-gcm", true),
    modern("AES-256-GCM", "AES-256-GCM seal", "aes-256-gcm", true),
    modern("ChaCha20-Poly1305", "ChaCha20-Poly1305 seal", "chacha20-poly1305", true),
    modern("SHA-256", "SHA-256", "sha256", false),
    modern("SHA-384", "SHA-384", "sha384", false),
    historic("md2", None, "md2"),
    historic("mdc2", None, "mdc2"),
    historic("md5", None, "md5"),
    historic("sha", None, "sha"),
    historic("sha1", Some("SHA-1"), "sha1"),
    historic("rc4", None, "rc4"),
    historic("des cbc", None, "des-cbc"),
    historic("des ede3", None, "des-ede3-cbc"),
    historic("idea cbc", None, "idea-cbc"),
    historic("rc2 cbc", None, "rc2-cbc"),
    historic("blowfish cbc", None, "bf-cbc"),
];

/// A kind of key that signs.
pub(super) struct Signature {
    pub(super) title: &'static str,
    pub(super) era: Era,
    /// As our primitives call it, where the library takes such a key.
    pub(super) ours: Option<&'static str>,
    /// As `openssl speed` calls it.
    pub(super) theirs: &'static str,
}

const fn signature(
    title: &'static str,
    era: Era,
    ours: Option<&'static str>,
    theirs: &'static str,
) -> Signature {
    Signature { title, era, ours, theirs }
}

pub(super) const SIGNATURES: [Signature; 8] = [
    signature("RSA-512", Era::Historic, None, "rsa512"),
    signature("RSA-1024", Era::Historic, None, "rsa1024"),
    signature("RSA-2048", Era::Modern, Some("RSA-2048"), "rsa2048"),
    signature("RSA-3072", Era::Modern, Some("RSA-3072"), "rsa3072"),
    signature("RSA-4096", Era::Modern, Some("RSA-4096"), "rsa4096"),
    signature("ECDSA P-256", Era::Modern, Some("ECDSA P-256"), "ecdsap256"),
    signature("ECDSA P-384", Era::Modern, Some("ECDSA P-384"), "ecdsap384"),
    signature("Ed25519", Era::Modern, Some("Ed25519"), "ed25519"),
];

/// A group of key exchange.
pub(super) struct KeyExchangeCost {
    pub(super) title: &'static str,
    /// As our primitives call what both libraries have: the step from the peer's share to the secret.
    pub(super) ours: &'static str,
    /// As `openssl speed` calls it.
    pub(super) theirs: &'static str,
}

pub(super) const EXCHANGES: [KeyExchangeCost; 3] = [
    KeyExchangeCost { title: "X25519", ours: "X25519 agree", theirs: "ecdhx25519" },
    KeyExchangeCost { title: "P-256", ours: "P-256 agree", theirs: "ecdhp256" },
    KeyExchangeCost { title: "P-384", ours: "P-384 agree", theirs: "ecdhp384" },
];
