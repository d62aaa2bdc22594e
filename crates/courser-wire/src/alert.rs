//! Alerts as they are sent before any key exists: one record in the clear (RFC 8446 section 6).
//! Alerts under encryption are the TLS library's.

use std::fmt;

/// The content type of alerts (RFC 8446 section 5.1).
pub(crate) const ALERT: u8 = 21;

/// The whole record for a client whose hello is refused: type alert, version 3.3, two bytes.
/// The level is fatal, but for the two closure alerts, which are warnings (RFC 8446 section 6.1).
pub const fn record(description: Description) -> [u8; 7] {
    [ALERT, 3, 3, 0, 2, description.level(), description.code()]
}

/// Why a connection ends (RFC 8446 section 6, `AlertDescription`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Description {
    /// The sender will send nothing more; not an error.
    CloseNotify = 0,
    /// A message that may not come at this point.
    UnexpectedMessage = 10,
    /// A record did not authenticate.
    BadRecordMac = 20,
    /// A record is longer than the protocol allows.
    RecordOverflow = 22,
    /// No set of parameters both sides accept.
    HandshakeFailure = 40,
    /// A field is out of range or contradicts another one.
    IllegalParameter = 47,
    /// A message could not be taken apart.
    DecodeError = 50,
    /// The version is recognised and not supported.
    ProtocolVersion = 70,
    /// The parameters offered are too weak.
    InsufficientSecurity = 71,
    /// A fault of ours, unrelated to the peer.
    InternalError = 80,
    /// A fallback was attempted where it need not be (RFC 7507).
    InappropriateFallback = 86,
    /// The handshake is given up for a reason outside the protocol.
    UserCanceled = 90,
    /// An extension the protocol requires is absent.
    MissingExtension = 109,
    /// No certificate for the name asked for (RFC 6066 section 3).
    UnrecognizedName = 112,
    /// A client certificate is required and none came.
    CertificateRequired = 116,
    /// None of the application protocols offered is supported (RFC 7301 section 3.2).
    NoApplicationProtocol = 120,
}

impl Description {
    /// The number on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The name the RFC gives it, such as `unrecognized_name`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CloseNotify => "close_notify",
            Self::UnexpectedMessage => "unexpected_message",
            Self::BadRecordMac => "bad_record_mac",
            Self::RecordOverflow => "record_overflow",
            Self::HandshakeFailure => "handshake_failure",
            Self::IllegalParameter => "illegal_parameter",
            Self::DecodeError => "decode_error",
            Self::ProtocolVersion => "protocol_version",
            Self::InsufficientSecurity => "insufficient_security",
            Self::InternalError => "internal_error",
            Self::InappropriateFallback => "inappropriate_fallback",
            Self::UserCanceled => "user_canceled",
            Self::MissingExtension => "missing_extension",
            Self::UnrecognizedName => "unrecognized_name",
            Self::CertificateRequired => "certificate_required",
            Self::NoApplicationProtocol => "no_application_protocol",
        }
    }

    const fn level(self) -> u8 {
        const WARNING: u8 = 1;
        const FATAL: u8 = 2;
        match self {
            Self::CloseNotify | Self::UserCanceled => WARNING,
            _ => FATAL,
        }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_fatal_record_in_the_clear() {
        assert_eq!(record(Description::UnrecognizedName), [21, 3, 3, 0, 2, 2, 112]);
        assert_eq!(record(Description::DecodeError), [21, 3, 3, 0, 2, 2, 50]);
    }

    #[test]
    fn close_notify_is_a_warning() {
        assert_eq!(record(Description::CloseNotify), [21, 3, 3, 0, 2, 1, 0]);
    }
}
