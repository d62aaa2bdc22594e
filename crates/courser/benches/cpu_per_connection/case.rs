//! The cases: what a connection does.

use std::time::Duration;

use courser_testkit::{
    KeyType,
    client::{Profile, Resume, Terms, Version},
    load::Workload,
};

/// Bytes of the object in the cases with a request.
pub(crate) const ANSWER: usize = 1024;

/// Bytes of a transfer, 20 MiB, and of a MiB.
const TRANSFER: usize = 20 * MEBIBYTE;
const MEBIBYTE: usize = 1 << 20;

/// One kind of connection whose cost is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    PostQuantumHandshake,
    PostQuantumTicket,
    PostQuantumRsa,
    PostQuantumTwoSegments,
    Tls13EcdsaHandshake,
    Sha384Handshake,
    Tls13EcdsaRequest,
    Tls13Ticket,
    Tls12Ticket,
    Tls12SessionId,
    Tls13RsaRequest,
    IdleMemory,
    Download,
    Upload,
    Answers16Kib,
    Answers1Kib,
}

impl Case {
    pub(crate) const ALL: [Self; 16] = [
        Self::PostQuantumHandshake,
        Self::PostQuantumTicket,
        Self::PostQuantumRsa,
        Self::PostQuantumTwoSegments,
        Self::Tls13EcdsaHandshake,
        Self::Sha384Handshake,
        Self::Tls13EcdsaRequest,
        Self::Tls13Ticket,
        Self::Tls12Ticket,
        Self::Tls12SessionId,
        Self::Tls13RsaRequest,
        Self::IdleMemory,
        Self::Download,
        Self::Upload,
        Self::Answers16Kib,
        Self::Answers1Kib,
    ];

    /// For options and results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PostQuantumHandshake => "0-tls13-mlkem-handshake",
            Self::PostQuantumTicket => "0b-tls13-mlkem-ticket",
            Self::PostQuantumRsa => "0c-tls13-mlkem-rsa-handshake",
            Self::PostQuantumTwoSegments => "0d-tls13-mlkem-two-segments",
            Self::Tls13EcdsaHandshake => "1-tls13-ecdsa-handshake",
            Self::Sha384Handshake => "1b-tls13-sha384-handshake",
            Self::Tls13EcdsaRequest => "2-tls13-ecdsa-request",
            Self::Tls13Ticket => "2b-tls13-ticket-request",
            Self::Tls12Ticket => "3a-tls12-ticket-request",
            Self::Tls12SessionId => "3b-tls12-session-id-request",
            Self::Tls13RsaRequest => "4-tls13-rsa-request",
            Self::IdleMemory => "5-idle-memory",
            Self::Download => "6-download-20mb",
            Self::Upload => "6b-upload-20mb",
            Self::Answers16Kib => "6c-answers-16kb",
            Self::Answers1Kib => "6d-answers-1kb",
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
            Self::PostQuantumHandshake => "the first handshake, with X25519MLKEM768 as browsers ask for it",
            Self::PostQuantumTicket => "TLS 1.3 resumed by ticket, with X25519MLKEM768 and the same request",
            Self::PostQuantumRsa => "the first handshake, with X25519MLKEM768 and RSA-2048",
            Self::PostQuantumTwoSegments => {
                "the first handshake, with X25519MLKEM768, its ClientHello in two segments 5 ms apart: two reads"
            }
            Self::Sha384Handshake => {
                "the first handshake, with AES-256-GCM-SHA384 as OpenSSL's clients ask for it"
            }
            Self::Tls13Ticket => "TLS 1.3 resumed by ticket, with the same request",
            Self::Tls12Ticket => "TLS 1.2 resumed by session ticket, with the same request",
            Self::Tls12SessionId => "TLS 1.2 resumed by session ID, with the same request",
            Self::Tls13RsaRequest => "TLS 1.3 full handshake, RSA-2048, with the same request",
            Self::Download => "a TLS 1.3 connection with one answer of 20 MiB, per MiB",
            Self::Upload => "a TLS 1.3 connection with one request of 20 MiB, per MiB",
            Self::Answers16Kib => {
                "a TLS 1.3 connection with answers of 16 KiB one after the other, 20 MiB, per MiB"
            }
            Self::Answers1Kib => {
                "a TLS 1.3 connection with answers of 1 KiB one after the other, 2 MiB, per MiB"
            }
            Self::IdleMemory => {
                "PSS per idle TLS 1.3 connection, after one request each, relayed connection to the origin open"
            }
        }
    }

    /// Whether its instructions have a limit: those with X25519MLKEM768 but the first are made of what others have.
    #[allow(dead_code, reason = "the other benchmark asks for it")]
    pub(crate) fn is_counted(self) -> bool {
        use Case::{IdleMemory, PostQuantumRsa, PostQuantumTicket, PostQuantumTwoSegments};
        !matches!(self, IdleMemory | PostQuantumTicket | PostQuantumRsa | PostQuantumTwoSegments)
    }

    /// What its figures count.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::IdleMemory => "KiB",
            _ if self.mebibytes().is_some() => "us/MiB",
            _ => "us",
        }
    }

    /// What a connection transfers, where its figure is per MiB and not per connection.
    pub(crate) fn mebibytes(self) -> Option<f64> {
        match self {
            Self::Download | Self::Upload | Self::Answers16Kib => Some(20.0),
            Self::Answers1Kib => Some(2.0),
            _ => None,
        }
    }

    /// What its connections agree on.
    pub(crate) fn terms(self) -> Terms {
        Terms {
            version: match self {
                Self::Tls12Ticket | Self::Tls12SessionId => Version::Tls12,
                _ => Version::Tls13,
            },
            key: match self {
                Self::Tls13RsaRequest | Self::PostQuantumRsa => KeyType::Rsa2048,
                _ => KeyType::EcdsaP256,
            },
            resume: match self {
                Self::PostQuantumTicket | Self::Tls13Ticket | Self::Tls12Ticket => Resume::Ticket,
                Self::Tls12SessionId => Resume::SessionId,
                _ => Resume::Never,
            },
            profile: match self {
                Self::PostQuantumHandshake
                | Self::PostQuantumTicket
                | Self::PostQuantumRsa
                | Self::PostQuantumTwoSegments => Profile::PostQuantum,
                Self::Sha384Handshake => Profile::Sha384,
                _ => Profile::Common,
            },
        }
    }

    /// The flags that hold courser to them.
    pub(crate) fn flags(self) -> Vec<&'static str> {
        let Terms { version, key, resume, profile } = self.terms();
        let (version, suite) = match (version, key) {
            (Version::Tls13, _) => ("1.3", profile.suite()),
            (Version::Tls12, KeyType::Rsa2048) => ("1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
            (Version::Tls12, _) => ("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        };
        let resume: &[_] = match resume {
            Resume::Never => &["--tickets-per-handshake", "2"],
            Resume::Ticket => &["--no-session-ids"],
            Resume::SessionId => &["--no-tickets"],
        };
        [&["--tls-versions", version, "--suites", suite, "--groups", profile.group()], resume].concat()
    }

    /// The pause between the two halves of a ClientHello that does not come at once: longer than a busy server has others to
    /// serve first, so that it reads twice.
    pub(crate) fn pause_in_hello(self) -> Option<Duration> {
        (self == Self::PostQuantumTwoSegments).then_some(Duration::from_millis(5))
    }

    /// What a connection does after its handshake.
    pub(crate) fn exchange(self) -> Workload {
        match self {
            Self::PostQuantumHandshake
            | Self::PostQuantumRsa
            | Self::PostQuantumTwoSegments
            | Self::Tls13EcdsaHandshake
            | Self::Sha384Handshake => Workload::Handshake,
            Self::Download => Workload::Request(TRANSFER),
            Self::Upload => Workload::Upload(TRANSFER),
            Self::Answers16Kib => Workload::Requests { size: 16 << 10, count: TRANSFER / (16 << 10) },
            Self::Answers1Kib => Workload::Requests { size: ANSWER, count: 2 * MEBIBYTE / ANSWER },
            _ => Workload::Request(ANSWER),
        }
    }
}
