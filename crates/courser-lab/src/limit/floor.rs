//! The kernel's floor: a server that makes the reads and writes of a connection and nothing between them, on the cores and
//! the event loop that a terminator would have. Clients and backend are on the generator's core, in one loop.
//!
//! It is timed as the thread's processor time, so that what the kernel does for it on loopback is in it.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use courser_net::{Address, AsyncListener, ListenSocket, Stream, Then};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

use super::exchanges::Exchanges;
use crate::clock::thread_time;
use crate::cores::CoreMap;
use crate::primitives::median;

/// Connections at a time.
const CLIENTS: u32 = 32;

/// Connections of a round, and rounds. One round more comes first, and does not count.
const ROUND: u32 = 100;
const ROUNDS: u32 = 8;

/// All of them take some hundred milliseconds; a thread that waits for ever would hold up the suite.
const PATIENCE: Duration = Duration::from_secs(20);

/// The most that is read, or written, in one call.
const PIECE: usize = 64 * 1024;
static CONTENT: [u8; PIECE] = [b'x'; PIECE];

/// Where server and clients run; anywhere without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) server: Option<usize>,
    pub(crate) clients: Option<usize>,
}

impl From<&CoreMap> for Cores {
    fn from(map: &CoreMap) -> Self {
        Self { server: map.target.first().copied(), clients: map.generator.first().copied() }
    }
}

/// What the server spends on a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Floor {
    /// Processor time, microseconds: the median of the rounds.
    pub(crate) us: f64,
    /// The least and the most of a round.
    pub(crate) range: (f64, f64),
}

/// Times these connections.
///
/// # Errors
/// When sockets or threads cannot be had.
pub(crate) fn measure(exchanges: &Exchanges, cores: Cores) -> Result<Floor, String> {
    let run = || {
        let (server, backend) = (listen()?, listen()?);
        let (to, from) = (server.address().clone(), backend.address().clone());
        thread::scope(|threads| {
            let early = |_| io::Error::other("a thread ended early");
            let clients = threads.spawn(|| on(cores.clients, clients(exchanges, to, backend)));
            let served = threads.spawn(|| on(cores.server, serve(exchanges, server, from)));
            let (served, clients) = (served.join().map_err(early)?, clients.join().map_err(early)?);
            served.and_then(|marks| clients.map(|()| marks))
        })
    };
    let marks: Vec<Duration> = run().map_err(|why| format!("reads and writes without TLS: {why}"))?;
    let each = |pair: &[Duration]| (pair[1] - pair[0]).as_secs_f64() * 1e6 / f64::from(ROUND);
    let rounds: Vec<f64> = marks.windows(2).map(each).collect();
    let range = rounds.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), us| (low.min(*us), high.max(*us)));
    Ok(Floor { us: median(&rounds), range })
}

fn listen() -> io::Result<ListenSocket> {
    let any = Address::Ip(SocketAddr::from(([127, 0, 0, 1], 0)));
    ListenSocket::open(&any, false, 1024, 1)?.pop().ok_or_else(|| io::Error::other("no socket was opened"))
}

/// Runs a thread's part in an event loop of its own.
fn on<T>(core: Option<usize>, part: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    if let Some(core) = core {
        // Elsewhere it is timed as well.
        let _ = courser_machine::pin(core);
    }
    let runtime =
        Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    runtime.block_on(async { timeout(PATIENCE, part).await.map_err(io::Error::from)? })
}

/// Serves all connections; processor time of this thread after each round.
async fn serve(exchanges: &Exchanges, socket: ListenSocket, backend: Address) -> io::Result<Vec<Duration>> {
    let listener = AsyncListener::new(socket)?;
    let shared = Rc::new((exchanges.clone(), backend));
    let (mut marks, mut open) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        for _ in 0..ROUND {
            let stream = listener.accept().await?.stream;
            let shared = Rc::clone(&shared);
            open.push(spawn_local(async move { terminate(&shared.0, &stream, &shared.1).await }));
        }
        marks.push(thread_time());
        if round < ROUNDS {
            open.retain(|connection: &JoinHandle<_>| !connection.is_finished());
        }
    }
    all(open).await.map(|()| marks)
}

/// One connection, as a terminator would have it: it ends when the client closes.
async fn terminate(exchanges: &Exchanges, client: &Stream, backend: &Address) -> io::Result<()> {
    for [received, sent] in &exchanges.handshake {
        read(client, *received).await?;
        write(client, *sent).await?;
    }
    if let Some([request, answer]) = exchanges.request {
        read(client, request).await?;
        let backend = Stream::connect(backend).await?;
        if let Some([hello, flight]) = exchanges.backend {
            write(&backend, hello).await?;
            read(&backend, flight).await?;
        }
        write(&backend, request).await?;
        let mut left = answer;
        while left > 0 {
            let piece = some(&backend).await?;
            write(client, piece).await?;
            left = left.saturating_sub(piece);
        }
    }
    ended(client).await
}

/// All clients, and the backend: both are the generator's.
async fn clients(exchanges: &Exchanges, to: Address, backend: ListenSocket) -> io::Result<()> {
    let listener = AsyncListener::new(backend)?;
    let shared = Rc::new((exchanges.clone(), to));
    let answers = Rc::clone(&shared);
    let origin = spawn_local(async move {
        loop {
            let Ok(accepted) = listener.accept().await else { return };
            let answers = Rc::clone(&answers);
            // A connection that breaks shows at the client's.
            spawn_local(async move { answer(&answers.0, &accepted.stream).await });
        }
    });
    let left = Rc::new(std::cell::Cell::new(ROUND * (ROUNDS + 1)));
    let client = |_| {
        let (shared, left) = (Rc::clone(&shared), Rc::clone(&left));
        spawn_local(async move {
            while let Some(next) = left.get().checked_sub(1) {
                left.set(next);
                visit(&shared.0, &shared.1).await?;
            }
            Ok(())
        })
    };
    let clients = (0..CLIENTS).map(client).collect();
    let done = all(clients).await;
    origin.abort();
    done
}

async fn visit(exchanges: &Exchanges, to: &Address) -> io::Result<()> {
    let server = Stream::connect(to).await?;
    for [sent, received] in exchanges.handshake.iter().chain(&exchanges.request) {
        write(&server, *sent).await?;
        read(&server, *received).await?;
    }
    Ok(())
}

/// The backend's end of a connection.
async fn answer(exchanges: &Exchanges, server: &Stream) -> io::Result<()> {
    for [received, sent] in exchanges.backend.iter().chain(&exchanges.request) {
        read(server, *received).await?;
        write(server, *sent).await?;
    }
    ended(server).await
}

async fn all(tasks: Vec<JoinHandle<io::Result<()>>>) -> io::Result<()> {
    for task in tasks {
        task.await.map_err(io::Error::other)??;
    }
    Ok(())
}

async fn read(stream: &Stream, bytes: u64) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        left = left.saturating_sub(some(stream).await?);
    }
    Ok(())
}

/// What there is, once there is something.
async fn some(stream: &Stream) -> io::Result<u64> {
    match received(stream).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => Ok(bytes),
    }
}

async fn ended(stream: &Stream) -> io::Result<()> {
    while received(stream).await? > 0 {}
    Ok(())
}

/// Bytes of one read; none at the end.
async fn received(stream: &Stream) -> io::Result<u64> {
    thread_local! {
        /// One for all connections: what is read is not looked at.
        static BUFFER: std::cell::RefCell<Vec<u8>> = std::cell::RefCell::new(Vec::with_capacity(PIECE));
    }
    let read = poll_fn(|cx| {
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            stream.poll_read(cx, buffer, |_| {})
        })
    });
    read.await.map(|bytes| bytes as u64)
}

async fn write(stream: &Stream, bytes: u64) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let piece = CONTENT.len().min(usize::try_from(left).unwrap_or(PIECE));
        left -= poll_fn(|cx| stream.poll_write(cx, &CONTENT[..piece], Then::Wait)).await? as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(request: Option<[u64; 2]>) -> f64 {
        let exchanges = Exchanges { handshake: vec![[250, 900]], request, backend: None };
        let floor = measure(&exchanges, Cores::default()).unwrap();
        assert!(floor.range.0 <= floor.us && floor.us <= floor.range.1, "{floor:?}");
        floor.us
    }

    /// A system call takes a microsecond or so on any machine, and a connection with a backend has twice as many.
    #[test]
    fn a_backend_adds_its_reads_and_writes_and_bytes_their_copies() {
        let bare = us(None);
        let relayed = us(Some([100, 1024]));
        let long = us(Some([100, 1 << 20]));
        assert!(bare > 2.0 && relayed > bare && long > relayed * 1.5, "{bare} {relayed} {long}");
    }

    #[test]
    fn a_server_that_does_not_answer_is_an_error_and_no_figure() {
        let exchanges = Exchanges { handshake: Vec::new(), request: Some([1, 1]), backend: None };
        let gone = listen().unwrap().address().clone();
        let why = on(None, serve_one(&exchanges, gone)).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::ConnectionRefused);
    }

    /// One connection whose backend is gone.
    async fn serve_one(exchanges: &Exchanges, backend: Address) -> io::Result<()> {
        let socket = listen()?;
        let to = socket.address().clone();
        let listener = AsyncListener::new(socket)?;
        let client = Stream::connect(&to).await?;
        write(&client, 1).await?;
        let accepted = listener.accept().await?;
        terminate(exchanges, &accepted.stream, &backend).await
    }
}
