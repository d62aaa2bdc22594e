//! HTTP/1.1 for operators and monitoring, on a thread of its own. It reads and changes nothing: what changes something is the
//! control socket's. May not know what is told.
//!
//! Each connection has one request. So one deadline holds for all of it, but for streams, and there is no idle one.

pub(crate) mod access;
mod events;
pub(crate) mod pages;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use courser_config::ListenAddress;
use courser_proxy::Threads;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, Semaphore};

use self::events::Exchange;
use self::pages::AdminPages;
use crate::control;

/// Connections at a time; further ones wait.
const MOST_CONNECTIONS: usize = 16;

/// For a request and its answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Bytes of a request's head, and of an answer that are on their way.
const BUFFER: usize = 16 * 1024;

/// Bytes of an answer that the system holds for a client that does not read; it doubles them. On loopback it would be 2.5 MiB.
const SEND_BUFFER: usize = 64 * 1024;

/// Out of descriptors, mostly: the next one may do.
const BACK_OFF: Duration = Duration::from_millis(100);

/// An open address.
#[derive(Debug)]
pub(crate) enum AdminSocket {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl AdminSocket {
    /// A unix socket that a crash left behind is replaced; the group of the program's user may connect to it too.
    pub(crate) fn open(address: &ListenAddress) -> io::Result<Self> {
        let tcp = |ip: IpAddr, port| TcpListener::bind(SocketAddr::new(ip, port)).map(Self::Tcp);
        match address {
            ListenAddress::Any { port } => {
                tcp(Ipv6Addr::UNSPECIFIED.into(), *port).or_else(|_| tcp(Ipv4Addr::UNSPECIFIED.into(), *port))
            }
            ListenAddress::Ip(address) => tcp(address.ip(), address.port()),
            ListenAddress::Unix(path) => Ok(Self::Unix(control::open_socket(path, 0o660)?, path.clone())),
            other => Err(io::Error::new(io::ErrorKind::Unsupported, format!("no HTTP on {other}"))),
        }
    }

    /// Takes over the socket of another process.
    pub(crate) fn adopt(address: &ListenAddress, socket: OwnedFd) -> Self {
        match address {
            ListenAddress::Unix(path) => Self::Unix(socket.into(), path.clone()),
            _ => Self::Tcp(socket.into()),
        }
    }

    /// Another descriptor of it, for another process.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(listener) => listener.as_fd().try_clone_to_owned(),
            Self::Unix(listener, _) => listener.as_fd().try_clone_to_owned(),
        }
    }

    /// For people.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) if address.ip().is_unspecified() => format!("http://*:{}", address.port()),
                Ok(address) => format!("http://{address}"),
                Err(error) => error.to_string(),
            },
            Self::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix(_, path) => Some(path),
        }
    }
}

/// The server. Dropped, it is stopped.
pub(crate) struct AdminServer {
    paths: Vec<PathBuf>,
    stop: Arc<Notify>,
    /// Disconnected when the thread has ended; `None` once it is stopped.
    ended: Mutex<Option<Receiver<Infallible>>>,
}

impl AdminServer {
    /// AdminPages on these sockets, on a thread of its own.
    pub(crate) fn start(
        sockets: Vec<AdminSocket>,
        pages: Arc<AdminPages>,
        threads: &Threads,
    ) -> io::Result<Self> {
        let paths = sockets.iter().filter_map(AdminSocket::path).map(Path::to_owned).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, (running, ended)) = (Arc::new(Notify::new()), channel());
        let stopped = Arc::clone(&stop);
        threads.spawn("admin", move || {
            let _running = running;
            runtime.block_on(async move {
                let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
                let watched = Arc::clone(&pages);
                tokio::spawn(async move { watched.events.send().await });
                for socket in sockets {
                    tokio::spawn(accept(socket, Arc::clone(&pages), Arc::clone(&connections)));
                }
                stopped.notified().await;
            });
        })?;
        Ok(Self { paths, stop, ended: Mutex::new(Some(ended)) })
    }

    /// Answers no further request, and removes its files but `kept`. Returns whether the thread has ended within `limit`.
    pub(crate) fn stop(&self, limit: Duration, kept: &[PathBuf]) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Once only: afterwards the paths may be another program's.
        let Some(ended) = ended else { return true };
        self.stop.notify_one();
        for path in self.paths.iter().filter(|path| !kept.contains(path)) {
            // Another program may have removed it already.
            let _ = std::fs::remove_file(path);
        }
        ended.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop(Duration::ZERO, &[]);
    }
}

async fn accept(socket: AdminSocket, pages: Arc<AdminPages>, connections: Arc<Semaphore>) {
    match socket {
        AdminSocket::Tcp(listener) => {
            let Ok(listener) = nonblocking(listener) else { return };
            loop {
                let Ok((stream, peer)) = listener.accept().await else {
                    tokio::time::sleep(BACK_OFF).await;
                    continue;
                };
                let Ok(local) = stream.local_addr() else { continue };
                // Where it fails the system holds more for who does not read.
                let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER);
                if pages.access.admits(peer.ip()) {
                    serve(stream, Some(local.ip()), &pages, &connections).await;
                }
            }
        }
        AdminSocket::Unix(listener, _) => {
            let Ok(listener) = nonblocking_unix(listener) else { return };
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => serve(stream, None, &pages, &connections).await,
                    Err(_) => tokio::time::sleep(BACK_OFF).await,
                }
            }
        }
    }
}

fn nonblocking(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

fn nonblocking_unix(listener: UnixListener) -> io::Result<tokio::net::UnixListener> {
    listener.set_nonblocking(true)?;
    tokio::net::UnixListener::from_std(listener)
}

/// Waits for a place, then pages on a task of its own. `local`: the address that the client has connected to.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    local: Option<IpAddr>,
    pages: &Arc<AdminPages>,
    connections: &Arc<Semaphore>,
) {
    let Ok(place) = Arc::clone(connections).acquire_owned().await else { return };
    let pages = Arc::clone(pages);
    tokio::spawn(async move {
        let _place = place;
        exchange(stream, local, pages).await;
    });
}

fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    local: Option<IpAddr>,
    pages: Arc<AdminPages>,
) -> impl Future<Output = ()> + Send {
    let exchange = Arc::new(Exchange::default());
    let answered = Arc::clone(&exchange);
    let service = service_fn(move |request| {
        let answer = pages.answer(&request, local, &answered);
        async { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    async move {
        // A client that has gone, or takes too long, needs no answer.
        tokio::select! {
            _ = connection => {}
            () = exchange.overtime(DEADLINE) => {}
        }
    }
}
