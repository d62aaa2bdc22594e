//! The control socket, which answers queries about the running program, and passes on what the operator says of servers. A
//! request is one line, an answer JSON lines.
//!
//! Only the user that runs the program, and root, may use it: the file's mode forbids it to others on most systems, and
//! the peer's credentials are checked in any case.

mod default_path;

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use courser_proxy::Threads;
use rustix::net::Shutdown;

pub(crate) use default_path::default_path;

/// Clients at a time; one more gets an error.
const MAX_CLIENTS: usize = 8;
/// Length of the longest request in bytes.
const MAX_REQUEST: u64 = 512;
/// Time for a client to send its request, and to take each part of the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers requests with JSON lines. A long answer ends when writing fails.
pub(crate) trait ControlHandler: Send + Sync + 'static {
    fn answer(&self, request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Known,
    Unknown,
}

/// The socket. It is removed from the file system when it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    listener: Arc<UnixListener>,
    /// Disconnected when the thread has ended; `None` once it is stopped.
    ended: Mutex<Option<Receiver<()>>>,
}

impl Control {
    /// Opens the socket and answers requests on a thread of its own.
    pub(crate) fn start(path: &Path, handler: impl ControlHandler, threads: &Threads) -> io::Result<Self> {
        let listener = Arc::new(open_socket(path, 0o600)?);
        let (handler, accepting, (running, ended)) =
            (Arc::new(handler), Arc::clone(&listener), channel::<()>());
        threads.spawn("control", move || {
            let _running = running;
            accept(&accepting, &handler);
        })?;
        Ok(Self { path: path.to_owned(), listener, ended: Mutex::new(Some(ended)) })
    }

    /// Accepts no further request. Returns whether the thread has ended within `limit`; answers that have begun go on.
    pub(crate) fn stop(&self, limit: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Once only: afterwards the path may be another program's.
        let Some(ended) = ended else { return true };
        // Wakes a thread that waits for a client: accept(2) then fails with EINVAL.
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        // Another program may have removed it already.
        let _ = fs::remove_file(&self.path);
        ended.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

/// Opens a socket in the file system. One that a crash left behind is replaced; one that a program listens on is not, nor any
/// other file.
pub(crate) fn open_socket(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another program listens there"));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file is not a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(listener)
}

fn accept<A: ControlHandler>(listener: &UnixListener, handler: &Arc<A>) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let mut stream = match stream {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            // Out of descriptors, mostly: the next one may do.
            Err(_) => {
                thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
            clients.fetch_sub(1, Ordering::Relaxed);
            let _ = send_error(&mut stream, "too many clients: try again");
            continue;
        }
        let (handler, guard) = (Arc::clone(handler), ClientGuard(Arc::clone(&clients)));
        // Without a thread the client sees the end of the stream, as after a panic there, which concerns this client alone.
        let _ = thread::Builder::new().name("control-answer".into()).spawn(move || {
            let _guard = guard;
            // A client that has gone needs no answer.
            let _ = serve(stream, &*handler);
        });
    }
}

/// Counts a client out, also when its thread panics.
struct ClientGuard(Arc<AtomicUsize>);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(mut stream: UnixStream, handler: &impl ControlHandler) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    if !is_allowed(&stream)? {
        return send_error(&mut stream, "only the user that runs the program may use its control socket");
    }
    let mut request = String::new();
    BufReader::new((&stream).take(MAX_REQUEST)).read_line(&mut request)?;
    match handler.answer(request.trim_end(), &mut stream)? {
        RequestOutcome::Known => Ok(()),
        RequestOutcome::Unknown => {
            send_error(&mut stream, "no such request: is the program of another version?")
        }
    }
}

fn is_allowed(stream: &UnixStream) -> io::Result<bool> {
    let client = rustix::net::sockopt::socket_peercred(stream.as_fd())?.uid;
    Ok(client == rustix::process::geteuid() || client.is_root())
}

/// Sends an error in place of an answer. The text is ours: it has nothing to escape.
fn send_error(stream: &mut UnixStream, error: &str) -> io::Result<()> {
    writeln!(stream, "{{\"error\":\"{error}\"}}")
}

/// Sends a request to the program that listens at `path`, and gives the lines of its answer to `line` until that returns
/// false.
pub(crate) fn query(path: &Path, request: &str, mut line: impl FnMut(&str) -> bool) -> io::Result<()> {
    let mut stream = UnixStream::connect(path)?;
    writeln!(stream, "{request}")?;
    for text in BufReader::new(stream).lines() {
        if !line(&text?) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use courser_testkit::Folder;

    use super::*;

    fn threads() -> Threads {
        Threads::new(|panicked| panic!("{panicked:?}"))
    }

    struct Echo;

    impl ControlHandler for Echo {
        fn answer(&self, request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome> {
            match request {
                "twice" => writeln!(out, "1\n2").map(|()| RequestOutcome::Known),
                _ => Ok(RequestOutcome::Unknown),
            }
        }
    }

    fn answer_to(path: &Path, request: &str) -> Vec<String> {
        let mut lines = Vec::new();
        query(path, request, |line| {
            lines.push(line.to_owned());
            true
        })
        .unwrap();
        lines
    }

    #[test]
    fn a_request_is_answered_and_an_unknown_one_refused() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let control = Control::start(&path, Echo, &threads()).unwrap();
        assert_eq!(answer_to(&path, "twice"), ["1", "2"]);
        assert!(answer_to(&path, "thrice")[0].contains("no such request"));
        assert!(answer_to(&path, &"x".repeat(200))[0].contains("no such request"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Control::start(&path, Echo, &threads()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(control);
        assert!(!path.exists());
    }

    #[test]
    fn a_request_without_end_is_answered_when_it_is_too_long() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let _control = Control::start(&path, Echo, &threads()).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        // No end of line, and no end of the stream.
        stream.write_all(&[b'x'; 512]).unwrap();
        let mut answer = String::new();
        stream.set_read_timeout(Some(CLIENT_TIMEOUT)).unwrap();
        BufReader::new(&stream).read_line(&mut answer).unwrap();
        assert!(answer.contains("no such request"), "{answer}");
    }

    #[test]
    fn one_client_too_many_gets_an_error() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let _control = Control::start(&path, Echo, &threads()).unwrap();
        // They are accepted in order, and send nothing.
        let silent: Vec<_> = (0..MAX_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let mut refused = String::new();
        BufReader::new(UnixStream::connect(&path).unwrap()).read_line(&mut refused).unwrap();
        assert!(refused.contains("too many clients"), "{refused}");
        drop(silent);
        let is_answered = || {
            let mut lines = 0;
            let count = |line: &str| {
                lines += usize::from(line.len() == 1);
                true
            };
            query(&path, "twice", count).is_ok() && lines == 2
        };
        let deadline = Instant::now() + CLIENT_TIMEOUT;
        while !is_answered() {
            assert!(Instant::now() < deadline, "a client that has gone is still counted");
        }
    }

    #[test]
    fn a_file_that_a_crash_left_behind_is_replaced() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _control = Control::start(&path, Echo, &threads()).unwrap();
        assert_eq!(answer_to(&path, "twice"), ["1", "2"]);
    }
}
