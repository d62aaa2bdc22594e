//! Connections that take their turns side by side, so that a clock is read once for all of them.

use std::time::Duration;

use courser_tls::Failure;
use courser_tls_client::{ClientConnection, ClientSessions};

use super::Trouble;
use super::server::Server;
use crate::clock::thread_time;

/// Sent at a time: the largest record (RFC 8446, section 5.1).
const PIECE: usize = 1 << 14;

/// Room for a piece, or a full handshake's flight, so that no buffer grows on the clock.
const ROOM: usize = PIECE + 4096;

/// Processor time of some connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) connections: u32,
    pub(super) client: Duration,
    pub(super) server: Duration,
}

impl Spent {
    /// The client's end of one connection, microseconds.
    pub(super) fn client_us(&self) -> f64 {
        self.client.as_secs_f64() * 1e6 / f64::from(self.connections)
    }

    /// The server's.
    pub(super) fn server_us(&self) -> f64 {
        self.server.as_secs_f64() * 1e6 / f64::from(self.connections)
    }
}

pub(super) struct Batch {
    pairs: Vec<Pair>,
    client: Duration,
    server: Duration,
}

/// Two ends, and what is under way between them.
struct Pair {
    client: ClientConnection,
    server: Server,
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    /// What has come back.
    returned: Vec<u8>,
    /// What the server has read and not sent back yet.
    read: Vec<u8>,
}

impl Batch {
    /// A pair for each set of sessions.
    pub(super) fn new(
        sessions: Vec<ClientSessions>,
        connect: impl Fn(ClientSessions) -> Result<ClientConnection, Failure>,
        accept: impl Fn() -> Result<Server, Failure>,
    ) -> Result<Self, Failure> {
        let (mut client, mut server) = (Duration::ZERO, Duration::ZERO);
        let count = sessions.len();
        let clients: Vec<_> =
            timed(&mut client, || sessions.into_iter().map(connect).collect::<Result<_, _>>())?;
        let servers: Vec<_> = timed(&mut server, || (0..count).map(|_| accept()).collect::<Result<_, _>>())?;
        let pairs = clients.into_iter().zip(servers).map(|(client, server)| Pair::new(client, server));
        Ok(Self { pairs: pairs.collect(), client, server })
    }

    /// Turns until nothing is under way: handshakes are done and tickets delivered.
    pub(super) fn handshake(&mut self) -> Result<(), Failure> {
        loop {
            self.client_steps(Pair::client_reads)?;
            if self.pairs.iter().all(|pair| pair.to_server.is_empty()) {
                return Ok(());
            }
            self.server_steps(Pair::server_reads)?;
        }
    }

    /// Sends `content` there and back, piece by piece.
    pub(super) fn echo(&mut self, content: &[u8]) -> Result<(), Failure> {
        self.pairs.iter_mut().for_each(|pair| pair.returned.reserve(content.len()));
        for piece in content.chunks(PIECE) {
            self.client_steps(|pair| pair.client_sends(piece))?;
            self.server_steps(Pair::server_answers)?;
            self.client_steps(Pair::client_reads)?;
        }
        Ok(())
    }

    /// Whether each connection was what it was to be. Off the clock.
    pub(super) fn check(&mut self, suite: u16, resumes: bool, content: &[u8]) -> Result<(), Trouble> {
        self.pairs.iter_mut().try_for_each(|pair| pair.check(suite, resumes, content))
    }

    /// Frees the connections, and gives what all came to and what the clients keep.
    pub(super) fn end(mut self) -> (Spent, Vec<ClientSessions>) {
        let connections = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let (clients, servers): (Vec<_>, Vec<_>) =
            self.pairs.into_iter().map(|pair| (pair.client, pair.server)).unzip();
        let sessions =
            timed(&mut self.client, || clients.into_iter().map(ClientConnection::into_sessions).collect());
        timed(&mut self.server, || drop(servers));
        (Spent { connections, client: self.client, server: self.server }, sessions)
    }

    fn client_steps(&mut self, step: impl Fn(&mut Pair) -> Result<(), Failure>) -> Result<(), Failure> {
        timed(&mut self.client, || self.pairs.iter_mut().try_for_each(step))
    }

    fn server_steps(&mut self, step: impl Fn(&mut Pair) -> Result<(), Failure>) -> Result<(), Failure> {
        timed(&mut self.server, || self.pairs.iter_mut().try_for_each(step))
    }
}

impl Pair {
    fn new(client: ClientConnection, server: Server) -> Self {
        let room = || Vec::with_capacity(ROOM);
        Self { client, server, to_client: room(), to_server: room(), returned: Vec::new(), read: room() }
    }

    fn client_reads(&mut self) -> Result<(), Failure> {
        let progress = self.client.process(&mut self.to_client, &mut self.returned, &mut self.to_server)?;
        self.to_client.drain(..progress.consumed);
        Ok(())
    }

    fn client_sends(&mut self, piece: &[u8]) -> Result<(), Failure> {
        self.client.send(piece, &mut self.to_client, &mut self.to_server)
    }

    fn server_reads(&mut self) -> Result<(), Failure> {
        self.server.process(&mut self.to_server, &mut self.read, &mut self.to_client)
    }

    fn server_answers(&mut self) -> Result<(), Failure> {
        self.server_reads()?;
        self.server.send(&self.read, &mut self.to_server, &mut self.to_client)?;
        self.read.clear();
        Ok(())
    }

    fn check(&mut self, suite: u16, resumes: bool, content: &[u8]) -> Result<(), Trouble> {
        let wrong = Trouble::Resumption { asked: resumes };
        let (client, server) = (self.client.handshake_info(), self.server.resumed());
        let (Some(client), Some(server)) = (client, server) else { return Err(wrong) };
        if (client.resumed, server) != (resumes, resumes) {
            return Err(wrong);
        }
        if client.suite != suite {
            return Err(Trouble::Suite(client.suite));
        }
        if self.returned == content { Ok(()) } else { Err(Trouble::Echo) }
    }
}

/// Adds the processor time of `work` to `spent`.
fn timed<T>(spent: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = thread_time();
    let done = work();
    *spent += thread_time().saturating_sub(start);
    done
}
