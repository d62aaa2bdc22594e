//! Lists of revoked certificates (RFC 5280, section 5), read once and shared by whoever looks something up.
//!
//! The library has lists, too. It hashes a whole list to verify its signature each time that it looks at it, which takes
//! 25 ms for a million entries, and holds each entry in a tree. Here a signature is verified once, and an entry is its
//! serial number.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use webpki::{BorrowedCertRevocationList, Cert, CertRevocationList};
use x509_parser::asn1_rs::{Any, FromDer};
use x509_parser::extensions::{DistributionPointName, GeneralName, ParsedExtension};
use x509_parser::prelude::X509Certificate;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

use crate::authorities::Authorities;
use crate::serial::{SERIAL, serial};
use crate::signed::Signed;

/// The revoked certificates of one authority. Cheap to clone.
#[derive(Clone)]
pub struct RevocationList(Arc<List>);

pub(super) struct List {
    /// The authority's name, DER without its outermost header, as the library has names.
    pub(super) issuer: Vec<u8>,
    /// As people write it.
    issuer_text: String,
    scope: Scope,
    this_update: i64,
    pub(super) next_update: i64,
    /// Sorted; shorter ones have zeros in front.
    revoked: Box<[[u8; SERIAL]]>,
    digest: [u8; 32],
    /// The public key that its signature was verified with: SubjectPublicKeyInfo without its outermost header.
    signer: OnceLock<Vec<u8>>,
    /// What is signed, until the signer is known.
    pub(super) unverified: Mutex<Option<Signed>>,
}

/// Which of an authority's certificates a list is about (RFC 5280, section 5.2.5).
#[derive(Default)]
struct Scope {
    only_users: bool,
    only_authorities: bool,
    /// Those that name one of these places. Empty: all.
    places: Vec<String>,
}

/// What is wrong with a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationListError(String);

impl fmt::Display for RevocationListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RevocationListError {}

impl RevocationList {
    /// Takes one list in DER, or one or several in PEM.
    ///
    /// # Errors
    /// When there is none, or one is not a complete list of version 2.
    pub fn read(bytes: &[u8]) -> Result<Vec<Self>, RevocationListError> {
        const SEQUENCE: u8 = 0x30;
        if bytes.first() == Some(&SEQUENCE) {
            return Ok(vec![Self::from_der(bytes)?]);
        }
        let mut lists = Vec::new();
        for der in CertificateRevocationListDer::pem_slice_iter(bytes) {
            let der = der.map_err(|_| wrong("the file is not well-formed PEM"))?;
            lists.push(Self::from_der(&der)?);
        }
        if lists.is_empty() {
            Err(wrong("the file holds no list of revoked certificates"))
        } else {
            Ok(lists)
        }
    }

    fn from_der(der: &[u8]) -> Result<Self, RevocationListError> {
        let strict = BorrowedCertRevocationList::from_der(der).map_err(|error| refused(&error))?;
        let mut revoked = Vec::new();
        for entry in &strict {
            let entry = entry.map_err(|error| refused(&error))?;
            let serial = serial(entry.serial_number);
            revoked.push(serial.ok_or_else(|| wrong("a serial number has more than 20 bytes"))?);
        }
        revoked.sort_unstable();
        let strict = CertRevocationList::Borrowed(strict);
        let scope = strict.issuing_distribution_point().map_or(Some(Scope::default()), scope);
        let head = head(der).ok_or_else(|| wrong("the list cannot be parsed"))?;
        Ok(Self(Arc::new(List {
            issuer: strict.issuer().to_vec(),
            issuer_text: head.issuer,
            scope: scope.ok_or_else(|| wrong("what the list is about cannot be parsed"))?,
            this_update: head.this_update,
            next_update: head.next_update,
            revoked: revoked.into_boxed_slice(),
            digest: digest(&SHA256, der).as_ref().try_into().expect("SHA-256 yields 32 bytes"),
            signer: OnceLock::new(),
            unverified: Mutex::new(Some(head.signed)),
        })))
    }

    /// The authority, as people write it.
    pub fn issuer(&self) -> &str {
        &self.0.issuer_text
    }

    /// How many certificates are revoked.
    pub fn len(&self) -> usize {
        self.0.revoked.len()
    }

    /// Whether no certificate is revoked.
    pub fn is_empty(&self) -> bool {
        self.0.revoked.is_empty()
    }

    /// When it was made, Unix seconds.
    pub fn this_update(&self) -> i64 {
        self.0.this_update
    }

    /// When the next one is due, Unix seconds.
    pub fn next_update(&self) -> i64 {
        self.0.next_update
    }

    /// Whether one of these authorities signed it; `None` where none has its issuer's name, and it may be of one that
    /// a peer sends.
    pub fn is_signed_by(&self, authorities: &[&Authorities]) -> Option<bool> {
        let all = authorities.iter().flat_map(|authorities| authorities.certificates());
        let keys: Vec<_> =
            all.filter_map(|der| name_and_key(der)).filter(|(name, _)| *name == self.0.issuer).collect();
        (!keys.is_empty()).then(|| keys.iter().any(|(_, key)| self.0.is_signed_by(key)))
    }

    pub(super) fn content(&self) -> &List {
        &self.0
    }

    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.0.digest
    }
}

impl fmt::Debug for RevocationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RevocationList {{ {}, {} revoked }}", self.issuer(), self.len())
    }
}

impl List {
    /// The signature is verified once: a list has one signer.
    pub(super) fn is_signed_by(&self, key: &[u8]) -> bool {
        if let Some(signer) = self.signer.get() {
            return signer == key;
        }
        let mut unverified = self.unverified.lock().unwrap_or_else(PoisonError::into_inner);
        if !unverified.as_ref().is_some_and(|signed| signed.is_by(key)) {
            return self.signer.get().is_some_and(|signer| signer == key);
        }
        *unverified = None;
        self.signer.get_or_init(|| key.to_vec()) == key
    }

    pub(super) fn contains(&self, number: &[u8]) -> bool {
        serial(number).is_some_and(|number| self.revoked.binary_search(&number).is_ok())
    }

    /// Whether it says something about a certificate of its authority.
    pub(super) fn covers(&self, certificate: &Cert<'_>, is_authority: bool) -> bool {
        let Scope { only_users, only_authorities, places } = &self.scope;
        if *only_users && is_authority || *only_authorities && !is_authority {
            return false;
        }
        places.is_empty() || names_place(&certificate.der(), places)
    }
}

fn name_and_key(der: &CertificateDer<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let anchor = webpki::anchor_from_trusted_cert(der).ok()?;
    Some((anchor.subject.to_vec(), anchor.subject_public_key_info.to_vec()))
}

/// What the library does not tell of a list that it has accepted.
struct Head {
    issuer: String,
    this_update: i64,
    next_update: i64,
    signed: Signed,
}

/// Reads the fields of CertificateList (RFC 5280, section 5.1) up to the revoked certificates, and those behind them.
fn head(der: &[u8]) -> Option<Head> {
    let (signed, _) = Signed::read(der)?;
    let (_, content) = Any::from_der(&signed.content).ok()?;
    let (rest, _version) = Any::from_der(content.data).ok()?;
    let (rest, _algorithm) = Any::from_der(rest).ok()?;
    let (rest, issuer) = X509Name::from_der(rest).ok()?;
    let (rest, this_update) = ASN1Time::from_der(rest).ok()?;
    let (_, next_update) = ASN1Time::from_der(rest).ok()?;
    Some(Head {
        issuer: issuer.to_string(),
        this_update: this_update.timestamp(),
        next_update: next_update.timestamp(),
        signed,
    })
}

/// Reads IssuingDistributionPoint (RFC 5280, section 5.2.5), of which the library refuses what is not looked for here.
fn scope(der: &[u8]) -> Option<Scope> {
    let (_, point) = Any::from_der(der).ok()?;
    let (mut rest, mut scope) = (point.data, Scope::default());
    while !rest.is_empty() {
        let (behind, field) = Any::from_der(rest).ok()?;
        let is_true = field.data.first().is_some_and(|byte| *byte != 0);
        match field.tag().0 {
            0 => scope.places = places(field.data)?,
            1 => scope.only_users = is_true,
            2 => scope.only_authorities = is_true,
            _ if is_true => return None,
            _ => {}
        }
        rest = behind;
    }
    Some(scope)
}

/// The URIs of DistributionPointName (RFC 5280, section 4.2.1.13); at least one, or the list would be about everything.
fn places(der: &[u8]) -> Option<Vec<String>> {
    const FULL_NAME: u32 = 0;
    const URI: u32 = 6;
    let (_, name) = Any::from_der(der).ok()?;
    let (mut rest, mut places) = (name.data, Vec::new());
    while !rest.is_empty() && name.tag().0 == FULL_NAME {
        let (behind, general) = Any::from_der(rest).ok()?;
        if general.tag().0 == URI {
            places.push(String::from_utf8(general.data.to_vec()).ok()?);
        }
        rest = behind;
    }
    (!places.is_empty()).then_some(places)
}

/// Whether a certificate says that its list is at one of these places. One that says nothing is covered by all lists.
fn names_place(der: &CertificateDer<'_>, places: &[String]) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return false };
    let points = certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::CRLDistributionPoints(points) => Some(points),
        _ => None,
    });
    let Some(points) = points else { return true };
    let is_there = |name: &GeneralName<'_>| match name {
        GeneralName::URI(uri) => places.iter().any(|place| place == uri),
        _ => false,
    };
    points.iter().any(|point| match &point.distribution_point {
        Some(DistributionPointName::FullName(names)) => names.iter().any(is_there),
        _ => false,
    })
}

fn wrong(what: &str) -> RevocationListError {
    RevocationListError(what.to_owned())
}

fn refused(error: &webpki::Error) -> RevocationListError {
    wrong(match error {
        webpki::Error::UnsupportedCrlVersion => {
            "a list of version 1; version 2 has a number (openssl: crl_extensions), and RFC 5280 asks for it"
        }
        webpki::Error::UnsupportedDeltaCrl => "a delta list, which says only what is new since another one",
        webpki::Error::UnsupportedIndirectCrl => "a list about other authorities' certificates",
        webpki::Error::UnsupportedCrlIssuingDistributionPoint
        | webpki::Error::UnsupportedRevocationReasonsPartitioning => {
            "a list of a part of its authority's revocations that cannot be told from the others"
        }
        webpki::Error::BadDer | webpki::Error::TrailingData(_) => {
            "no list of revoked certificates, or a part of one"
        }
        _ => return RevocationListError(format!("the list is not accepted: {error:?}")),
    })
}
