//! A proxy that adds a round trip: what loopback cannot show of a handshake, and of resumption that saves a part of it.
//!
//! Every byte, every end and every reset is passed on half a round-trip time after it came, in order. Connections that
//! are accepted by the kernel at once would save their clients the round trip of TCP's own handshake; so the first
//! bytes of a client leave a whole round-trip time later than that, and the server is connected to when the client's
//! acknowledgement would have reached it. A client thus waits for its first answer as long as with that network: two
//! round trips, three for a full TLS 1.3 handshake with a request, four with TLS 1.2.
//!
//! It is a delay and nothing else: no loss, no jitter, no limit of bandwidth but [`PIECES`] of [`PIECE`] bytes in flight
//! in each direction of a connection, and no congestion window: a large answer comes at once, where a network would take
//! further round trips for it. What a connect or its refusal takes is not delayed as seen by the client's kernel: the
//! time of the connect alone reads as zero, and a refused client is reset.
//!
//! One thread carries all connections. It takes processor time for each, beside the generator's, and its connections to
//! the server take local ports.

mod connection;
mod pacer;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use courser_net::{Address, AsyncListener, ListenSocket, limits};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

use pacer::Pacer;

/// Pieces that wait in one direction of a connection, at most: beyond them nothing more is read, and the kernel's
/// windows hold the sender back.
pub const PIECES: usize = 256;

/// Most bytes of a piece.
pub const PIECE: usize = 16 * 1024;

/// Connections that wait to be accepted; the kernel caps it.
const BACKLOG: u32 = 4096;

/// How many tasks may run before the timer is looked at: more, and bytes leave late when there is much to do.
const TASKS_BETWEEN: u32 = 8;

/// How long to rest when no connection can be accepted: the usual reason is that descriptors have run out.
const REST: Duration = Duration::from_millis(50);

/// A proxy that listens and has not been run.
#[derive(Debug)]
pub struct DelayProxy {
    socket: ListenSocket,
    to: SocketAddr,
    rtt: Duration,
}

impl DelayProxy {
    /// Listens on an address, of which port 0 takes a free one, for connections to `to`, `rtt` away.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn bind(listen: SocketAddr, to: SocketAddr, rtt: Duration) -> io::Result<Self> {
        let socket = ListenSocket::open(&Address::Ip(listen), false, BACKLOG, 1)?.pop();
        let socket = socket.ok_or_else(|| io::Error::other("no socket was opened"))?;
        Ok(Self { socket, to, rtt })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        self.socket.address()
    }

    /// Forwards on this thread until the process ends.
    ///
    /// # Errors
    /// When the thread cannot be set up.
    pub fn run(self) -> io::Result<()> {
        // Two for each connection; where they cannot be raised, `accept` will wait.
        limits::raise_descriptors();
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .event_interval(TASKS_BETWEEN)
            .build_local(LocalOptions::default())?;
        runtime.block_on(async {
            let path = Rc::new(Path { to: self.to, rtt: self.rtt, pacer: Pacer::new()? });
            let listener = AsyncListener::new(self.socket)?;
            loop {
                match listener.accept().await {
                    Ok(accepted) => {
                        spawn_local(connection::carry(Rc::clone(&path), accepted.stream));
                    }
                    Err(_) => tokio::time::sleep(REST).await,
                }
            }
        })
    }
}

/// What the connections share.
struct Path {
    to: SocketAddr,
    rtt: Duration,
    pacer: Pacer,
}

impl Path {
    /// One way.
    fn half(&self) -> Duration {
        self.rtt / 2
    }
}
