//! The record of one connection: every field, its name, and its line.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use crate::close::Close;
use crate::line::Line;
use crate::named::named;
use crate::time::{micros, write_rfc3339};

named! {
    /// How the session of a connection came to be.
    Resumption {
        /// A full handshake.
        Full = "full",
        /// Resumed by session ID (RFC 5246, section 7.3).
        SessionId = "session_id",
        /// Resumed by session ticket (RFC 5077).
        Ticket = "ticket",
        /// Resumed by pre-shared key (RFC 8446, section 2.2).
        Psk = "psk",
    }
}

named! {
    /// Where the TLS of a connection ends.
    TlsMode {
        /// Here.
        Terminate = "terminate",
        /// At a backend, which gets it as it comes.
        Passthrough = "passthrough",
    }
}

named! {
    /// What became of a TLS handshake with a backend.
    BackendHandshake {
        /// A full handshake.
        Full = "full",
        /// A session of this server was resumed.
        Resumed = "resumed",
        /// It failed.
        Failed = "failed",
    }
}

/// An end of a connection as logs print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An IP address and port.
    Ip(SocketAddr),
    /// A unix socket.
    Unix,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// Everything known about a connection when it ended. Times are microseconds, sizes are bytes of plaintext.
#[derive(Clone, Debug)]
pub struct ConnectionRecord {
    /// When it was accepted.
    pub accepted: SystemTime,
    /// Worker that served it, counted from 0.
    pub worker: u16,
    /// Number of the connection on that worker.
    pub number: u64,
    /// Configured name of the listener.
    pub listener: String,
    /// Where its TLS ends, once that is decided.
    pub tls_mode: Option<TlsMode>,
    /// Configured name of the virtual host, once chosen.
    pub host: Option<String>,
    /// The client: as a PROXY header names it, or the socket's peer.
    pub client: Peer,
    /// The socket's peer, where a PROXY header names the client.
    pub via: Option<Peer>,
    /// Server name of the ClientHello.
    pub sni: Option<String>,
    /// What else the ClientHello offers.
    pub offered: Offered,
    /// Application protocol agreed on.
    pub alpn: Option<String>,
    /// Protocol version.
    pub version: Option<&'static str>,
    /// Cipher suite, IANA name.
    pub suite: Option<&'static str>,
    /// Key exchange group.
    pub group: Option<&'static str>,
    /// Signature scheme of a full handshake.
    pub scheme: Option<&'static str>,
    /// Key of the certificate chosen, for example `EC256` or `RSA2048`.
    pub key: Option<String>,
    /// Common name of the client's certificate, which was verified; empty if it has none.
    pub client_cert: Option<String>,
    /// How the session came to be.
    pub session: Option<Resumption>,
    /// Why an offered session was not resumed.
    pub not_resumed: Option<&'static str>,
    /// The backend that served it.
    pub backend: Option<String>,
    /// TLS with it.
    pub backend_tls: Option<BackendTlsRecord>,
    /// Backends that were tried in vain before.
    pub retries: u32,
    /// From the client.
    pub bytes_in: u64,
    /// To the client.
    pub bytes_out: u64,
    /// Time from accept to the complete ClientHello.
    pub hello: Option<Duration>,
    /// Time from the ClientHello to the end of the handshake.
    pub handshake: Option<Duration>,
    /// Time from the handshake to the connected backend.
    pub connect: Option<Duration>,
    /// Time from accept to the end.
    pub total: Duration,
    /// Why it ended.
    pub close: Close,
}

/// What a ClientHello offers, for connections whose route may be decided by it.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    /// Application protocols, in order, with commas between.
    pub alpn: Option<String>,
    /// Protocol versions, the highest first, with commas between.
    pub versions: Option<String>,
    /// Whether the ClientHello has `encrypted_client_hello`.
    pub ech: bool,
}

/// What TLS with a backend has agreed on.
#[derive(Clone, Copy, Debug)]
pub struct BackendTlsRecord {
    /// Protocol version.
    pub version: &'static str,
    /// Cipher suite, IANA name.
    pub suite: &'static str,
    /// How the session came to be.
    pub session: BackendHandshake,
}

/// The fields of a line, in order, and what each says. A value that is not known is `-` in text, `null` in JSON.
pub const FIELDS: &[(&str, &str)] = &[
    ("time", "when it was accepted, UTC"),
    ("id", "worker and number of the connection on it; backends get the same in PROXY v2's UNIQUE_ID"),
    ("worker", "the worker that served it, counted from 0"),
    ("listener", "configured name of the listener"),
    ("tls_mode", "`terminate`, or `passthrough` where a rule relays TLS as it comes"),
    ("host", "configured name of the virtual host, once chosen"),
    ("client", "address and port of the client, or `unix`: as a PROXY header names it, or the socket's peer"),
    ("via", "address and port of the socket's peer, or `unix`, where a PROXY header names the client"),
    ("sni", "server name of the ClientHello, in lower case"),
    ("alpn_offered", "application protocols of the ClientHello, where the listener has rules"),
    ("versions_offered", "protocol versions of the ClientHello, where the listener has rules"),
    (
        "ech",
        "`offered` where the ClientHello has `encrypted_client_hello`: `sni` is then a public name, or the client greases",
    ),
    ("alpn", "application protocol agreed on"),
    ("version", "protocol version"),
    ("suite", "cipher suite, IANA's name"),
    ("group", "key exchange group"),
    ("scheme", "signature scheme; none where a session was resumed"),
    ("key", "key of the certificate chosen, for example `EC256` or `RSA2048`"),
    ("client_cert", "common name of the client's certificate, which was verified; empty if it has none"),
    ("session", "`full` handshake, or resumed by `session_id`, `ticket` or `psk`"),
    ("not_resumed", "why an offered session was not resumed"),
    ("backend", "the backend that served it, or the last one tried"),
    ("backend_version", "protocol version of TLS with the backend"),
    ("backend_suite", "cipher suite with the backend, IANA's name"),
    ("backend_session", "`full` handshake with the backend, or `resumed`"),
    ("retries", "addresses of backends that were tried in vain"),
    ("bytes_in", "bytes of plaintext from the client; of TLS where it is relayed"),
    ("bytes_out", "bytes of plaintext to the client; of TLS where it is relayed"),
    ("hello_us", "microseconds from accept to the complete ClientHello"),
    ("handshake_us", "microseconds from there to the end of the handshake"),
    ("connect_us", "microseconds from there, or from the ClientHello of a relay, to the connected backend"),
    ("total_us", "microseconds from accept to the end"),
    ("close_reason", "why it ended"),
    ("cause", "who caused that: `client`, `backend`, `courser` or `none`"),
    ("detail", "what `close_reason` does not say, for people; its words may change"),
];

impl ConnectionRecord {
    /// Appends the record's line to `out`.
    pub fn write(&self, out: &mut String, json: bool) {
        let mut stamp = String::with_capacity(24);
        write_rfc3339(self.accepted, &mut stamp);
        let mut line = Line::start(out, json);
        line.plain("time", stamp);
        line.plain("id", format_args!("{}-{}", self.worker, self.number));
        line.number("worker", u64::from(self.worker));
        line.text("listener", &self.listener);
        line.maybe("tls_mode", self.tls_mode.map(TlsMode::name));
        line.maybe("host", self.host.as_deref());
        line.plain("client", &self.client);
        match &self.via {
            Some(via) => line.plain("via", via),
            None => line.maybe("via", None),
        }
        self.write_tls(&mut line);
        self.write_traffic(&mut line);
        line.end();
    }

    fn write_tls(&self, line: &mut Line<'_>) {
        line.maybe("sni", self.sni.as_deref());
        line.maybe("alpn_offered", self.offered.alpn.as_deref());
        line.maybe("versions_offered", self.offered.versions.as_deref());
        line.maybe("ech", self.offered.ech.then_some("offered"));
        line.maybe("alpn", self.alpn.as_deref());
        line.maybe("version", self.version);
        line.maybe("suite", self.suite);
        line.maybe("group", self.group);
        line.maybe("scheme", self.scheme);
        line.maybe("key", self.key.as_deref());
        line.maybe("client_cert", self.client_cert.as_deref());
        line.maybe("session", self.session.map(Resumption::name));
        line.maybe("not_resumed", self.not_resumed);
    }

    fn write_traffic(&self, line: &mut Line<'_>) {
        line.maybe("backend", self.backend.as_deref());
        let tls = self.backend_tls;
        line.maybe("backend_version", tls.map(|tls| tls.version));
        line.maybe("backend_suite", tls.map(|tls| tls.suite));
        line.maybe("backend_session", tls.map(|tls| tls.session.name()));
        line.number("retries", u64::from(self.retries));
        line.number("bytes_in", self.bytes_in);
        line.number("bytes_out", self.bytes_out);
        for (name, time) in
            [("hello_us", self.hello), ("handshake_us", self.handshake), ("connect_us", self.connect)]
        {
            match time {
                Some(time) => line.number(name, micros(time)),
                None => line.maybe(name, None),
            }
        }
        line.number("total_us", micros(self.total));
        line.text("close_reason", self.close.reason.name());
        line.text("cause", self.close.reason.cause().name());
        line.maybe("detail", self.close.detail.as_deref());
    }
}
