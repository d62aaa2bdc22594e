//! Landlock for one thread: no file and no folder can be opened any more (Documentation/userspace-api/landlock.rst, and the
//! manual pages that are named below). What is open stays open, and unix sockets can still be connected to.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct landlock_ruleset_attr` (landlock_create_ruleset(2)). An older kernel takes one that is longer than it knows where
/// the rest is zero.
#[repr(C)]
#[derive(Default)]
struct Ruleset {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// Asks for the version instead of making a ruleset.
const CREATE_RULESET_VERSION: u32 = 1;

/// TCP ports cannot be bound to: LANDLOCK_ACCESS_NET_BIND_TCP.
const NET_BIND_TCP: u64 = 1 << 0;

/// No signal to other processes: LANDLOCK_SCOPE_SIGNAL. Abstract sockets stay, since backends may listen on one.
const SCOPE_SIGNAL: u64 = 1 << 1;

/// The version of Landlock that this kernel has.
///
/// # Errors
/// When it has none, or it is not on (`lsm=`), or this process may not ask for it.
pub(crate) fn version() -> io::Result<u32> {
    let version = create(None, CREATE_RULESET_VERSION)?;
    Ok(u32::try_from(version).unwrap_or_default())
}

/// Forbids the calling thread, and those that it will start, everything that Landlock of this version can forbid by the path
/// of a file; and TCP ports to listen on, and signals to other processes, where it can. It cannot be undone.
///
/// # Errors
/// When the system refuses.
pub(crate) fn forbid_files(version: u32) -> io::Result<()> {
    let ruleset = Ruleset {
        handled_access_fs: file_rights(version),
        handled_access_net: if version >= 4 { NET_BIND_TCP } else { 0 },
        scoped: if version >= 6 { SCOPE_SIGNAL } else { 0 },
    };
    let raw = i32::try_from(create(Some(&ruleset), 0)?).map_err(io::Error::other)?;
    #[expect(unsafe_code, reason = "a raw descriptor number can become an owned one in no other way")]
    // SAFETY: the kernel has just made it, for us alone.
    let rules = unsafe { OwnedFd::from_raw_fd(raw) };
    #[expect(unsafe_code, reason = "none of the libraries here has this call")]
    // SAFETY: it takes two numbers (landlock_restrict_self(2)); the descriptor is open.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// All rights of files and folders that a version knows (landlock(7), Filesystem actions): each version knows all bits up
/// to a highest one.
fn file_rights(version: u32) -> u64 {
    let bits = match version {
        0 | 1 => 13,
        2 => 14,     // LANDLOCK_ACCESS_FS_REFER
        3 | 4 => 15, // LANDLOCK_ACCESS_FS_TRUNCATE
        _ => 16,     // LANDLOCK_ACCESS_FS_IOCTL_DEV
    };
    (1 << bits) - 1
}

fn create(ruleset: Option<&Ruleset>, flags: u32) -> io::Result<libc::c_long> {
    let (pointer, size) =
        ruleset.map_or((std::ptr::null(), 0), |rules| (&raw const *rules, size_of::<Ruleset>()));
    #[expect(unsafe_code, reason = "none of the libraries here has this call")]
    // SAFETY: the kernel reads `size` bytes from `pointer`, which are those of `ruleset`, alive for the whole call, or none.
    let result = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, pointer, size, flags) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_knows_more_rights() {
        assert_eq!(file_rights(1), 0x1fff);
        assert_eq!(file_rights(3), 0x7fff);
        assert_eq!(file_rights(5), 0xffff);
        assert_eq!(file_rights(99), 0xffff);
    }
}
