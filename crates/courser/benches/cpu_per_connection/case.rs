//! The cases: what a connection does.

use courser_testkit::{
    KeyType,
    client::{Resume, Version},
    load::Workload,
};

/// Bytes of the object in the cases with a request.
pub(crate) const ANSWER: usize = 1024;

/// One kind of connection whose cost is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Tls13EcdsaHandshake,
    Tls13EcdsaRequest,
    Tls12Ticket,
    Tls12SessionId,
    Tls13RsaRequest,
    IdleMemory,
}

impl Case {
    pub(crate) const ALL: [Self; 6] = [
        Self::Tls13EcdsaHandshake,
        Self::Tls13EcdsaRequest,
        Self::Tls12Ticket,
        Self::Tls12SessionId,
        Self::Tls13RsaRequest,
        Self::IdleMemory,
    ];

    /// For options and results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tls13EcdsaHandshake => "1-tls13-ecdsa-handshake",
            Self::Tls13EcdsaRequest => "2-tls13-ecdsa-request",
            Self::Tls12Ticket => "3a-tls12-ticket-request",
            Self::Tls12SessionId => "3b-tls12-session-id-request",
            Self::Tls13RsaRequest => "4-tls13-rsa-request",
            Self::IdleMemory => "5-idle-memory",
        }
    }

    /// What each connection does, in full.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Tls13EcdsaHandshake => {
                "TLS 1.3 full handshake, ECDSA P-256: connect, ClientHello to Finished, close_notify, FIN; \
                 wait for the server's FIN"
            }
            Self::Tls13EcdsaRequest => {
                "TLS 1.3 full handshake, ECDSA P-256: one HTTP request, 1 KiB answer; the origin closes, \
                 the server closes, the client answers with close_notify and closes"
            }
            Self::Tls12Ticket => "TLS 1.2 resumed by session ticket, with the same request",
            Self::Tls12SessionId => "TLS 1.2 resumed by session ID, with the same request",
            Self::Tls13RsaRequest => "TLS 1.3 full handshake, RSA-2048, with the same request",
            Self::IdleMemory => {
                "PSS per idle TLS 1.3 connection, after one request each, relayed connection to the origin open"
            }
        }
    }

    /// What its figures count.
    pub(crate) fn unit(self) -> &'static str {
        if self == Self::IdleMemory { "KiB" } else { "us" }
    }

    pub(crate) fn version(self) -> Version {
        match self {
            Self::Tls12Ticket | Self::Tls12SessionId => Version::Tls12,
            _ => Version::Tls13,
        }
    }

    pub(crate) fn key(self) -> KeyType {
        if self == Self::Tls13RsaRequest { KeyType::Rsa2048 } else { KeyType::EcdsaP256 }
    }

    pub(crate) fn resume(self) -> Resume {
        match self {
            Self::Tls12Ticket => Resume::Ticket,
            Self::Tls12SessionId => Resume::SessionId,
            _ => Resume::Never,
        }
    }

    /// What a connection does after its handshake.
    pub(crate) fn exchange(self) -> Workload {
        if self == Self::Tls13EcdsaHandshake { Workload::Handshake } else { Workload::Request(ANSWER) }
    }
}
