//! What a server has to compute for a connection, by the protocol: RFC 8446 (TLS 1.3), RFC 5246 (TLS 1.2),
//! RFC 5077 and section 4.6.1 of RFC 8446 (tickets). What an implementation may keep from connection to
//! connection is left out, what it may not skip is in.

use std::fmt;

use crate::primitives::Family;

use super::Needs;

/// The largest record (RFC 8446, section 5.1).
const RECORD: u64 = 1 << 14;

/// A ticket's content: a session's secrets and what it is bound to.
const TICKET: f64 = 200.0;

/// Finished, in a record.
const FINISHED: f64 = 36.0;

/// Of a ClientHello and a ServerHello together, as today's clients send them.
const HELLOS: f64 = 500.0;

/// An operation as `primitives` knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) family: Family,
    pub(super) bytes: Option<usize>,
}

impl Step {
    fn new(name: impl Into<String>, family: Family) -> Self {
        Self { name: name.into(), family, bytes: None }
    }

    /// The same on so many bytes.
    pub(super) fn at(&self, bytes: usize) -> Self {
        Self { bytes: Some(bytes), ..self.clone() }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            Family::Sign | Family::Verify => write!(f, "{} {}", self.name, self.family),
            _ => f.write_str(&self.name),
        }
    }
}

/// Some of it, for each connection on average.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operation {
    pub(super) step: Step,
    /// On so many bytes, where its cost depends on them.
    pub(super) bytes: Option<f64>,
    pub(super) times: f64,
}

/// All that a connection needs.
///
/// # Errors
/// When a part of it is no operation of the library.
pub(super) fn of(needs: &Needs) -> Result<Vec<Operation>, String> {
    let terms = OperationCounts::of(needs)?;
    let mut all = List::default();
    let resumed = 1.0 - needs.full;
    if needs.version == "1.3" {
        all.exchange(&terms, 1.0);
        all.signature(&terms, needs.full);
        tls13_keys(&mut all, &terms, resumed);
    } else {
        all.exchange(&terms, needs.full);
        all.signature(&terms, needs.full);
        tls12_keys(&mut all, &terms, needs.full);
    }
    all.hash(&terms, HELLOS + terms.flight * needs.full, 1.0);
    if needs.tickets && resumed > 0.0 {
        all.cipher("AES-256-GCM", "open", TICKET, resumed);
        // In TLS 1.3 a ticket serves once, in TLS 1.2 as long as it lives.
        all.cipher("AES-256-GCM", "seal", TICKET, if needs.version == "1.3" { 1.0 } else { needs.full });
    }
    all.cipher(terms.cipher, "open", FINISHED, 1.0);
    let flight = if needs.version == "1.3" { terms.flight * needs.full } else { 0.0 };
    all.cipher(terms.cipher, "seal", FINISHED + flight, 1.0);
    all.bytes(&terms, needs.bytes_in, needs.bytes_out);
    if needs.reencrypted {
        // As a client that resumes at its backend: a key exchange and no signature.
        all.exchange(&terms, if needs.version == "1.3" { 1.0 } else { 0.0 });
        all.bytes(&terms, needs.bytes_out, needs.bytes_in);
    }
    Ok(all.0)
}

/// RFC 8446, section 7.1: extraction of the handshake and the master secret; five secrets, a key and an IV
/// for each of four, two keys of Finished, and what a ticket needs. Of a session in addition: the early
/// secret, and the binder.
fn tls13_keys(all: &mut List, terms: &OperationCounts, resumed: f64) {
    let extracted = 2.0 + resumed;
    all.push(
        Step::new(format!("HKDF-{} extract and expand", terms.hash), Family::Kdf).at(terms.digest),
        extracted,
    );
    let expanded = 5.0 + 8.0 + 2.0 + resumed * 5.0 - extracted;
    all.push(Step::new(format!("HKDF-{} expand", terms.hash), Family::Kdf).at(32), expanded);
    all.push(Step::new(format!("HMAC-{}", terms.hash), Family::Digest).at(64), 2.0 + resumed);
}

/// RFC 5246, section 5: two HMACs for each digest's length of output. The master secret (48 bytes), the key
/// block (40 or 72), both Finished (12).
fn tls12_keys(all: &mut List, terms: &OperationCounts, full: f64) {
    let hmacs = |bytes: f64| 2.0 * (bytes / terms.digest as f64).ceil();
    let times = full * hmacs(48.0) + hmacs(terms.key_block) + 2.0 * hmacs(12.0);
    all.push(Step::new(format!("HMAC-{}", terms.hash), Family::Digest).at(64), times);
}

/// What was negotiated, in the names of operations.
struct OperationCounts {
    cipher: &'static str,
    hash: &'static str,
    /// Its length, bytes.
    digest: usize,
    /// Of a TLS 1.2 connection, bytes: two keys, two salts of 4 (12 for ChaCha20: RFC 7905).
    key_block: f64,
    signature: &'static str,
    /// Of EncryptedExtensions or ServerKeyExchange, a certificate without a chain, and a signature: bytes.
    flight: f64,
    /// None when the client encrypts to the certificate's key: that costs the server what a signature does.
    exchange: Option<&'static [&'static str]>,
}

impl OperationCounts {
    fn of(needs: &Needs) -> Result<Self, String> {
        let (cipher, key_block) = match &needs.suite {
            suite if suite.contains("AES_128_GCM") => ("AES-128-GCM", 40.0),
            suite if suite.contains("AES_256_GCM") => ("AES-256-GCM", 72.0),
            suite if suite.contains("CHACHA20_POLY1305") => ("ChaCha20-Poly1305", 88.0),
            suite => {
                return Err(format!(
                    "{suite} is not authenticated encryption: the library has no such cipher"
                ));
            }
        };
        let (hash, digest) = if needs.suite.ends_with("SHA384") { ("SHA-384", 48) } else { ("SHA-256", 32) };
        let (signature, flight) = match needs.key.as_str() {
            "RSA-2048" => ("RSA-2048", 1100.0),
            "RSA-3072" => ("RSA-3072", 1500.0),
            "RSA-4096" => ("RSA-4096", 1900.0),
            "P-256" => ("ECDSA P-256", 550.0),
            "P-384" => ("ECDSA P-384", 650.0),
            "Ed25519" => ("Ed25519", 450.0),
            "RSA-512" | "RSA-1024" => {
                return Err(format!("{}: AWS-LC takes no RSA key under 2048 bits", needs.key));
            }
            other => return Err(format!("{other} is no key that is timed here")),
        };
        let exchange = needs.group.as_deref().map(exchange).transpose()?;
        Ok(Self { cipher, hash, digest, key_block, signature, flight, exchange })
    }
}

/// What the server does for a key exchange.
fn exchange(group: &str) -> Result<&'static [&'static str], String> {
    match group {
        "X25519" | "x25519" => Ok(&["X25519 generate", "X25519 agree"]),
        "P-256" | "secp256r1" => Ok(&["P-256 generate", "P-256 agree"]),
        "P-384" | "secp384r1" => Ok(&["P-384 generate", "P-384 agree"]),
        "X25519MLKEM768" => Ok(&["X25519MLKEM768 server"]),
        other => Err(format!("a key exchange with {other} is none of the library's")),
    }
}

#[derive(Default)]
struct List(Vec<Operation>);

impl List {
    fn push(&mut self, step: Step, times: f64) {
        if times > 0.0 {
            self.0.push(Operation { step, bytes: None, times });
        }
    }

    fn exchange(&mut self, terms: &OperationCounts, times: f64) {
        for name in terms.exchange.unwrap_or_default() {
            self.push(Step::new(*name, Family::KeyExchange), times);
        }
    }

    /// Or the decryption of what the client has encrypted to the key.
    fn signature(&mut self, terms: &OperationCounts, times: f64) {
        self.push(Step::new(terms.signature, Family::Sign), times);
    }

    fn hash(&mut self, terms: &OperationCounts, bytes: f64, times: f64) {
        self.sized(Step::new(terms.hash, Family::Digest), bytes, times);
    }

    fn cipher(&mut self, cipher: &str, what: &str, bytes: f64, times: f64) {
        self.sized(Step::new(format!("{cipher} {what}"), Family::Cipher), bytes, times);
    }

    /// In records as full as can be.
    fn bytes(&mut self, terms: &OperationCounts, opened: u64, sealed: u64) {
        for (what, bytes) in [("open", opened), ("seal", sealed)] {
            let (records, bytes) = (bytes.div_ceil(RECORD) as f64, bytes as f64);
            self.cipher(terms.cipher, what, bytes / records.max(1.0), records);
        }
    }

    fn sized(&mut self, step: Step, bytes: f64, times: f64) {
        if times > 0.0 {
            self.0.push(Operation { step, bytes: Some(bytes), times });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(version: &str, suite: &str) -> Needs {
        Needs {
            version: version.into(),
            key: "P-256".into(),
            group: Some("X25519".into()),
            suite: suite.into(),
            full: 1.0,
            tickets: false,
            bytes_in: 0,
            bytes_out: 40_000,
            reencrypted: false,
        }
    }

    fn times(needs: &Needs, name: &str) -> f64 {
        of(needs).unwrap().iter().filter(|one| one.step.to_string() == name).map(|one| one.times).sum()
    }

    #[test]
    fn a_full_handshake_is_a_signature_and_a_key_exchange() {
        let asked = needs("1.3", "TLS_AES_128_GCM_SHA256");
        for name in ["ECDSA P-256 sign", "X25519 generate", "X25519 agree"] {
            assert_eq!(times(&asked, name), 1.0, "{name}");
        }
        assert_eq!(times(&asked, "AES-128-GCM seal"), 4.0, "a flight, and three records of content");
        assert_eq!(
            times(&asked, "HKDF-SHA-256 expand") + times(&asked, "HKDF-SHA-256 extract and expand"),
            15.0
        );
    }

    #[test]
    fn a_session_id_needs_no_ticket_and_in_tls_1_2_no_key_exchange() {
        let suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
        let by_id = Needs { full: 0.0, ..needs("1.2", suite) };
        let by_ticket = Needs { tickets: true, ..by_id.clone() };
        for asked in [&by_id, &by_ticket] {
            assert_eq!(times(asked, "X25519 agree") + times(asked, "ECDSA P-256 sign"), 0.0);
            assert_eq!(times(asked, "HMAC-SHA-256"), 8.0);
        }
        assert_eq!((times(&by_id, "AES-256-GCM open"), times(&by_ticket, "AES-256-GCM open")), (0.0, 1.0));
        assert_eq!(times(&by_ticket, "AES-256-GCM seal"), 0.0, "a ticket of TLS 1.2 serves again");
    }

    #[test]
    fn encryption_to_the_key_costs_what_a_signature_does() {
        let suite = "TLS_RSA_WITH_AES_256_GCM_SHA384";
        let asked = Needs { group: None, key: "RSA-2048".into(), ..needs("1.2", suite) };
        assert_eq!((times(&asked, "RSA-2048 sign"), times(&asked, "X25519 agree")), (1.0, 0.0));
        assert_eq!(times(&asked, "HMAC-SHA-384"), 2.0 + 4.0 + 4.0);
    }

    #[test]
    fn what_cannot_be_timed_is_named() {
        let modern = needs("1.3", "TLS_AES_128_GCM_SHA256");
        let cases = [
            (
                Needs { key: "RSA-1024".into(), ..modern.clone() },
                "RSA-1024: AWS-LC takes no RSA key under 2048 bits",
            ),
            (Needs { group: Some("ffdhe2048".into()), ..modern.clone() }, "ffdhe2048"),
            (Needs { suite: "TLS_RSA_WITH_RC4_128_SHA".into(), ..modern }, "TLS_RSA_WITH_RC4_128_SHA"),
        ];
        for (asked, part) in cases {
            let why = of(&asked).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
