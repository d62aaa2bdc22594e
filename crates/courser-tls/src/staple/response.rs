//! Reads an OCSP response (RFC 6960, section 4.2.1). Verifies nothing.

use aws_lc_rs::digest::{self, Algorithm, Digest};
use x509_parser::asn1_rs::{Any, Class, FromDer, Tag};
use x509_parser::time::ASN1Time;

use super::StapleError;
use crate::serial::{SERIAL, serial};
use crate::signed::Signed;

pub(super) struct Response<'a> {
    pub(super) signed: Signed,
    pub(super) responder: Responder,
    pub(super) answers: Vec<Answer>,
    /// Those that came along, DER.
    pub(super) certificates: Vec<&'a [u8]>,
}

/// ResponderID: who says to have signed.
pub(super) enum Responder {
    /// DER.
    Name(Vec<u8>),
    /// SHA-1 of the public key.
    Key(Vec<u8>),
}

/// SingleResponse with its CertID.
pub(super) struct Answer {
    pub(super) hash: Hash,
    pub(super) issuer_name_hash: Vec<u8>,
    pub(super) issuer_key_hash: Vec<u8>,
    pub(super) serial: [u8; SERIAL],
    pub(super) status: CertificateStatus,
    /// Unix seconds.
    pub(super) this_update: i64,
    pub(super) next_update: Option<i64>,
}

/// CertStatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificateStatus {
    Good,
    Revoked,
    Unknown,
}

/// What the issuer is named by.
#[derive(Clone, Copy)]
pub(super) struct Hash(&'static Algorithm);

impl Hash {
    pub(super) fn of(self, bytes: &[u8]) -> Digest {
        digest::digest(self.0, bytes)
    }
}

impl Responder {
    pub(super) fn is(&self, name: &[u8], key: &[u8]) -> bool {
        match self {
            Self::Name(expected) => expected == name,
            Self::Key(expected) => Hash(&digest::SHA1_FOR_LEGACY_USE_ONLY).of(key).as_ref() == expected,
        }
    }
}

impl<'a> Response<'a> {
    pub(super) fn read(der: &'a [u8]) -> Result<Self, StapleError> {
        let (status, basic) = outer(der).ok_or(StapleError::Malformed)?;
        match status {
            0 => basic.and_then(read_basic).ok_or(StapleError::Malformed),
            1 => Err(StapleError::NotAnswered("malformedRequest")),
            2 => Err(StapleError::NotAnswered("internalError")),
            3 => Err(StapleError::NotAnswered("tryLater")),
            5 => Err(StapleError::NotAnswered("sigRequired")),
            6 => Err(StapleError::NotAnswered("unauthorized")),
            _ => Err(StapleError::Malformed),
        }
    }
}

/// The content of a value, which has to be all there is.
pub(super) fn content(der: &[u8]) -> Option<&[u8]> {
    let (rest, value) = Any::from_der(der).ok()?;
    rest.is_empty().then_some(value.data)
}

/// The small numbers in SEQUENCE OF INTEGER.
pub(super) fn numbers(der: &[u8]) -> Vec<u8> {
    let mut fields = Fields(content(der).unwrap_or_default());
    let mut numbers = Vec::new();
    while let Some(field) = fields.next_if(|field| field.tag() == Tag::Integer) {
        numbers.extend(<[u8; 1]>::try_from(field.data).map(|[number]| number));
    }
    numbers
}

/// OCSPResponse: its status, and BasicOCSPResponse.
fn outer(der: &[u8]) -> Option<(u8, Option<&[u8]>)> {
    /// id-pkix-ocsp-basic, 1.3.6.1.5.5.7.48.1.1.
    const BASIC: [u8; 9] = [0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
    let mut response = Fields(content_of(der, Tag::Sequence)?);
    let [status] = *response.next(Tag::Enumerated)?.data else { return None };
    let Some(bytes) = response.tagged(0) else { return response.end((status, None)) };
    let mut bytes = Fields(content_of(bytes, Tag::Sequence)?);
    let kind = bytes.next(Tag::Oid)?;
    let basic = bytes.next(Tag::OctetString)?;
    bytes.end(())?;
    response.end((status, (kind.data == BASIC).then_some(basic.data)))
}

fn read_basic(der: &[u8]) -> Option<Response<'_>> {
    content_of(der, Tag::Sequence)?;
    let (signed, behind) = Signed::read(der)?;
    let certificates = match Fields(behind).tagged(0) {
        Some(list) => certificates(content_of(list, Tag::Sequence)?)?,
        None => Vec::new(),
    };
    let mut data = Fields(content_of(&signed.content, Tag::Sequence)?);
    // The version, of which there is one.
    let _ = data.tagged(0);
    let responder = match (data.tagged(1), data.tagged(2)) {
        (Some(name), None) => Responder::Name(name.to_vec()),
        (None, Some(key)) => Responder::Key(content_of(key, Tag::OctetString)?.to_vec()),
        _ => return None,
    };
    let _produced_at = data.next(Tag::GeneralizedTime)?;
    let mut list = Fields(data.next(Tag::Sequence)?.data);
    let mut answers = Vec::new();
    while !list.0.is_empty() {
        // About one whose issuer is named by a hash that is not known here, nothing is known.
        answers.extend(answer(list.next(Tag::Sequence)?.data)?);
    }
    Some(Response { responder, answers, certificates, signed })
}

fn certificates(mut list: &[u8]) -> Option<Vec<&[u8]>> {
    let mut certificates = Vec::new();
    while !list.is_empty() {
        let (rest, _) = Any::from_der(list).ok()?;
        certificates.push(list.get(..list.len() - rest.len())?);
        list = rest;
    }
    Some(certificates)
}

/// SingleResponse; `Some(None)` for a hash that is not known here.
fn answer(der: &[u8]) -> Option<Option<Answer>> {
    let mut fields = Fields(der);
    let mut id = Fields(fields.next(Tag::Sequence)?.data);
    let algorithm = Fields(id.next(Tag::Sequence)?.data).next(Tag::Oid)?;
    let issuer_name_hash = id.next(Tag::OctetString)?.data.to_vec();
    let issuer_key_hash = id.next(Tag::OctetString)?.data.to_vec();
    let serial = serial(id.next(Tag::Integer)?.data)?;
    let status = match fields.any()? {
        it if it.class() != Class::ContextSpecific => return None,
        it if it.tag().0 == 0 => CertificateStatus::Good,
        it if it.tag().0 == 1 => CertificateStatus::Revoked,
        it if it.tag().0 == 2 => CertificateStatus::Unknown,
        _ => return None,
    };
    let (behind, this_update) = ASN1Time::from_der(fields.0).ok()?;
    let next_update = match Fields(behind).tagged(0) {
        Some(time) => Some(ASN1Time::from_der(time).ok()?.1.timestamp()),
        None => None,
    };
    let this_update = this_update.timestamp();
    let Some(hash) = hash(algorithm.data) else { return Some(None) };
    Some(Some(Answer { hash, issuer_name_hash, issuer_key_hash, serial, status, this_update, next_update }))
}

/// By the content of its object identifier. SHA-1 is what responders are asked with (RFC 5019, section 2.1.1); it
/// protects nothing here.
fn hash(oid: &[u8]) -> Option<Hash> {
    Some(Hash(match oid {
        [0x2b, 0x0e, 3, 2, 0x1a] => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1] => &digest::SHA256,
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2] => &digest::SHA384,
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3] => &digest::SHA512,
        _ => return None,
    }))
}

fn content_of(der: &[u8], tag: Tag) -> Option<&[u8]> {
    let mut fields = Fields(der);
    let value = fields.next(tag)?;
    fields.end(value.data)
}

/// What is left of a sequence's fields.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn any(&mut self) -> Option<Any<'a>> {
        let (rest, value) = Any::from_der(self.0).ok()?;
        self.0 = rest;
        Some(value)
    }

    fn next_if(&mut self, is_it: impl FnOnce(&Any<'a>) -> bool) -> Option<Any<'a>> {
        let (rest, value) = Any::from_der(self.0).ok()?;
        is_it(&value).then(|| {
            self.0 = rest;
            value
        })
    }

    fn next(&mut self, tag: Tag) -> Option<Any<'a>> {
        self.next_if(|value| value.class() == Class::Universal && value.tag() == tag)
    }

    /// The content of the field with this tag of its own, if it is the next.
    fn tagged(&mut self, tag: u32) -> Option<&'a [u8]> {
        self.next_if(|value| value.class() == Class::ContextSpecific && value.tag().0 == tag)
            .map(|value| value.data)
    }

    /// `found`, if nothing is left.
    fn end<T>(&self, found: T) -> Option<T> {
        self.0.is_empty().then_some(found)
    }
}
