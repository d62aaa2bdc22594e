//! Servers with one known fault each: an instrument's findings can be compared with the truth.
//!
//! Real TLS servers on loopback: TLS 1.2 and 1.3, resumption by session ID, ticket and PSK, `GET /?s=20k` answered with
//! that object ([`body`](crate::body)), keep-alive. A thread per connection, so that one that sleeps delays no other.

mod connection;
mod false_resumption;
mod http;
mod script;

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rustls::pki_types::CertificateDer;
use socket2::{Domain, Socket, Type};

use crate::{KeyType, Leaf, TestCa};

/// By how much [`Fault::Late`], [`Fault::AlwaysLate`] and [`Fault::ClosesLate`] are late.
pub const LATENESS: Duration = Duration::from_millis(40);
/// How long [`Fault::Stalls`] stalls.
pub const STALL: Duration = Duration::from_secs(1);

/// How long [`Fault::AwaitsClose`] waits for the client's close_notify.
pub const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// The one fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Nothing: the honest server to compare with.
    None,
    /// The first answer of each connection comes [`LATENESS`] later.
    Late,
    /// Every answer comes [`LATENESS`] later.
    AlwaysLate,
    /// Every 2000th connection is closed after the ClientHello without a word: 0.05 %.
    Drop,
    /// It gives no tickets, remembers no sessions and resumes none.
    NeverResumes,
    /// The ServerHello accepts an offered session, and then the certificate is sent as in a full handshake, where
    /// the handshake ends. TLS 1.2 alone; connections that offer none are served honestly.
    FalseResumption,
    /// The connection is reset as soon as the handshake is complete.
    ResetAfterFinished,
    /// It knows only a group that the client lists without a key share for it, and so requests another share
    /// (HelloRetryRequest). A client without such a group is served honestly. TLS 1.3 alone.
    HelloRetry,
    /// Every tenth connection has to wait for [`STALL`] before its handshake.
    Stall,
    /// Answers are half as long as they should be, and so is their Content-Length.
    ShortBody,
    /// One byte in the middle of every answer is wrong.
    WrongByte,
    /// The connection ends, without close_notify, after half of the first answer.
    Truncate,
    /// It answers a ClientHello as a plain HTTP server would.
    PlainHttp,
    /// It accepts, reads and never answers.
    Silent,
    /// After its last answer it sends close_notify, and closes when the client's has come, or after [`CLOSE_WAIT`]: as
    /// nginx's stream module does.
    AwaitsClose,
    /// It leaves the close to the client, whatever that asked for.
    StaysOpen,
    /// It closes [`LATENESS`] after its last answer.
    ClosesLate,
    /// It signs with another key than its certificate's.
    WrongKey,
    /// It agrees on HTTP/2 where the client offers that (ALPN h2), and speaks HTTP/1.
    Http2AsHttp1,
    /// It agrees on HTTP/2, and ends every connection with GOAWAY before any request, without an error.
    GoAway,
    /// It agrees on HTTP/2, and refuses every stream.
    RstStream,
}

impl Fault {
    /// Every fault, [`Fault::None`] first.
    pub const ALL: [Self; 21] = [
        Self::None,
        Self::Late,
        Self::AlwaysLate,
        Self::Drop,
        Self::NeverResumes,
        Self::FalseResumption,
        Self::ResetAfterFinished,
        Self::HelloRetry,
        Self::Stall,
        Self::ShortBody,
        Self::WrongByte,
        Self::Truncate,
        Self::PlainHttp,
        Self::Silent,
        Self::AwaitsClose,
        Self::StaysOpen,
        Self::ClosesLate,
        Self::WrongKey,
        Self::Http2AsHttp1,
        Self::GoAway,
        Self::RstStream,
    ];

    /// Whether it agrees on HTTP/2.
    fn is_http2(self) -> bool {
        self == Self::Http2AsHttp1 || self.frames().is_some()
    }

    /// All that it says in HTTP/2 (RFC 9113, sections 6.4, 6.5 and 6.8): empty SETTINGS, and then.
    fn frames(self) -> Option<&'static [u8]> {
        match self {
            Self::GoAway => Some(b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0"),
            Self::RstStream => Some(b"\0\0\0\x04\0\0\0\0\0\0\0\x04\x03\0\0\0\0\x01\0\0\0\x07"),
            _ => None,
        }
    }

    /// Whether the connection of this number, counted from 1, is one of those that are treated badly as a whole.
    fn picks(self, number: u64) -> bool {
        match self {
            Self::Drop => number.is_multiple_of(2000),
            Self::Stall => number.is_multiple_of(10),
            _ => true,
        }
    }
}

/// What a server has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: u64,
    /// Handshakes completed.
    pub handshakes: u64,
    /// Those among them that resumed a session.
    pub resumed: u64,
    /// Answers sent, whole or as much of them as the fault leaves.
    pub answered: u64,
    /// How often its fault occurred: once per answer if that is in the answer, else once per connection.
    pub faults: u64,
}

/// A running server; dropping it closes its socket and every connection.
#[derive(Debug)]
pub struct FaultyServer {
    address: SocketAddr,
    root: CertificateDer<'static>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FaultyServer {
    /// Starts one on a free port of 127.0.0.1, with an ECDSA certificate for `localhost`.
    #[must_use]
    pub fn start(fault: Fault) -> Self {
        Self::with_key(fault, KeyType::EcdsaP256)
    }

    /// As [`FaultyServer::start`], with a certificate of this kind.
    #[must_use]
    pub fn with_key(fault: Fault, key: KeyType) -> Self {
        let ca = TestCa::new();
        let script = script::FaultScript::new(fault, &ca.issue(&Leaf::new(key)));
        let listener = listen().expect("loopback has a free port");
        let address = listener.local_addr().expect("a listening socket has an address");
        let shared = Arc::new(Shared {
            fault,
            script,
            stopped: AtomicBool::new(false),
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
            handshakes: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            faults: AtomicU64::new(0),
        });
        let served = Arc::clone(&shared);
        let thread = thread::spawn(move || served.accept(&listener));
        Self { address, root: ca.root(), shared, thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate to trust.
    pub fn root(&self) -> CertificateDer<'static> {
        self.root.clone()
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        Counts {
            accepted: read(&self.shared.accepted),
            handshakes: read(&self.shared.handshakes),
            resumed: read(&self.shared.resumed),
            answered: read(&self.shared.answered),
            faults: read(&self.shared.faults),
        }
    }
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Ends the wait in `accept`.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for socket in self.shared.open().values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// The standard library's queue of 128 connections overflows under load, and a client that then tries again is late by a
/// second: a fault that the test did not choose.
fn listen() -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.cloexec(), None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}

#[derive(Debug)]
struct Shared {
    fault: Fault,
    script: script::FaultScript,
    stopped: AtomicBool,
    /// Connections by their number, to be closed at the end.
    open: Mutex<HashMap<u64, TcpStream>>,
    accepted: AtomicU64,
    handshakes: AtomicU64,
    resumed: AtomicU64,
    answered: AtomicU64,
    faults: AtomicU64,
}

impl Shared {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for socket in listener.incoming() {
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            // Where descriptors run out, the client in the queue waits for one.
            let Ok(socket) = socket else { continue };
            let number = self.accepted.fetch_add(1, Ordering::SeqCst) + 1;
            let shared = Arc::clone(&self);
            thread::spawn(move || {
                // How a connection ends is for the client to see.
                let _ = shared.serve(socket, number);
                shared.open().remove(&number);
            });
        }
    }

    fn serve(&self, socket: TcpStream, number: u64) -> io::Result<()> {
        self.open().insert(number, socket.try_clone()?);
        socket.set_nodelay(true)?;
        connection::serve(self, socket, number)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_fault(&self) {
        self.faults.fetch_add(1, Ordering::SeqCst);
    }
}
