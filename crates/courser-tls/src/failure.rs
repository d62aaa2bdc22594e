//! Failures of a TLS connection, without the library's types.

use std::fmt;

use rustls::{AlertDescription, CertificateError, Error};

/// Why a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What callers decide by.
    pub kind: FailureKind,
    /// For people: the library's message.
    pub detail: String,
}

/// Kinds of failure that a caller treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The peer refused with a fatal alert.
    AlertReceived,
    /// Nothing in common: suites, groups, schemes, application protocols or versions.
    Incompatible,
    /// The peer's certificate, or its signature with it, was refused.
    Certificate,
    /// The peer sent no certificate, though one is required.
    NoCertificate,
    /// The server accepted the resumption and then began a full handshake.
    FalseResumption,
    /// What the peer sends is not TLS; `detail` quotes how it begins.
    NotTls,
    /// A record or message that breaks the protocol, or could not be opened.
    Protocol,
    /// A fault of this side.
    Internal,
}

impl Failure {
    /// The alert with which the peer refused, as the library names it (`HandshakeFailure`).
    pub fn alert(&self) -> Option<&str> {
        (self.kind == FailureKind::AlertReceived).then_some(&self.detail)
    }

    /// A fault of this side.
    pub fn internal(detail: &str) -> Self {
        Self { kind: FailureKind::Internal, detail: detail.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::AlertReceived(_) => FailureKind::AlertReceived,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => FailureKind::Incompatible,
            Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::InvalidMessage(_)
            | Error::DecryptError
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord => FailureKind::Protocol,
            Error::InvalidCertificate(_) => FailureKind::Certificate,
            Error::NoCertificatesPresented => FailureKind::NoCertificate,
            _ => FailureKind::Internal,
        };
        let detail = match &error {
            Error::AlertReceived(alert) => format!("{alert:?}"),
            Error::InvalidCertificate(refused) => describe(refused),
            other => other.to_string(),
        };
        Self { kind, detail }
    }
}

/// Why a certificate is refused, in the words of the documentation. The library has the rest.
fn describe(refused: &CertificateError) -> String {
    match refused {
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<_> = presented.iter().map(|name| plain_name(name)).collect();
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!("wrong name: the certificate is for {names}, not for {}", expected.to_str())
        }
        CertificateError::ExpiredContext { time, not_after } => {
            format!(
                "expired: the certificate ended {} s ago",
                time.as_secs().saturating_sub(not_after.as_secs())
            )
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let seconds = not_before.as_secs().saturating_sub(time.as_secs());
            format!("not valid yet: the certificate begins in {seconds} s")
        }
        CertificateError::UnknownIssuer => {
            "unknown authority: none that is trusted issued the certificate".to_owned()
        }
        CertificateError::Revoked => "revoked: the certificate is on its authority's list".to_owned(),
        CertificateError::UnknownRevocationStatus => {
            "revocation unknown: no list covers the certificate, or one above it".to_owned()
        }
        CertificateError::ExpiredRevocationListContext { time, next_update } => {
            let seconds = time.as_secs().saturating_sub(next_update.as_secs());
            format!("revocation unknown: the authority's list was due for renewal {seconds} s ago")
        }
        CertificateError::BadSignature => {
            "wrong signature: not made by the key that should have signed".to_owned()
        }
        CertificateError::Other(ours) => ours.to_string(),
        other => format!("the certificate is not accepted: {other}"),
    }
}

/// A name as certificates have it: the library adds its kind, `DnsName("a.example")`.
fn plain_name(name: &str) -> &str {
    name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')').trim_matches('"'))
}

/// The alert that ends a connection after `error`, where the library sends none (RFC 8446, section 6.2): code point.
pub(crate) fn alert_for(error: &Error) -> u8 {
    u8::from(match error {
        Error::InvalidMessage(_) => AlertDescription::DecodeError,
        Error::DecryptError => AlertDescription::BadRecordMac,
        Error::PeerSentOversizedRecord => AlertDescription::RecordOverflow,
        Error::InvalidCertificate(CertificateError::Revoked) => AlertDescription::CertificateRevoked,
        Error::InvalidCertificate(_) => AlertDescription::BadCertificate,
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => AlertDescription::HandshakeFailure,
        Error::PeerMisbehaved(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. } => AlertDescription::UnexpectedMessage,
        _ => AlertDescription::InternalError,
    })
}

/// unexpected_message (RFC 8446, section 6.2).
pub(crate) const UNEXPECTED_MESSAGE: u8 = 10;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Failure {}
