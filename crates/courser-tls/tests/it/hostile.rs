//! A server in memory for the client that has the keys and breaks the protocol; how much its server buffers.

// Spelled out, as the fuzz target includes this file from elsewhere.
#[path = "hostile/exercise.rs"]
pub(crate) mod exercise;

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use courser_testkit::KeyType;
use courser_testkit::client::hostile::{HostileClient, MAX_RECORD};
use courser_testkit::client::{Client, Resume, Version};
use courser_tls::{Failure, ServerConnection, State};

/// Most that a server has to hold of a peer's records that it cannot let go yet, bytes.
pub(crate) const MOST_HELD: usize = 4 * MAX_RECORD;

/// A client and its server.
pub(crate) type Pair = HostileClient<MemoryServer>;

/// Writing to it is receiving; reading from it returns what it has sent.
pub(crate) struct MemoryServer {
    pub(crate) connection: ServerConnection,
    /// What has come and cannot be let go yet.
    pub(crate) received: Vec<u8>,
    /// What it has read.
    pub(crate) plaintext: Vec<u8>,
    outgoing: Vec<u8>,
    /// How much has come until it failed.
    pub(crate) taken: usize,
    /// The longest that `received` was after a call.
    pub(crate) most_held: usize,
    pub(crate) state: State,
    pub(crate) failure: Option<Failure>,
}

impl MemoryServer {
    fn new() -> Self {
        Self {
            connection: crate::exercise::connection(),
            received: Vec::new(),
            plaintext: Vec::new(),
            outgoing: Vec::new(),
            taken: 0,
            most_held: 0,
            state: State::Handshaking,
            failure: None,
        }
    }

    /// Sends `data`, or fails.
    pub(crate) fn send(&mut self, data: &[u8]) {
        let sent = self.connection.send(data, &mut self.received, &mut self.outgoing);
        self.failure = self.failure.take().or(sent.err());
    }

    /// Sends close_notify, or fails.
    pub(crate) fn close(&mut self) {
        let closed = self.connection.send_close_notify(&mut self.received, &mut self.outgoing);
        self.failure = self.failure.take().or(closed.err());
    }

    fn process(&mut self) {
        let Self { connection, received, plaintext, outgoing, .. } = self;
        match connection.process(received, plaintext, outgoing) {
            Ok(progress) => {
                received.drain(..progress.consumed);
                self.state = progress.state;
                self.most_held = self.most_held.max(self.received.len());
                if self.state != State::Handshaking {
                    let _ = self.connection.finish_handshake();
                }
            }
            Err(failure) => self.failure = Some(failure),
        }
    }
}

impl Write for MemoryServer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.taken += bytes.len();
        self.received.extend_from_slice(bytes);
        self.process();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The stream ends when the server has failed and all that it has sent is read.
impl Read for MemoryServer {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.outgoing.is_empty() && self.failure.is_none() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = self.outgoing.len().min(into.len());
        into[..count].copy_from_slice(&self.outgoing[..count]);
        self.outgoing.drain(..count);
        Ok(count)
    }
}

/// A client that has received the server's first flight and not answered it.
pub(crate) fn halfway(version: Version) -> Pair {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let client = Client::new(nowhere, version, KeyType::EcdsaP256, Resume::Never);
    HostileClient::start_handshake(&client, MemoryServer::new()).expect("the server answers a good client")
}

/// A client whose handshake is done.
pub(crate) fn connected(version: Version) -> Pair {
    let mut pair = halfway(version);
    pair.finish().expect("the server accepts a good client");
    assert_eq!(pair.stream().state, State::Open);
    pair.stream().taken = 0;
    pair
}
