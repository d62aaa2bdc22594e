//! The confinement of a worker thread: it can open no file (Landlock) and make no system call that its work does not need
//! (seccomp). Each thread enters for itself, for good; threads that it starts inherit it, others are as free as before.

use std::{fmt, io, thread};

use crate::landlock;
use crate::syscalls::Filter;

/// What this system can confine a thread to.
pub struct Confinement {
    landlock: io::Result<u32>,
    filter: Result<Filter, String>,
}

impl Confinement {
    /// Finds out what the kernel has, by threads that try it and end. That there is nothing is no error: see
    /// [`Self::missing`].
    pub fn find() -> Self {
        let landlock = landlock::version()
            .and_then(|version| trial(move || landlock::forbid_files(version)).map(|()| version));
        let filter = Filter::of_worker().map_err(|error| error.to_string()).and_then(|filter| {
            let tried = trial(move || filter.enter().map(|()| filter).map_err(io::Error::other));
            tried.map_err(|error| error.to_string())
        });
        Self { landlock, filter }
    }

    /// Confines the calling thread to as much as there is. It has to have everything open by then that has a path.
    ///
    /// # Errors
    /// When the system refuses what it did not refuse before.
    pub fn enter(&self) -> io::Result<()> {
        if let Ok(version) = self.landlock {
            landlock::forbid_files(version)?;
        }
        match &self.filter {
            Ok(filter) => filter.enter().map_err(io::Error::other),
            Err(_) => Ok(()),
        }
    }

    /// What is not there, and why.
    pub fn missing(&self) -> Vec<String> {
        let landlock = self.landlock.as_ref().err().map(|why| format!("no Landlock ({why})"));
        let filter = self.filter.as_ref().err().map(|why| format!("no seccomp ({why})"));
        landlock.into_iter().chain(filter).collect()
    }
}

/// What is there.
impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.landlock, &self.filter) {
            (Ok(version), Ok(_)) => write!(f, "Landlock ABI {version}, seccomp"),
            (Ok(version), Err(_)) => write!(f, "Landlock ABI {version}"),
            (Err(_), Ok(_)) => f.write_str("seccomp"),
            (Err(_), Err(_)) => f.write_str("nothing"),
        }
    }
}

/// Does something on a thread that ends with it.
fn trial<T: Send + 'static>(attempt: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let tried = thread::Builder::new().name("confinement".to_owned()).spawn(attempt)?;
    tried.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::Arc;

    use courser_testkit::{Folder, skip};

    use super::*;

    /// On a confined thread, where this system has all of it.
    fn confined<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let confinement = Arc::new(Confinement::find());
        if !confinement.missing().is_empty() {
            skip(confinement.missing().join(", "));
            return None;
        }
        let entered = Arc::clone(&confinement);
        let thread = thread::spawn(move || entered.enter().map(|()| work()));
        Some(thread.join().expect("it does not panic").expect("it enters"))
    }

    #[test]
    fn a_confined_thread_opens_no_file_and_starts_no_thread_and_others_do() {
        let opened = || File::open("/etc/passwd").is_ok();
        let started = || thread::Builder::new().spawn(|| ()).is_ok();
        if let Some(can) = confined(move || (opened(), started())) {
            assert_eq!(can, (false, false));
            assert!(opened() && started());
        }
    }

    #[test]
    fn a_confined_thread_has_tcp_and_unix_sockets_and_others_not() {
        let folder = Folder::new();
        let path = folder.join("socket");
        let (tcp, unix) = (TcpListener::bind("127.0.0.1:0").unwrap(), UnixListener::bind(&path).unwrap());
        let address = tcp.local_addr().unwrap();
        let connected = confined(move || {
            let raw = socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None);
            let bound = (UdpSocket::bind("127.0.0.1:0").is_ok(), TcpListener::bind("127.0.0.1:0").is_ok());
            (TcpStream::connect(address).is_ok(), UnixStream::connect(&path).is_ok(), bound, raw.is_ok())
        });
        if let Some(connected) = connected {
            assert_eq!(connected, (true, true, (false, false), false));
            drop(unix);
        }
    }

    #[test]
    fn a_confined_thread_has_memory_and_panics_as_others_do() {
        let survived = confined(|| {
            let large = vec![1u8; 64 << 20];
            let caught = std::panic::catch_unwind(|| panic!("as wanted")).is_err();
            (large.iter().map(|&byte| usize::from(byte)).sum::<usize>(), caught)
        });
        if let Some(survived) = survived {
            assert_eq!(survived, (64 << 20, true));
        }
    }
}
