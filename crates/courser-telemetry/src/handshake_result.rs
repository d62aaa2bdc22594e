//! How a handshake came out, in the words of gRPC's proposal A118: a closed set that other programs have too. courser's own
//! close reason says more, and stands beside it.

use crate::close::{Close, CloseReason};
use crate::named::named;

named! {
    /// The result of a handshake.
    HandshakeResult {
        /// It is done.
        Success = "SUCCESS",
        /// The certificate of the client was not accepted, or ours not by it.
        CertificateVerificationFailed = "CERTIFICATE_VERIFICATION_FAILED",
        /// It is revoked.
        CertificateRevoked = "CERTIFICATE_REVOKED",
        /// It has expired.
        CertificateExpired = "CERTIFICATE_EXPIRED",
        /// It begins later.
        CertificateNotYetValid = "CERTIFICATE_NOT_YET_VALID",
        /// Nobody who is trusted has issued it.
        CertificateAuthorityInvalid = "CERTIFICATE_AUTHORITY_INVALID",
        /// It is for another name; or there is none for the name that the client asks for.
        CertificateHostnameMismatch = "CERTIFICATE_HOSTNAME_MISMATCH",
        /// It cannot be read.
        CertificateMalformed = "CERTIFICATE_MALFORMED",
        /// No suite in common, or no signature scheme for our certificates.
        CipherSuiteMismatch = "CIPHER_SUITE_MISMATCH",
        /// No version in common.
        ProtocolVersionUnsupported = "PROTOCOL_VERSION_UNSUPPORTED",
        /// No application protocol in common.
        NoApplicationProtocol = "NO_APPLICATION_PROTOCOL",
        /// No key exchange group in common, or the exchange failed.
        KeyExchangeFailure = "KEY_EXCHANGE_FAILURE",
        /// The client has lowered its version although it need not have (RFC 7507).
        InappropriateFallback = "INAPPROPRIATE_FALLBACK",
        /// A signature of the handshake is wrong.
        SignatureVerificationFailed = "SIGNATURE_VERIFICATION_FAILED",
        /// A record could not be opened.
        DecryptionFailed = "DECRYPTION_FAILED",
        /// A message, or what stands in its place, that may not come.
        UnexpectedMessage = "UNEXPECTED_MESSAGE",
        /// It was not finished in time.
        HandshakeTimeout = "HANDSHAKE_TIMEOUT",
        /// The client has left.
        PeerConnectionClosed = "PEER_CONNECTION_CLOSED",
        /// None of these; `reason` of the connection says what.
        UnknownFailure = "UNKNOWN_FAILURE",
    }
}

impl HandshakeResult {
    /// What the close of a connection whose handshake is not done means for it; `None` where none was begun.
    pub fn of(close: &Close) -> Option<Self> {
        use CloseReason as Of;
        Some(match close.reason {
            // Before any handshake.
            Of::Probe | Of::BadProxyHeader | Of::UnexpectedProxyHeader | Of::NotTls | Of::Shed => {
                return None;
            }
            // After it, or where it is the backend's.
            Of::Done
            | Of::AcmeChallenge
            | Of::ClosedAfterHandshake
            | Of::BadRecord
            | Of::Truncated
            | Of::NoBackend
            | Of::NoLocalPort
            | Of::QueueTimeout
            | Of::BadBackendCertificate
            | Of::BackendAlert
            | Of::BackendHandshakeFailed
            | Of::BadBackendRecord
            | Of::BackendTruncated
            | Of::BackendReset
            | Of::BackendClosedEarly
            | Of::IdleTimeout
            | Of::ClientFinTimeout
            | Of::BackendFinTimeout
            | Of::MaxConnectionAge => return None,
            Of::ZeroLengthRecord | Of::OversizedRecord | Of::HelloTooLong | Of::MalformedHello => {
                Self::UnexpectedMessage
            }
            Of::HelloTimeout | Of::HandshakeTimeout => Self::HandshakeTimeout,
            Of::ClosedInHello | Of::ClosedInHandshake | Of::ClientReset => Self::PeerConnectionClosed,
            Of::UnknownName => Self::CertificateHostnameMismatch,
            Of::Sslv2Hello | Of::NoCommonVersion => Self::ProtocolVersionUnsupported,
            Of::NoCommonSuite | Of::NoUsableCertificate => Self::CipherSuiteMismatch,
            Of::NoCommonGroup => Self::KeyExchangeFailure,
            Of::NoClientCertificate => Self::CertificateVerificationFailed,
            Of::ClientAlert => Self::of_alert(close.detail.as_deref().unwrap_or_default()),
            Of::BadClientCertificate => Self::of_refusal(close.detail.as_deref().unwrap_or_default()),
            Of::HandshakeFailed => Self::of_failure(close.detail.as_deref().unwrap_or_default()),
            Of::RefusedByRule | Of::Shutdown | Of::Internal => Self::UnknownFailure,
        })
    }

    /// An alert by its name, `UnknownCA` (RFC 8446, section 6.2).
    fn of_alert(alert: &str) -> Self {
        match alert {
            "BadCertificate" | "UnsupportedCertificate" | "CertificateUnknown" | "CertificateRequired" => {
                Self::CertificateVerificationFailed
            }
            "CertificateRevoked" => Self::CertificateRevoked,
            "CertificateExpired" => Self::CertificateExpired,
            "UnknownCA" => Self::CertificateAuthorityInvalid,
            "UnrecognizedName" | "UnrecognisedName" => Self::CertificateHostnameMismatch,
            "HandshakeFailure" | "InsufficientSecurity" => Self::CipherSuiteMismatch,
            "ProtocolVersion" => Self::ProtocolVersionUnsupported,
            "NoApplicationProtocol" => Self::NoApplicationProtocol,
            "InappropriateFallback" => Self::InappropriateFallback,
            "DecryptError" => Self::SignatureVerificationFailed,
            "BadRecordMac" | "DecryptionFailed" => Self::DecryptionFailed,
            "UnexpectedMessage" | "DecodeError" | "IllegalParameter" | "RecordOverflow" => {
                Self::UnexpectedMessage
            }
            "CloseNotify" | "UserCanceled" => Self::PeerConnectionClosed,
            _ => Self::UnknownFailure,
        }
    }

    /// A certificate by the first words of why it is refused.
    fn of_refusal(detail: &str) -> Self {
        let words = [
            ("expired", Self::CertificateExpired),
            ("not valid yet", Self::CertificateNotYetValid),
            ("unknown authority", Self::CertificateAuthorityInvalid),
            ("revoked", Self::CertificateRevoked),
            ("wrong name", Self::CertificateHostnameMismatch),
            ("wrong signature", Self::SignatureVerificationFailed),
        ];
        let known = words.into_iter().find(|(words, _)| detail.starts_with(words));
        match known {
            Some((_, result)) => result,
            None if detail.contains("BadEncoding") || detail.contains("invalid encoding") => {
                Self::CertificateMalformed
            }
            None => Self::CertificateVerificationFailed,
        }
    }

    /// A failure by the words of the TLS library.
    fn of_failure(detail: &str) -> Self {
        if detail.contains("decrypt") {
            Self::DecryptionFailed
        } else if detail.contains("support any known protocol") {
            Self::NoApplicationProtocol
        } else if detail.contains("unexpected")
            || detail.contains("invalid message")
            || detail.contains("corrupt")
        {
            Self::UnexpectedMessage
        } else if detail.contains("KeyShare")
            || detail.contains("KeyExchange")
            || detail.contains("NamedGroup")
        {
            Self::KeyExchangeFailure
        } else {
            Self::UnknownFailure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reason: CloseReason, detail: &str) -> Option<&'static str> {
        HandshakeResult::of(&Close::with(reason, detail)).map(HandshakeResult::name)
    }

    /// A reason that is new has to be put in its place by the compiler; these are those that mean nothing better.
    #[test]
    fn the_word_for_the_rest_is_for_known_reasons_alone() {
        let rest = CloseReason::ALL.iter().filter(|&&reason| of(reason, "") == Some("UNKNOWN_FAILURE"));
        let names: Vec<_> = rest.map(|reason| reason.name()).collect();
        assert_eq!(names, ["refused_by_rule", "client_alert", "handshake_failed", "shutdown", "internal"]);
    }

    #[test]
    fn details_decide_where_the_reason_alone_does_not() {
        for (reason, detail, result) in [
            (CloseReason::ClientAlert, "UnknownCA", "CERTIFICATE_AUTHORITY_INVALID"),
            (CloseReason::ClientAlert, "CertificateExpired", "CERTIFICATE_EXPIRED"),
            (CloseReason::ClientAlert, "NoApplicationProtocol", "NO_APPLICATION_PROTOCOL"),
            (
                CloseReason::BadClientCertificate,
                "expired: the certificate ended 3 s ago",
                "CERTIFICATE_EXPIRED",
            ),
            (CloseReason::BadClientCertificate, "revoked: the certificate is on…", "CERTIFICATE_REVOKED"),
            (CloseReason::BadClientCertificate, "something new", "CERTIFICATE_VERIFICATION_FAILED"),
            (CloseReason::HandshakeFailed, "cannot decrypt peer's message", "DECRYPTION_FAILED"),
            (
                CloseReason::HandshakeFailed,
                "peer doesn't support any known protocol",
                "NO_APPLICATION_PROTOCOL",
            ),
        ] {
            assert_eq!(of(reason, detail), Some(result), "{reason} {detail}");
        }
    }
}
