//! Ports, and programs that may or may not be installed.

use std::{env, net::TcpListener, path::PathBuf};

/// A port of 127.0.0.1 that was free a moment ago.
///
/// Only for programs that cannot be given port 0: between this call and the program's `bind` anybody may take it.
///
/// # Panics
/// When the loopback interface has no free port.
#[must_use]
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("loopback has a free port")
        .port()
}

/// The path of an installed program, or `None` after printing why the caller is skipped.
///
/// Looks through `PATH` and then through the `sbin` folders, where Debian puts the servers and where the `PATH` of an
/// ordinary user does not look.
#[must_use]
pub fn require(program: &str) -> Option<PathBuf> {
    let found = find(program);
    if found.is_none() {
        eprintln!("skipped: {program} is not installed (scripts/install.sh installs it)");
    }
    found
}

/// As [`require`], without the message.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}
