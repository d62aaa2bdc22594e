//! Alerts as they are sent before any key exists: one record in the clear (RFC 8446 section 6).
//! Alerts under encryption are the TLS library's.

/// The content type of alerts (RFC 8446 section 5.1).
pub(crate) const ALERT: u8 = 21;

/// The whole record for a client whose hello is refused: type alert, version 3.3, two bytes, of which the first is
/// the level: fatal (RFC 8446 section 6.2).
pub const fn record(description: Description) -> [u8; 7] {
    [ALERT, 3, 3, 0, 2, FATAL, description.code()]
}

const FATAL: u8 = 2;

/// Why a connection ends (RFC 8446 section 6, `AlertDescription`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Description {
    /// A message that may not come at this point.
    UnexpectedMessage = 10,
    /// A record is longer than the protocol allows.
    RecordOverflow = 22,
    /// No set of parameters both sides accept.
    HandshakeFailure = 40,
    /// A field is out of range or contradicts another one.
    IllegalParameter = 47,
    /// The rules of the server do not let this client in.
    AccessDenied = 49,
    /// A message could not be taken apart.
    DecodeError = 50,
    /// The version is recognised and not supported.
    ProtocolVersion = 70,
    /// A failure that has nothing to do with the peer.
    InternalError = 80,
    /// No certificate for the name asked for (RFC 6066 section 3).
    UnrecognizedName = 112,
}

impl Description {
    /// The number on the wire.
    pub const fn code(self) -> u8 {
        self as u8
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
}
