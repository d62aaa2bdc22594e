//! A TLS client that offers exactly one version, suite and resumption method, and checks what it got.
//!
//! Blocking sockets: under load every connection has a thread, see [`crate::load`]. Signatures and chains are checked
//! only when a root is given: their verification costs a load client as much as the rest of a handshake, and does not
//! change what the server does. Key exchange, Finished and every record's authentication are always checked.

mod clock;
pub mod hostile;
mod session_thief;
mod unverified;

pub use hostile::HostileClient;
pub use session_thief::SessionThief;
pub use unverified::Unverified;

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use rustls::{
    CipherSuite, ClientConfig, ClientConnection, HandshakeKind, NamedGroup, ProtocolVersion, RootCertStore,
    client::{Resumption, Tls12Resumption},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, ServerName},
};

use crate::{Issued, KeyType, body};

/// How long a peer may be silent before a connection counts as failed.
const SILENCE: Duration = Duration::from_secs(10);

/// Which version the client offers; it offers no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2 with `ECDHE_*_WITH_AES_128_GCM_SHA256`.
    Tls12,
    /// TLS 1.3 with `TLS_AES_128_GCM_SHA256`.
    Tls13,
}

/// Which way of resumption the client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// None: every handshake is full. Tickets are received and thrown away.
    Never,
    /// Session tickets (RFC 5077, RFC 8446 section 4.6.1).
    Ticket,
    /// Session IDs alone (RFC 5246 section 7.3): the client sends no ticket extension.
    SessionId,
}

/// What a connection is to agree on.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The only version.
    pub version: Version,
    /// The certificate's kind, which decides the TLS 1.2 suite.
    pub key: KeyType,
    /// What is resumed.
    pub resume: Resume,
    /// The suite and the group of TLS 1.3.
    pub profile: Profile,
}

/// The suite and the group of TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// `TLS_AES_128_GCM_SHA256` and X25519.
    Common,
    /// The suite that OpenSSL's clients list first, `TLS_AES_256_GCM_SHA384`.
    Sha384,
    /// The group that browsers list first, X25519MLKEM768.
    PostQuantum,
}

impl Profile {
    /// By its IANA name, which OpenSSL uses too.
    pub fn suite(self) -> &'static str {
        if self == Self::Sha384 { "TLS_AES_256_GCM_SHA384" } else { "TLS_AES_128_GCM_SHA256" }
    }

    /// By the name that OpenSSL and courser use.
    pub fn group(self) -> &'static str {
        if self == Self::PostQuantum { "X25519MLKEM768" } else { "X25519" }
    }
}

/// What one client does with every connection, shared by all of them; cloning it shares its session store.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    address: SocketAddr,
    name: ServerName<'static>,
    /// Between the halves of its ClientHello.
    pause: Option<Duration>,
}

impl Client {
    /// A client for `localhost` at `address` that offers X25519 alone in TLS 1.3.
    ///
    /// In TLS 1.2 it offers P-256 after X25519, because the same list names the curves of certificates that
    /// a client understands (RFC 8422 section 5.1), and OpenSSL holds it to that.
    pub fn new(address: SocketAddr, version: Version, key: KeyType, resume: Resume) -> Self {
        Self::offering(address, Terms { version, key, resume, profile: Profile::Common })
    }

    /// A client for `localhost` at `address` that offers this and nothing else.
    pub fn offering(address: SocketAddr, terms: Terms) -> Self {
        Self::with(address, unverified(terms.version, terms.provider()), terms.resume)
    }

    /// As [`Client::offering`], but it checks the server's chain up to `root`, its name and its signature.
    ///
    /// # Panics
    /// When `root` is not a certificate.
    pub fn verifying(address: SocketAddr, terms: Terms, root: CertificateDer<'static>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(root).expect("the test authority's root is a certificate");
        let config = builder(terms.version, terms.provider());
        Self::with(address, config.with_root_certificates(roots).with_no_client_auth(), terms.resume)
    }

    /// A TLS 1.3 client that lists `groups` in this order and sends a key share for `share` alone, whatever its place
    /// among them.
    ///
    /// # Panics
    /// When the library has no group among `groups`.
    pub fn with_share(address: SocketAddr, groups: &[NamedGroup], share: NamedGroup) -> Self {
        let known = |group: &NamedGroup| aws_lc_rs::ALL_KX_GROUPS.iter().find(|known| known.name() == *group);
        let mut provider = Terms::full(Version::Tls13, KeyType::EcdsaP256).provider();
        provider.kx_groups = groups.iter().filter_map(known).copied().collect();
        let mut client = Self::with(address, unverified(Version::Tls13, provider), Resume::Never);
        let hint = session_thief::CapturedSessions::with_hint(share);
        Arc::make_mut(&mut client.config).resumption = Resumption::store(Arc::new(hint));
        client
    }

    /// A client that offers this suite alone, of whichever version it is; every handshake full.
    ///
    /// # Panics
    /// When the library has no such suite.
    pub fn with_suite(address: SocketAddr, key: KeyType, suite: CipherSuite) -> Self {
        let known = aws_lc_rs::ALL_CIPHER_SUITES.iter().find(|known| known.suite() == suite);
        let suite = *known.expect("the library has the suite");
        let version = if suite.tls13().is_some() { Version::Tls13 } else { Version::Tls12 };
        let provider = CryptoProvider { cipher_suites: vec![suite], ..Terms::full(version, key).provider() };
        Self::with(address, unverified(version, provider), Resume::Never)
    }

    fn with(address: SocketAddr, mut config: ClientConfig, resume: Resume) -> Self {
        config.resumption = match resume {
            Resume::Never => Resumption::disabled(),
            Resume::Ticket => sessions(Tls12Resumption::SessionIdOrTickets),
            Resume::SessionId => sessions(Tls12Resumption::SessionIdOnly),
        };
        let name = ServerName::try_from("localhost").expect("localhost is a name");
        Self { config: Arc::new(config), address, name, pause: None }
    }

    /// The same client, but it names another server than `localhost`.
    ///
    /// # Panics
    /// When `name` is neither a DNS name nor an IP address.
    pub fn for_name(&self, name: &str) -> Self {
        let name = ServerName::try_from(name.to_owned()).expect("the caller gives a name");
        Self { name, ..self.clone() }
    }

    /// The same client with the same sessions, but it connects to another address.
    pub fn at(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    /// The same client, but it sends this certificate to any CertificateRequest, whichever authority it names. Its
    /// sessions are its own.
    pub fn with_certificate(&self, certificate: &Issued) -> Self {
        let mut client = self.clone();
        let resolver = session_thief::CurrentCertificate(Some(session_thief::certified(certificate)).into());
        Arc::make_mut(&mut client.config).client_auth_cert_resolver = Arc::new(resolver);
        client
    }

    /// The same client, but it sends its ClientHello in two segments, so long apart.
    pub fn with_hello_in_two(self, pause: Duration) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// Connects and completes the handshake.
    ///
    /// # Errors
    /// Of the socket, or of TLS, or `TimedOut`/`WouldBlock` when the server is silent.
    pub fn connect(&self) -> io::Result<Connection> {
        let (mut session, mut socket) = (self.session(), TcpStream::connect(self.address)?);
        if let Some(pause) = self.pause {
            send_in_two(&mut session, &mut socket, pause)?;
        }
        Connection::complete(session, socket)
    }

    /// The library's end of a new connection, for callers that carry its first bytes themselves: cut, wrapped or late.
    /// [`Connection::complete`] goes on from there.
    pub fn session(&self) -> ClientConnection {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .expect("the configuration is complete")
    }
}

/// What a handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeInfo {
    /// Protocol version.
    pub version: Option<ProtocolVersion>,
    /// Cipher suite.
    pub suite: Option<CipherSuite>,
    /// Key exchange group; none in a resumed TLS 1.2 handshake.
    pub group: Option<NamedGroup>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// Whether the server requested another key share first (RFC 8446, section 4.1.4).
    pub retried: bool,
    /// The server's own certificate.
    pub certificate: Option<CertificateDer<'static>>,
}

/// An established TLS connection.
#[derive(Debug)]
pub struct Connection {
    tls: ClientConnection,
    socket: TcpStream,
}

impl Connection {
    /// Completes the handshake of `tls` over `socket`, whatever has been exchanged already.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn complete(mut tls: ClientConnection, mut socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        Ok(Self { tls, socket })
    }

    /// The plaintext, to read and to write.
    pub fn stream(&mut self) -> rustls::Stream<'_, ClientConnection, TcpStream> {
        rustls::Stream::new(&mut self.tls, &mut self.socket)
    }

    /// The library's end, for what an orderly client does not do.
    pub fn tls(&mut self) -> &mut ClientConnection {
        &mut self.tls
    }

    /// The socket under it.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// What the handshake agreed on.
    pub fn handshake_info(&self) -> HandshakeInfo {
        let leaf = self.tls.peer_certificates().and_then(|chain| chain.first());
        HandshakeInfo {
            version: self.tls.protocol_version(),
            suite: self.tls.negotiated_cipher_suite().map(|suite| suite.suite()),
            group: self.tls.negotiated_key_exchange_group().map(rustls::crypto::SupportedKxGroup::name),
            resumed: self.is_resumed(),
            retried: self.tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest),
            certificate: leaf.map(|leaf| leaf.clone().into_owned()),
        }
    }

    /// Whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// How many TLS 1.3 tickets have come in so far; they come with the first bytes after the handshake.
    pub fn tickets(&self) -> u32 {
        self.tls.tls13_tickets_received()
    }

    /// Requests an object of `size` bytes from the origin and checks every byte. With `close` it requests the origin to close
    /// after it, and this waits until the server has closed.
    ///
    /// # Errors
    /// `InvalidData` when the answer is not that object; those of the socket and of TLS.
    pub fn get(&mut self, size: usize, close: bool) -> io::Result<()> {
        let connection = if close { "close" } else { "keep-alive" };
        let request =
            format!("GET /?s={size} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n");
        let mut stream = rustls::Stream::new(&mut self.tls, &mut self.socket);
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::with_capacity(size + 512);
        while !is_complete(&answer, size)? {
            read_some(&mut stream, &mut answer)?;
        }
        if close { self.answer_end() } else { Ok(()) }
    }

    /// Sends a body of so many bytes; the origin answers with their number, and closes.
    ///
    /// # Errors
    /// When the connection fails, or the answer is another.
    pub fn upload(&mut self, size: usize) -> io::Result<()> {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
        );
        let mut stream = rustls::Stream::new(&mut self.tls, &mut self.socket);
        stream.write_all(head.as_bytes())?;
        stream.write_all(&body(size))?;
        let (mut answer, text) = (Vec::new(), format!("received {size}\n"));
        while !answer.ends_with(text.as_bytes()) {
            read_some(&mut stream, &mut answer)?;
        }
        self.answer_end()
    }

    /// Waits for the server to close, with close_notify or without, and sends close_notify itself before the socket is
    /// closed (RFC 5246 section 7.2.1). OpenSSL's servers hold a client to that: a session whose connection ends in a
    /// bare FIN is thrown out of their session cache.
    fn answer_end(&mut self) -> io::Result<()> {
        expect_end(&mut rustls::Stream::new(&mut self.tls, &mut self.socket))?;
        self.tls.send_close_notify();
        // The server may have closed its socket for good already.
        let _ = self.tls.write_tls(&mut self.socket);
        Ok(())
    }

    /// Sends close_notify, ends its side of the TCP connection, and waits for the server to end its own.
    ///
    /// # Errors
    /// When the server does not close, or resets the connection.
    pub fn close(mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
        }
        self.socket.shutdown(Shutdown::Write)?;
        // What comes now, tickets and the server's close_notify, is not needed: it is not worth decrypting.
        while self.socket.read(&mut [0; 2048])? > 0 {}
        Ok(())
    }
}

fn send_in_two(session: &mut ClientConnection, socket: &mut TcpStream, pause: Duration) -> io::Result<()> {
    let mut hello = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut hello)?;
    }
    let (first, second) = hello.split_at(hello.len() / 2);
    socket.set_nodelay(true)?;
    socket.write_all(first)?;
    thread::sleep(pause);
    socket.write_all(second)
}

/// Reads what is there; the end of the stream is an error here, with or without close_notify.
fn read_some(stream: &mut impl Read, answer: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    match stream.read(&mut buffer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            answer.extend_from_slice(&buffer[..count]);
            Ok(())
        }
    }
}

/// Reads to the end of the stream, with or without close_notify.
fn expect_end(stream: &mut impl Read) -> io::Result<()> {
    match stream.read(&mut [0; 64]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(invalid("the answer goes on after its end")),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether `answer` is a head with status 200 and then the whole object; an error as soon as it cannot become that.
fn is_complete(answer: &[u8], size: usize) -> io::Result<bool> {
    let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(false) };
    if !answer.starts_with(b"HTTP/1.1 200 ") {
        return Err(invalid("the answer's status is not 200"));
    }
    let received = &answer[end + 4..];
    if received.len() < size {
        return Ok(false);
    }
    if received == body(size) { Ok(true) } else { Err(invalid("the answer is not the requested object")) }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn sessions(tls12: Tls12Resumption) -> Resumption {
    Resumption::in_memory_sessions(8).tls12_resumption(tls12)
}

fn unverified(version: Version, provider: CryptoProvider) -> ClientConfig {
    let verifier = Arc::new(Unverified::default());
    builder(version, provider).dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
}

fn builder(
    version: Version,
    provider: CryptoProvider,
) -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    let versions: &[_] = match version {
        Version::Tls12 => &[&rustls::version::TLS12],
        Version::Tls13 => &[&rustls::version::TLS13],
    };
    ClientConfig::builder_with_details(Arc::new(provider), Arc::new(clock::FixedClock::new()))
        .with_protocol_versions(versions)
        .expect("the provider has a suite for its version")
}

impl Terms {
    fn full(version: Version, key: KeyType) -> Self {
        Self { version, key, resume: Resume::Never, profile: Profile::Common }
    }

    fn provider(self) -> CryptoProvider {
        use aws_lc_rs::{cipher_suite, kx_group};
        let (suite, kx_groups) = match (self.version, self.key, self.profile) {
            (Version::Tls13, _, Profile::Common) => {
                (cipher_suite::TLS13_AES_128_GCM_SHA256, vec![kx_group::X25519])
            }
            (Version::Tls13, _, Profile::Sha384) => {
                (cipher_suite::TLS13_AES_256_GCM_SHA384, vec![kx_group::X25519])
            }
            (Version::Tls13, _, Profile::PostQuantum) => {
                (cipher_suite::TLS13_AES_128_GCM_SHA256, vec![kx_group::X25519MLKEM768])
            }
            (Version::Tls12, KeyType::Rsa2048, _) => {
                (cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, vec![kx_group::X25519])
            }
            (Version::Tls12, _, _) => (
                cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                vec![kx_group::X25519, kx_group::SECP256R1],
            ),
        };
        CryptoProvider { cipher_suites: vec![suite], kx_groups, ..aws_lc_rs::default_provider() }
    }
}
