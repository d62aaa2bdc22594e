//! Where the control socket is when nobody names a place: the same for the program that opens it and for the commands that
//! ask it. Opens nothing.

use std::env;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// Where services have it that a package or an administrator installed.
const OF_SYSTEM: &str = "/run/courser";

/// The folder that the service manager made for this service alone (`RuntimeDirectory=`, systemd.exec(5)); else that of the
/// system, for who may write there; else that of the user (XDG Base Directory Specification).
pub(crate) fn default_path() -> PathBuf {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_unit = named("RUNTIME_DIRECTORY").and_then(|folders| first(&folders));
    let of_user = || named("XDG_RUNTIME_DIR").map(|folder| folder.join("courser"));
    let is_ours = rustix::process::geteuid().is_root()
        || rustix::fs::access(OF_SYSTEM, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let of_system = || is_ours.then(|| PathBuf::from(OF_SYSTEM));
    let folder = of_unit.or_else(of_system).or_else(of_user);
    folder.unwrap_or_else(|| PathBuf::from(OF_SYSTEM)).join("control.sock")
}

/// systemd separates several folders by colons.
fn first(folders: &Path) -> Option<PathBuf> {
    let first = folders.to_str()?.split(':').next()?;
    Some(PathBuf::from(first))
}
