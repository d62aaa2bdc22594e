//! An identity: a certificate chain with its private key, and what a server needs to know to choose it.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::UnixTime;
use rustls::sign::CertifiedKey;

use crate::serial::SERIAL;

/// What kind of key a certificate has: what decides which clients can use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// ECDSA on P-256.
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// ECDSA on P-521.
    EcdsaP521,
    /// EdDSA on Curve25519.
    Ed25519,
    /// RSA.
    Rsa,
}

impl KeyKind {
    /// Whether a signature scheme (its code point) can be made with such a key. In TLS 1.3 RSASSA-PKCS1-v1_5 is out
    /// (RFC 8446, section 4.2.3); in TLS 1.2 ECDSA schemes do not fix the curve, but the library signs each curve
    /// with its own hash alone.
    pub fn signs(self, scheme: u16, tls13: bool) -> bool {
        match self {
            Self::EcdsaP256 => scheme == 0x0403,
            Self::EcdsaP384 => scheme == 0x0503,
            Self::EcdsaP521 => scheme == 0x0603,
            Self::Ed25519 => scheme == 0x0807,
            Self::Rsa => {
                matches!(scheme, 0x0804..=0x0806) || (!tls13 && matches!(scheme, 0x0401 | 0x0501 | 0x0601))
            }
        }
    }

    /// Whether a TLS 1.2 suite (its code point) authenticates with such a key (RFC 8422, section 2.2; RFC 8422
    /// section 5.10 puts EdDSA under the ECDSA suites).
    pub fn fits_tls12_suite(self, suite: u16) -> bool {
        match suite {
            0xc02b | 0xc02c | 0xcca9 => self != Self::Rsa,
            0xc02f | 0xc030 | 0xcca8 => self == Self::Rsa,
            _ => false,
        }
    }

    /// The group that a TLS 1.2 client has to support to use the certificate (RFC 8422, section 5.1).
    pub fn curve(self) -> Option<u16> {
        match self {
            Self::EcdsaP256 => Some(0x0017),
            Self::EcdsaP384 => Some(0x0018),
            Self::EcdsaP521 => Some(0x0019),
            Self::Ed25519 | Self::Rsa => None,
        }
    }
}

/// A certificate chain with its key, ready to serve.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(crate) certified: Arc<CertifiedKey>,
    /// Boxed: few have one, and there may be a hundred thousand certificates.
    pub(crate) stapled: Option<Box<Stapled>>,
    /// None: a longer one, against RFC 5280, section 4.1.2.2.
    pub(crate) serial: Option<[u8; SERIAL]>,
    /// Whether clients expect a staple with it (must-staple, RFC 7633).
    pub must_staple: bool,
    /// Kind of the key.
    pub kind: KeyKind,
    /// DNS names of the subjectAltName extension, in lower case; the common name is not looked at (RFC 9525,
    /// section 2).
    pub names: Vec<String>,
    /// The key as the PROXY protocol names it: `EC256`, `RSA2048`, `ED25519`.
    pub key_algorithm: Box<str>,
    /// The hash with which the certificate itself was signed, `SHA256` for example, where there is one.
    pub signature_algorithm: Option<&'static str>,
    /// Start of validity, Unix seconds.
    pub not_before: i64,
    /// End of validity, Unix seconds.
    pub not_after: i64,
}

/// An authority's answer (OCSP, RFC 6960) that says that a certificate is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staple {
    pub(crate) response: Arc<[u8]>,
    /// When it begins to count, Unix seconds.
    pub not_before: i64,
    /// Until when it counts, Unix seconds.
    pub not_after: i64,
}

/// What an identity sends while its staple counts.
#[derive(Clone, Debug)]
pub(crate) struct Stapled {
    staple: Staple,
    certified: Arc<CertifiedKey>,
}

impl Staple {
    /// Whether it counts at `now` (Unix seconds).
    pub fn validity(&self, now: i64) -> Validity {
        Validity::at(now, self.not_before, self.not_after)
    }
}

impl Identity {
    /// The certificate's validity at `now` (Unix seconds).
    pub fn validity(&self, now: i64) -> Validity {
        Validity::at(now, self.not_before, self.not_after)
    }

    /// The same certificate with this staple, or with none.
    pub fn with_staple(&self, staple: Option<&Staple>) -> Self {
        let stapled = staple.map(|staple| {
            let certified =
                CertifiedKey { ocsp: Some(staple.response.to_vec()), ..CertifiedKey::clone(&self.certified) };
            Box::new(Stapled { staple: staple.clone(), certified: Arc::new(certified) })
        });
        Self { stapled, ..self.clone() }
    }

    /// The staple, which may have had its time.
    pub fn staple(&self) -> Option<&Staple> {
        self.stapled.as_ref().map(|stapled| &stapled.staple)
    }

    /// What is sent now. The clock is asked where there is a staple alone.
    pub(crate) fn certified_now(&self) -> &Arc<CertifiedKey> {
        let current = self.stapled.as_ref().filter(|stapled| {
            let now = i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX);
            stapled.staple.validity(now) == Validity::Valid
        });
        current.map_or(&self.certified, |stapled| &stapled.certified)
    }
}

/// Whether a certificate is within its validity period (RFC 5280, section 4.1.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Within the period, both ends included.
    Valid,
    /// The period starts in `seconds`.
    NotYet {
        /// From now to notBefore.
        seconds: i64,
    },
    /// Expired `seconds` ago.
    Expired {
        /// From notAfter to now.
        seconds: i64,
    },
}

impl Validity {
    /// That of a period, its ends included, at `now`; all in Unix seconds.
    pub fn at(now: i64, not_before: i64, not_after: i64) -> Self {
        if now < not_before {
            Self::NotYet { seconds: not_before - now }
        } else if now > not_after {
            Self::Expired { seconds: now - not_after }
        } else {
            Self::Valid
        }
    }
}

/// What is wrong with a certificate or key file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// The file is empty.
    Empty,
    /// The text is not well-formed PEM.
    BadPem(String),
    /// The chain file holds no certificate.
    NoCertificate,
    /// The key file holds no private key.
    NoKey,
    /// The key is encrypted with a passphrase.
    EncryptedKey,
    /// A key of a kind or size that TLS here cannot use.
    UnsupportedKey(String),
    /// The certificate cannot be parsed.
    BadCertificate(String),
    /// The certificate, of this subject, is not one of an authority.
    NotAuthority(String),
    /// The key is not the one that the certificate was made for.
    Mismatch,
    /// What is wrong with the file of the key.
    KeyFile(Box<Self>),
}

impl IdentityError {
    /// Whether the key file, not the chain file, is at fault.
    pub fn concerns_key(&self) -> bool {
        matches!(self, Self::KeyFile(_) | Self::UnsupportedKey(_) | Self::Mismatch)
    }

    /// How to fix it, for the line after the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::BadPem(_) => "write the file again from the certificate authority's answer",
            Self::NoCertificate => {
                "put certificates into the file as PEM: of a server its own, then the intermediates"
            }
            Self::NoKey => "put the key into the same file, or name its file as the key",
            Self::EncryptedKey => "decrypt it once: openssl pkey -in KEY -out KEY.plain, with umask 077",
            Self::UnsupportedKey(_) => "use ECDSA on P-256 or P-384, Ed25519, or RSA of 2048 bits or more",
            Self::BadCertificate(_) => "openssl x509 -in FILE -text shows whether others can read it",
            Self::NotAuthority(_) => "name the certificate of who issues, not one that was issued",
            Self::Mismatch => "openssl x509 -noout -pubkey and openssl pkey -pubout must print the same",
            Self::KeyFile(error) => error.hint(),
        }
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::BadPem(error) => write!(f, "the file is not well-formed PEM: {error}"),
            Self::NoCertificate => f.write_str("the file holds no certificate"),
            Self::NoKey => f.write_str("the file holds no private key"),
            Self::EncryptedKey => f.write_str("the private key is encrypted"),
            Self::UnsupportedKey(what) => write!(f, "the key cannot be used: {what}"),
            Self::BadCertificate(error) => write!(f, "the certificate cannot be parsed: {error}"),
            Self::NotAuthority(subject) => write!(f, "`{subject}` is not a certificate authority"),
            Self::Mismatch => f.write_str("the private key does not belong to the certificate"),
            Self::KeyFile(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for IdentityError {}
