//! The control socket, which answers queries about the running program, and passes on what the operator says of servers. A
//! request is one line, an answer JSON lines.
//!
//! Only the user that runs the program, and root, may use it: the file's mode forbids it to others on most systems, and
//! the peer's credentials are checked in any case.

mod default_path;

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use courser_proxy::Threads;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

pub(crate) use default_path::default_path;

/// Clients at a time; one more gets an error.
const MAX_CLIENTS: usize = 8;
/// Length of the longest request in bytes: one with the path of a program.
const MAX_REQUEST: u64 = 8 * 1024;
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

/// The socket. It is removed from the file system when it is stopped or dropped, unless another process has it too.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    listener: Arc<UnixListener>,
    thread: Mutex<Thread>,
    /// Disconnected when all clients have their answers.
    answered: Mutex<Option<Receiver<()>>>,
}

/// The thread that accepts.
#[derive(Debug)]
enum Thread {
    NotYet,
    /// It does not run yet, and the socket's file is another process's until it does.
    NotYetOurs,
    /// It ends when `_stop` is dropped, and `ended` is disconnected then.
    Runs {
        _stop: OwnedFd,
        ended: Receiver<()>,
    },
    Stopped,
}

impl Control {
    /// Opens the socket.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::of(open_socket(path, 0o600)?, path, Thread::NotYet)
    }

    /// Takes over the socket of another process, which listens at `path`.
    pub(crate) fn adopt(socket: OwnedFd, path: &Path) -> io::Result<Self> {
        Self::of(UnixListener::from(socket), path, Thread::NotYetOurs)
    }

    fn of(listener: UnixListener, path: &Path, thread: Thread) -> io::Result<Self> {
        // Another process may take a client first.
        listener.set_nonblocking(true)?;
        let path = std::path::absolute(path)?;
        Ok(Self {
            path,
            listener: Arc::new(listener),
            thread: Mutex::new(thread),
            answered: Mutex::default(),
        })
    }

    /// Another descriptor of it, for another process.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned()
    }

    /// Where it listens.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Answers requests on a thread of its own.
    pub(crate) fn serve(&self, handler: impl ControlHandler, threads: &Threads) -> io::Result<()> {
        let (woken, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let (handler, accepting) = (Arc::new(handler), Arc::clone(&self.listener));
        let ((running, ended), (answering, answered)) = (channel::<()>(), channel());
        threads.spawn("control", move || {
            let _running = running;
            accept(&accepting, &woken, &handler, &answering);
        })?;
        *self.answers() = Some(answered);
        *self.thread() = Thread::Runs { _stop: stop, ended };
        Ok(())
    }

    /// Accepts no further request, and removes the socket's file. Returns whether the thread has ended within `limit`;
    /// answers that have begun go on.
    pub(crate) fn stop(&self, limit: Duration) -> bool {
        let is_ours = matches!(*self.thread(), Thread::NotYet | Thread::Runs { .. });
        if is_ours {
            // Another program may have removed it already.
            let _ = fs::remove_file(&self.path);
        }
        self.leave(limit)
    }

    /// Accepts no further request, and leaves the socket to another process.
    pub(crate) fn leave(&self, limit: Duration) -> bool {
        // Once only: afterwards the path may be another program's.
        let before = std::mem::replace(&mut *self.thread(), Thread::Stopped);
        let Thread::Runs { _stop, ended } = before else { return true };
        drop(_stop);
        ended.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }

    /// Waits for the clients that are being answered, at the end of the program: who has asked for a reload or an upgrade is told
    /// how it went. Some answers have no end.
    pub(crate) fn finish(&self, limit: Duration) {
        if let Some(answered) = &*self.answers() {
            let _ = answered.recv_timeout(limit);
        }
    }

    fn answers(&self) -> MutexGuard<'_, Option<Receiver<()>>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn thread(&self) -> MutexGuard<'_, Thread> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
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

fn accept<A: ControlHandler>(
    listener: &UnixListener,
    woken: &OwnedFd,
    handler: &Arc<A>,
    answering: &Sender<()>,
) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let mut polled = [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        let _ = poll(&mut polled, None);
        if !polled[1].revents().is_empty() {
            return;
        }
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
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
        let answering = answering.clone();
        // Without a thread the client sees the end of the stream, as after a panic there, which concerns this client alone.
        let _ = thread::Builder::new().name("control-answer".into()).spawn(move || {
            let (_guard, _answering) = (guard, answering);
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

/// The answer of a process that another one has replaced since it was asked: ask again.
pub(crate) const SUPERSEDED: &str = r#"{"superseded":true}"#;

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

    fn start(path: &Path) -> io::Result<Control> {
        let control = Control::open(path)?;
        control.serve(Echo, &threads())?;
        Ok(control)
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
        let control = start(&path).unwrap();
        assert_eq!(answer_to(&path, "twice"), ["1", "2"]);
        assert!(answer_to(&path, "thrice")[0].contains("no such request"));
        assert!(answer_to(&path, &"x".repeat(200))[0].contains("no such request"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(start(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(control);
        assert!(!path.exists());
    }

    #[test]
    fn a_request_without_end_is_answered_when_it_is_too_long() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let _control = start(&path).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        // No end of line, and no end of the stream.
        stream.write_all(&vec![b'x'; usize::try_from(MAX_REQUEST).unwrap()]).unwrap();
        let mut answer = String::new();
        stream.set_read_timeout(Some(CLIENT_TIMEOUT)).unwrap();
        BufReader::new(&stream).read_line(&mut answer).unwrap();
        assert!(answer.contains("no such request"), "{answer}");
    }

    #[test]
    fn one_client_too_many_gets_an_error() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let _control = start(&path).unwrap();
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
    fn a_socket_that_is_left_to_another_process_stays_and_its_next_clients_are_answered_there() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let first = start(&path).unwrap();
        let second = Control::adopt(first.share().unwrap(), &path).unwrap();
        second.serve(Echo, &threads()).unwrap();
        assert!(first.leave(CLIENT_TIMEOUT));
        drop(first);
        assert_eq!(answer_to(&path, "twice"), ["1", "2"]);
        drop(Control::adopt(second.share().unwrap(), &path).unwrap());
        assert!(path.exists(), "one that never answered leaves it alone");
        drop(second);
        assert!(!path.exists());
    }

    /// Says when it is asked, and answers when it may.
    struct Slow(Sender<()>, Mutex<Receiver<()>>);

    impl ControlHandler for Slow {
        fn answer(&self, _request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome> {
            self.0.send(()).unwrap();
            self.1.lock().unwrap().recv().unwrap();
            writeln!(out, "done").map(|()| RequestOutcome::Known)
        }
    }

    #[test]
    fn who_has_asked_is_answered_before_the_end() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let ((asked, was_asked), (go, may_answer)) = (channel(), channel());
        let control = Control::open(&path).unwrap();
        control.serve(Slow(asked, Mutex::new(may_answer)), &threads()).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        writeln!(&client, "reload").unwrap();
        was_asked.recv().unwrap();
        assert!(control.stop(CLIENT_TIMEOUT));
        control.finish(Duration::from_millis(1));
        let none = client.set_nonblocking(true).and_then(|()| (&client).read(&mut [0; 8]));
        assert_eq!(none.map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
        go.send(()).unwrap();
        control.finish(CLIENT_TIMEOUT);
        assert_eq!((&client).read(&mut [0; 8]).unwrap(), 5);
    }

    #[test]
    fn a_file_that_a_crash_left_behind_is_replaced() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _control = start(&path).unwrap();
        assert_eq!(answer_to(&path, "twice"), ["1", "2"]);
    }
}
