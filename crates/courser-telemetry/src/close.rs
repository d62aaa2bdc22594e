//! Why a connection ended, and who caused that.

use std::fmt;

use crate::named::named;

named! {
    /// Who caused the end of a connection.
    Cause {
        /// The peer that opened the connection.
        Client = "client",
        /// The server behind courser.
        Backend = "backend",
        /// courser itself: a limit, a deadline, a fault.
        Courser = "courser",
        /// No failure: an orderly end, or a time limit on an idle connection.
        None = "none",
    }
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $cause:ident;)*) => {
        named! {
            /// Why a connection ended. One of these stands in every connection's line as `close_reason`. In the order of a
            /// connection's life.
            #[derive(Hash)]
            CloseReason { $($(#[doc = $doc])* $variant = $name,)* }
        }

        impl CloseReason {
            /// What it means, in a sentence: the documentation of the variant.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*).trim_ascii(),)* }
            }

            /// Whether what the client sent may be incomplete, whatever it was in the middle of.
            pub const fn cuts_request_short(self) -> bool {
                matches!(
                    self,
                    Self::Truncated
                        | Self::ClientReset
                        | Self::BadRecord
                        | Self::ClientAlert
                        | Self::Internal
                )
            }

            /// Who caused it.
            pub const fn cause(self) -> Cause {
                match self { $(Self::$variant => Cause::$cause,)* }
            }
        }
    };
}

reasons! {
    /// Both sides closed in order.
    Done = "done", None;
    /// Closed after the handshake, with close_notify or FIN, without a byte in either direction: a health check, a scan.
    ClosedAfterHandshake = "closed_after_handshake", None;
    /// The client connected and closed without a byte: a port probe or a TCP health check.
    Probe = "probe", Client;
    /// The source is one of `proxy_protocol`, and what it sent first is no PROXY header (`detail` says why).
    BadProxyHeader = "bad_proxy_header", Client;
    /// A PROXY header from a source that is none of `proxy_protocol`.
    UnexpectedProxyHeader = "unexpected_proxy_header", Client;
    /// A CA has checked who has the name, for a certificate that courser orders (`acme-tls/1`, RFC 8737).
    AcmeChallenge = "acme_challenge", None;
    /// The first bytes are no TLS: plain HTTP, or garbage.
    NotTls = "not_tls", Client;
    /// An SSL 2.0 ClientHello.
    Sslv2Hello = "sslv2_hello", Client;
    /// A handshake record without content (RFC 8446, section 5.1 forbids it).
    ZeroLengthRecord = "zero_length_record", Client;
    /// A record longer than TLS allows (RFC 8446, section 5.1).
    OversizedRecord = "oversized_record", Client;
    /// A ClientHello longer than the limit.
    HelloTooLong = "hello_too_long", Client;
    /// A ClientHello, or what stands in its place, that cannot be parsed.
    MalformedHello = "malformed_hello", Client;
    /// No complete ClientHello within the handshake deadline.
    HelloTimeout = "hello_timeout", Client;
    /// The client closed before its ClientHello was complete.
    ClosedInHello = "closed_in_hello", Client;
    /// The server name is not ours and `unknown_name = "refuse"`.
    UnknownName = "unknown_name", Client;
    /// A rule of `route` refuses such clients.
    RefusedByRule = "refused_by_rule", Client;
    /// The client offers no version that is allowed here.
    NoCommonVersion = "no_common_version", Client;
    /// The client offers no cipher suite that is allowed here in the version.
    NoCommonSuite = "no_common_suite", Client;
    /// The client supports no key exchange group that is allowed here.
    NoCommonGroup = "no_common_group", Client;
    /// The client can verify none of our certificates for the name: no common signature scheme, or in TLS 1.2 no common curve
    /// or no common suite for the kind of key.
    NoUsableCertificate = "no_usable_certificate", Client;
    /// More clients came than could be served, and this one was not (`detail` says why).
    Shed = "shed", Courser;
    /// The handshake was not finished within the handshake deadline.
    HandshakeTimeout = "handshake_timeout", Client;
    /// The client closed during the handshake.
    ClosedInHandshake = "closed_in_handshake", Client;
    /// The client refused with an alert (`detail` names it), for example because it does not trust the certificate.
    ClientAlert = "client_alert", Client;
    /// The client has shown no certificate, and has to (`client_auth = "required"`).
    NoClientCertificate = "no_client_certificate", Client;
    /// The client's certificate is not accepted (`detail` says why), for example because no authority of `client_ca` issued
    /// it, or because it has ended.
    BadClientCertificate = "bad_client_certificate", Client;
    /// The handshake failed for another reason (`detail` says which).
    HandshakeFailed = "handshake_failed", Client;
    /// A record after the handshake could not be opened, or broke the protocol (`detail` says how).
    BadRecord = "bad_record", Client;
    /// The client closed its TCP connection without close_notify: what came before may be cut short.
    Truncated = "truncated", Client;
    /// The client reset its TCP connection.
    ClientReset = "client_reset", Client;
    /// No backend could be reached.
    NoBackend = "no_backend", Backend;
    /// This machine has no local port left towards the last backend that was tried, or no address that leads there (`detail`
    /// names it).
    NoLocalPort = "no_local_port", Courser;
    /// Every server of the pool had as many connections as it may for `queue_timeout`.
    QueueTimeout = "queue_timeout", Backend;
    /// The backend's certificate is not accepted (`detail` says why): wrong name, expired, revoked, unknown authority, wrong key.
    BadBackendCertificate = "bad_backend_certificate", Backend;
    /// The backend refused TLS with an alert (`detail` names it), for example because it does not accept our certificate.
    BackendAlert = "backend_alert", Backend;
    /// The TLS handshake with the backend failed for another reason (`detail` says which).
    BackendHandshakeFailed = "backend_handshake_failed", Backend;
    /// A record of the backend could not be opened, or broke the protocol (`detail` says how).
    BadBackendRecord = "bad_backend_record", Backend;
    /// The backend closed its TCP connection without close_notify: its answer may be cut short, and the client can tell.
    BackendTruncated = "backend_truncated", Backend;
    /// The backend reset its connection.
    BackendReset = "backend_reset", Backend;
    /// The backend closed and took no more of what the client sent, for example after an early refusal; its answer was
    /// delivered.
    BackendClosedEarly = "backend_closed_early", Backend;
    /// No byte in either direction for the idle timeout.
    IdleTimeout = "idle_timeout", None;
    /// The client had ended, and for `client_fin_timeout` nothing more of the backend's answer could be delivered.
    ClientFinTimeout = "client_fin_timeout", Backend;
    /// The backend had ended, and for `backend_fin_timeout` the client neither took nor sent a byte that could be
    /// delivered.
    BackendFinTimeout = "backend_fin_timeout", Client;
    /// Open for `max_connection_age`.
    MaxConnectionAge = "max_connection_age", Courser;
    /// Still open when the drain deadline passed, or at the second SIGTERM.
    Shutdown = "shutdown", Courser;
    /// A fault of courser's own; the connection's task ended before it could say why.
    Internal = "internal", Courser;
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An ending with what is known beyond its reason.
#[derive(Clone, Debug)]
pub struct Close {
    /// Why.
    pub reason: CloseReason,
    /// What the reason alone does not say, for people.
    pub detail: Option<String>,
}

impl Close {
    /// An ending with a detail.
    pub fn with(reason: CloseReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: Some(detail.into()) }
    }
}

impl From<CloseReason> for Close {
    fn from(reason: CloseReason) -> Self {
        Self { reason, detail: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_plain() {
        let names: HashSet<_> = CloseReason::ALL.iter().map(|r| r.name()).collect();
        assert_eq!(names.len(), CloseReason::ALL.len());
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'2')));
    }
}
