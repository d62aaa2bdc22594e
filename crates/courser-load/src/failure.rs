//! The ways in which a connection fails, told apart as far as they have different causes.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use courser_net::connect::{ConnectError, ConnectErrorKind};
use courser_tls::{Failure as TlsFailure, FailureKind};
use rustix::io::Errno;

use crate::http::WrongAnswer;

/// How far a connection had come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// TCP connect.
    #[default]
    Connect,
    /// Nothing has come back for the ClientHello.
    Hello,
    /// Between the server's first bytes and the end of the handshake.
    Handshake,
    /// After the handshake, before the server has shown that it has finished too.
    Confirmation,
    /// Waiting for an answer.
    Answer,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Hello => "hello",
            Self::Handshake => "handshake",
            Self::Confirmation => "confirmation",
            Self::Answer => "answer",
        }
    }
}

/// Kinds of failure, as they are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nobody listens.
    Refused,
    /// No way there.
    Unreachable,
    /// All local ports towards this address are in use: a limit of the generator.
    NoLocalPort,
    /// No descriptor or memory for another socket: a limit of the generator.
    NoDescriptor,
    /// A source address that is not this machine's: a mistake of the caller.
    BadSource,
    /// As many connections open as were allowed: the arrival was not even tried.
    InFlightLimit,
    /// RST from the server.
    Reset(Step),
    /// It took too long.
    Timeout(Step),
    /// It was under way when the drain was over.
    Unfinished,
    /// The server ended the connection before it was done.
    Truncated(Step),
    /// The server refused with this alert.
    Alert(String),
    /// The server does not speak TLS.
    NotTls,
    /// The server's certificate was refused.
    Certificate,
    /// The server said that it resumes, and did a full handshake.
    FalseResumption,
    /// Nothing in common.
    Incompatible,
    /// The server broke the protocol.
    Protocol,
    /// HTTP/2 alone was offered, and the server has chosen no protocol.
    Http2NotAgreed,
    /// The server has agreed on HTTP/2 and speaks something else.
    NotHttp2,
    /// The server ended the HTTP/2 connection with GOAWAY and this error code (RFC 9113, section 7) before it was done.
    GoAway(String),
    /// The server ended the HTTP/2 stream with RST_STREAM and this error code.
    RstStream(String),
    /// The wrong bytes, status or length.
    WrongAnswer,
    /// The ClientHello did not offer what was asked for: the experiment is wrong.
    WrongOffer,
    /// Our fault.
    Internal,
}

impl Class {
    /// Whether the generator is to blame, not the server.
    pub fn is_ours(&self) -> bool {
        matches!(
            self,
            Self::NoLocalPort
                | Self::NoDescriptor
                | Self::BadSource
                | Self::InFlightLimit
                | Self::WrongOffer
                | Self::Internal
        )
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Reset(step) => return write!(f, "reset-{}", step.name()),
            Self::Timeout(step) => return write!(f, "timeout-{}", step.name()),
            Self::Truncated(step) => return write!(f, "truncated-{}", step.name()),
            Self::Alert(name) => return write!(f, "alert-{name}"),
            Self::GoAway(code) => return write!(f, "goaway-{code}"),
            Self::RstStream(code) => return write!(f, "rst-stream-{code}"),
            Self::Unfinished => "unfinished",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::NoLocalPort => "no-local-port",
            Self::NoDescriptor => "no-descriptor",
            Self::BadSource => "bad-source",
            Self::InFlightLimit => "in-flight-limit",
            Self::NotTls => "not-tls",
            Self::Certificate => "certificate-refused",
            Self::FalseResumption => "false-resumption",
            Self::Incompatible => "incompatible",
            Self::Protocol => "protocol",
            Self::Http2NotAgreed => "http2-not-agreed",
            Self::NotHttp2 => "not-http2",
            Self::WrongAnswer => "wrong-answer",
            Self::WrongOffer => "wrong-offer",
            Self::Internal => "internal",
        };
        f.write_str(name)
    }
}

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What kind.
    pub class: Class,
    /// In words.
    pub detail: String,
}

impl Failed {
    pub(crate) fn new(class: Class, detail: impl Into<String>) -> Self {
        Self { class, detail: detail.into() }
    }

    pub(crate) fn timeout(step: Step) -> Self {
        Self::new(Class::Timeout(step), format!("no progress in time ({})", step.name()))
    }

    /// The end of the run came before that of the connection, and before its time was over.
    pub(crate) fn unfinished(step: Step) -> Self {
        Self::new(Class::Unfinished, format!("under way at the end of the drain ({})", step.name()))
    }

    pub(crate) fn truncated(step: Step) -> Self {
        let detail = format!("the server closed the connection ({})", step.name());
        Self::new(Class::Truncated(step), detail)
    }

    /// There is no connection to this address.
    pub(crate) fn connect(error: &ConnectError, address: SocketAddr) -> Self {
        let class = match error.kind() {
            ConnectErrorKind::NoDescriptor | ConnectErrorKind::NoMemory => Class::NoDescriptor,
            ConnectErrorKind::BadSource => Class::BadSource,
            ConnectErrorKind::NoLocalPort => Class::NoLocalPort,
            ConnectErrorKind::Refused => Class::Refused,
            ConnectErrorKind::TimedOut => Class::Timeout(Step::Connect),
            ConnectErrorKind::Unreachable | ConnectErrorKind::Forbidden => Class::Unreachable,
            ConnectErrorKind::Other => Class::Internal,
        };
        Self::new(class, format!("{address}: {error}"))
    }

    /// An error of a connected socket.
    pub(crate) fn socket(error: &io::Error, step: Step) -> Self {
        let class = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN) => Class::Unreachable,
            Some(Errno::NOBUFS | Errno::NOMEM) => Class::NoDescriptor,
            Some(Errno::CONNRESET | Errno::PIPE) => Class::Reset(step),
            Some(Errno::TIMEDOUT) => Class::Timeout(step),
            _ => Class::Internal,
        };
        Self::new(class, error.to_string())
    }

    /// A failure of TLS.
    pub(crate) fn tls(failure: &TlsFailure) -> Self {
        let class = match failure.kind {
            FailureKind::AlertReceived => Class::Alert(failure.detail.clone()),
            FailureKind::Incompatible => Class::Incompatible,
            FailureKind::NotTls => Class::NotTls,
            FailureKind::Certificate | FailureKind::NoCertificate => Class::Certificate,
            FailureKind::FalseResumption => Class::FalseResumption,
            FailureKind::Protocol => Class::Protocol,
            FailureKind::Internal => Class::Internal,
        };
        Self::new(class, failure.to_string())
    }
}

impl From<WrongAnswer> for Failed {
    fn from(wrong: WrongAnswer) -> Self {
        Self::new(Class::WrongAnswer, wrong.to_string())
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.detail)
    }
}

impl std::error::Error for Failed {}
