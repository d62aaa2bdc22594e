//! The control socket: by which a running program is asked how it is. A request is one line, an answer JSON lines. May
//! not change anything that connections depend on.
//!
//! Only the user that runs the program, and root, may ask: the file's mode says so to well-behaved systems, and the
//! peer's credentials are looked at in any case.

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

/// Askers at a time; one more is told to come again.
const MOST_ASKERS: usize = 8;
/// No request is longer.
const LONGEST_REQUEST: u64 = 256;
/// How long an asker may take over its request, and over taking the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers requests: writes JSON lines, or says that it knows no such request. A long answer ends when writing fails.
pub(crate) trait ControlHandler: Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome>;
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// It was answered.
    Yes,
    /// There is no such request.
    Unknown,
}

/// The socket. It is removed from the file system when it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    listener: Arc<UnixListener>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl Control {
    /// Opens the socket and answers on a thread of its own. A socket that a crash left behind is replaced; one that
    /// somebody listens on is not, nor any other file.
    pub(crate) fn start(path: &Path, answers: impl ControlHandler, threads: &Threads) -> io::Result<Self> {
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another program answers there"));
        }
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "there is a file that is no socket",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = Arc::new(UnixListener::bind(path)?);
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        let (answers, accepting, (running, ended)) =
            (Arc::new(answers), Arc::clone(&listener), channel::<()>());
        threads.spawn("control", move || {
            let _running = running;
            accept(&accepting, &answers);
        })?;
        Ok(Self { path: path.to_owned(), listener, ended: Mutex::new(ended) })
    }

    /// Accepts no further request. Returns whether the thread has ended within `limit`; answers that have begun go on.
    pub(crate) fn stop(&self, limit: Duration) -> bool {
        // Wakes a thread that waits for a client: accept(2) then fails with EINVAL.
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        // Another program may have removed it already.
        let _ = fs::remove_file(&self.path);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

fn accept<A: ControlHandler>(listener: &UnixListener, answers: &Arc<A>) {
    let askers = Arc::new(AtomicUsize::new(0));
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
        if askers.fetch_add(1, Ordering::Relaxed) >= MOST_ASKERS {
            askers.fetch_sub(1, Ordering::Relaxed);
            let _ = say(&mut stream, "too many ask at once: try again");
            continue;
        }
        let (answers, leaving) = (Arc::clone(answers), Leaving(Arc::clone(&askers)));
        // Without a thread there is no answer; the asker sees the end, as that of one that panics: it is one asker's alone.
        let _ = thread::Builder::new().name("control-answer".into()).spawn(move || {
            let _leaving = leaving;
            // An asker that has gone needs no answer.
            let _ = serve(stream, &*answers);
        });
    }
}

/// Counts an asker out, however its thread ends.
struct Leaving(Arc<AtomicUsize>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(mut stream: UnixStream, answers: &impl ControlHandler) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    if !may_ask(&stream)? {
        return say(&mut stream, "only the user that runs the program may ask it");
    }
    let mut request = String::new();
    BufReader::new((&stream).take(LONGEST_REQUEST)).read_line(&mut request)?;
    match answers.answer(request.trim_end(), &mut stream)? {
        RequestOutcome::Yes => Ok(()),
        RequestOutcome::Unknown => {
            say(&mut stream, "this program knows no such request: is it of another version?")
        }
    }
}

fn may_ask(stream: &UnixStream) -> io::Result<bool> {
    let asker = rustix::net::sockopt::socket_peercred(stream.as_fd())?.uid;
    Ok(asker == rustix::process::geteuid() || asker.is_root())
}

/// An answer that is none. The text is ours: it has nothing to escape.
fn say(stream: &mut UnixStream, error: &str) -> io::Result<()> {
    writeln!(stream, "{{\"error\":\"{error}\"}}")
}

/// Asks the program that listens at `path`; gives its answer's lines to `line` until it says to stop.
pub(crate) fn ask(path: &Path, request: &str, mut line: impl FnMut(&str) -> bool) -> io::Result<()> {
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
                "twice" => writeln!(out, "1\n2").map(|()| RequestOutcome::Yes),
                _ => Ok(RequestOutcome::Unknown),
            }
        }
    }

    fn asked(path: &Path, request: &str) -> Vec<String> {
        let mut lines = Vec::new();
        ask(path, request, |line| {
            lines.push(line.to_owned());
            true
        })
        .unwrap();
        lines
    }

    #[test]
    fn a_request_is_answered_and_an_unknown_one_told() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let control = Control::start(&path, Echo, &threads()).unwrap();
        assert_eq!(asked(&path, "twice"), ["1", "2"]);
        assert!(asked(&path, "thrice")[0].contains("no such request"));
        assert!(asked(&path, &"x".repeat(200))[0].contains("no such request"));
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
        stream.write_all(&[b'x'; 256]).unwrap();
        let mut answer = String::new();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(&stream).read_line(&mut answer).unwrap();
        assert!(answer.contains("no such request"), "{answer}");
    }

    #[test]
    fn more_askers_than_may_ask_at_a_time_are_told_to_come_again() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        let _control = Control::start(&path, Echo, &threads()).unwrap();
        // They are accepted in order, and say nothing.
        let silent: Vec<_> = (0..MOST_ASKERS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let mut refused = String::new();
        BufReader::new(UnixStream::connect(&path).unwrap()).read_line(&mut refused).unwrap();
        assert!(refused.contains("too many ask at once"), "{refused}");
        drop(silent);
        let is_answered = || {
            let mut lines = 0;
            let count = |line: &str| {
                lines += usize::from(line.len() == 1);
                true
            };
            ask(&path, "twice", count).is_ok() && lines == 2
        };
        let deadline = Instant::now() + PATIENCE;
        while !is_answered() {
            assert!(Instant::now() < deadline, "who has gone is still counted");
        }
    }

    #[test]
    fn a_file_that_a_crash_left_behind_is_replaced() {
        let folder = Folder::new();
        let path = folder.join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _control = Control::start(&path, Echo, &threads()).unwrap();
        assert_eq!(asked(&path, "twice"), ["1", "2"]);
    }
}
