//! The backend behind a terminator: answers HTTP with objects of any size, or misbehaves as configured.
//!
//! One thread, one event loop: cheap enough to share a core with a load client.

pub(crate) mod http;
mod proxy;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixListener},
    sync::Notify,
};

pub use courser_load::http::body;

/// What an origin does with each connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers HTTP/1.1: `GET /?s=20k` with that many bytes (see [`body`]), `GET /proxy` with the connection's PROXY
    /// header as received, a request with a body with the number of bytes it had. Closes after `Connection: close`.
    Http,
    /// Sends back every byte; after the peer's end of stream, ends its own side.
    Echo,
    /// Sends these bytes first, then as `Echo`.
    Greet(Vec<u8>),
    /// Reads and never answers, closes after the peer has.
    Silent,
    /// Closes at once.
    HangUp,
    /// Resets the connection at once.
    Reset,
}

/// How to start an origin.
#[derive(Clone, Debug)]
pub struct Setup {
    behaviour: Behaviour,
    listen: Listen,
    proxy: bool,
}

#[derive(Clone, Debug)]
enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Setup {
    /// Expects a PROXY header, version 1 or 2, at the start of each connection, and stores it.
    pub fn proxy(mut self) -> Self {
        self.proxy = true;
        self
    }

    /// Listens on this address instead of a free port of 127.0.0.1.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Listen::Tcp(address);
        self
    }

    /// Listens on a unix socket.
    pub fn unix(mut self, path: impl Into<PathBuf>) -> Self {
        self.listen = Listen::Unix(path.into());
        self
    }

    /// Starts it; it accepts connections when this returns.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn try_start(self) -> io::Result<OriginServer> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (listener, backend) = runtime.block_on(bind(&self.listen))?;
        let shared = Arc::new(Shared {
            behaviour: self.behaviour,
            proxy: self.proxy,
            accepted: AtomicU64::new(0),
            headers: Mutex::default(),
            stop: Notify::new(),
        });
        let served = Arc::clone(&shared);
        let thread = thread::spawn(move || runtime.block_on(serve(listener, served)));
        Ok(OriginServer { backend, shared, thread: Some(thread) })
    }

    /// As [`Setup::try_start`].
    #[must_use]
    pub fn start(self) -> OriginServer {
        let address = format!("{:?}", self.listen);
        self.try_start().unwrap_or_else(|error| panic!("origin cannot listen on {address}: {error}"))
    }
}

/// A running origin; dropping it closes its socket and every connection.
#[derive(Debug)]
pub struct OriginServer {
    backend: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl OriginServer {
    /// Begins a set-up: a free port of 127.0.0.1, no PROXY header.
    pub fn setup(behaviour: Behaviour) -> Setup {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Setup { behaviour, listen: Listen::Tcp(address), proxy: false }
    }

    /// Starts an HTTP origin on a free port.
    #[must_use]
    pub fn http() -> Self {
        Self::setup(Behaviour::Http).start()
    }

    /// Starts an echoing origin on a free port.
    #[must_use]
    pub fn echo() -> Self {
        Self::setup(Behaviour::Echo).start()
    }

    /// As `--backend` takes it: `127.0.0.1:PORT` or `unix:PATH`.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Where it listens.
    ///
    /// # Panics
    /// When it listens on a unix socket.
    pub fn address(&self) -> SocketAddr {
        self.backend.parse().expect("the origin listens on TCP")
    }

    /// How many connections it has accepted.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// The PROXY headers received so far, whole and as they were, in the order in which they were complete.
    pub fn headers(&self) -> Vec<Vec<u8>> {
        self.shared.headers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for OriginServer {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed; the test that noticed nothing of it need not fail.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Shared {
    behaviour: Behaviour,
    proxy: bool,
    accepted: AtomicU64,
    headers: Mutex<Vec<Vec<u8>>>,
    stop: Notify,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

async fn bind(listen: &Listen) -> io::Result<(Listener, String)> {
    match listen {
        Listen::Tcp(address) => {
            let listener = TcpListener::bind(address).await?;
            let backend = listener.local_addr()?.to_string();
            Ok((Listener::Tcp(listener), backend))
        }
        Listen::Unix(path) => {
            Ok((Listener::Unix(UnixListener::bind(path)?), format!("unix:{}", path.display())))
        }
    }
}

/// Serves until the owner is dropped; leaving ends the runtime and with it all connections.
async fn serve(listener: Listener, shared: Arc<Shared>) {
    let stopped = Arc::clone(&shared);
    tokio::spawn(async move { accept_all(&listener, &shared).await });
    stopped.stop.notified().await;
}

async fn accept_all(listener: &Listener, shared: &Arc<Shared>) {
    loop {
        match listener {
            Listener::Tcp(listener) => match listener.accept().await {
                Ok((stream, _)) => accept_tcp(stream, shared),
                Err(_) => tokio::task::yield_now().await,
            },
            Listener::Unix(listener) => match listener.accept().await {
                Ok((stream, _)) => spawn(stream, shared),
                Err(_) => tokio::task::yield_now().await,
            },
        }
    }
}

fn accept_tcp(stream: TcpStream, shared: &Arc<Shared>) {
    if shared.behaviour == Behaviour::Reset {
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        // Zero never blocks the close, and turns it into a reset.
        let _ = stream.set_zero_linger();
        return;
    }
    let _ = stream.set_nodelay(true);
    spawn(stream, shared);
}

fn spawn(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, shared: &Arc<Shared>) {
    shared.accepted.fetch_add(1, Ordering::Relaxed);
    let shared = Arc::clone(shared);
    // How a connection ends is for the test to see at the other side.
    tokio::spawn(async move { connection(stream, &shared).await.ok() });
}

async fn connection(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) -> io::Result<()> {
    let mut received = Vec::with_capacity(1024);
    let mut header = Vec::new();
    if shared.proxy {
        header = proxy::take_header(&mut stream, &mut received).await?;
        shared.headers.lock().unwrap_or_else(PoisonError::into_inner).push(header.clone());
    }
    match &shared.behaviour {
        Behaviour::Http => http::serve(&mut stream, received, &header).await,
        Behaviour::Echo => echo(&mut stream, received).await,
        Behaviour::Greet(greeting) => {
            stream.write_all(greeting).await?;
            echo(&mut stream, received).await
        }
        Behaviour::Silent => read_to_end(&mut stream).await,
        Behaviour::HangUp | Behaviour::Reset => Ok(()),
    }
}

async fn echo(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), received: Vec<u8>) -> io::Result<()> {
    stream.write_all(&received).await?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return stream.shutdown().await,
            count => stream.write_all(&buffer[..count]).await?,
        }
    }
}

async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}
