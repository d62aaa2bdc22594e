//! Result of a client's handshake.

/// How a session was offered for resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumptionMethod {
    /// By its ID, TLS 1.2 (RFC 5246, section 7.4.1.2).
    SessionId,
    /// By a ticket, TLS 1.2 (RFC 5077).
    Ticket,
    /// By a pre-shared key, TLS 1.3 (RFC 8446, section 4.2.11).
    Psk,
}

/// Result of a finished handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHandshakeInfo {
    /// Protocol version, code point.
    pub version: u16,
    /// Cipher suite, code point.
    pub suite: u16,
    /// Key exchange group, code point; none for a TLS 1.2 resumption.
    pub group: Option<u16>,
    /// Scheme of the server's signature, code point; none for a resumption.
    pub scheme: Option<u16>,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
    /// How a session was offered for resumption, if one was.
    pub offered: Option<ResumptionMethod>,
    /// Whether the server resumed it.
    pub resumed: bool,
    /// Whether the server sent a HelloRetryRequest first (RFC 8446, section 4.1.4).
    pub retried: bool,
    /// Whether the server accepted the early data; none when it was not offered.
    pub early_data: Option<bool>,
}
