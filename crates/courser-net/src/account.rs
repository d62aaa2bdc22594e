//! The accounts of the system: which one this process has, and by what numbers another one is known.
//!
//! Names are looked up by the C library, so that accounts of a directory service (nsswitch.conf(5)) are known as well.

use std::ffi::CString;
use std::{io, ptr};

use rustix::process::{getegid, geteuid, getgroups};

/// Who a process is to the kernel when it opens a file (credentials(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// User ID.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

impl Account {
    /// This process's.
    pub fn current() -> Self {
        let groups = getgroups().unwrap_or_default();
        Self {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            groups: groups.into_iter().map(rustix::process::Gid::as_raw).collect(),
        }
    }

    /// Whether it is in a group.
    pub fn is_in(&self, group: u32) -> bool {
        self.gid == group || self.groups.contains(&group)
    }
}

/// The numbers of a user and of its own group, by its name. `None` where there is no such user.
///
/// # Errors
/// When the system cannot tell (getpwnam_r(3)).
pub fn find_user(name: &str) -> io::Result<Option<(u32, u32)>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    with_room(|room| {
        let mut found = ptr::null_mut();
        #[allow(unsafe_code, reason = "none of the libraries here asks for accounts")]
        // SAFETY: all zeros is a `passwd` (numbers and null pointers). `name` ends in a zero byte, `room` is as long as said,
        // and all of it outlives the call. What `found` points to is `entry`, which is read while it lives.
        unsafe {
            let mut entry: libc::passwd = std::mem::zeroed();
            let error = libc::getpwnam_r(
                name.as_ptr(),
                &raw mut entry,
                room.as_mut_ptr(),
                room.len(),
                &raw mut found,
            );
            answer(error, (!found.is_null()).then_some((entry.pw_uid, entry.pw_gid)))
        }
    })
}

/// The number of a group, by its name. `None` where there is no such group.
///
/// # Errors
/// When the system cannot tell (getgrnam_r(3)).
pub fn find_group(name: &str) -> io::Result<Option<u32>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    with_room(|room| {
        let mut found = ptr::null_mut();
        #[allow(unsafe_code, reason = "none of the libraries here asks for groups")]
        // SAFETY: as in `find_user`; all zeros is a `group`.
        unsafe {
            let mut entry: libc::group = std::mem::zeroed();
            let error = libc::getgrnam_r(
                name.as_ptr(),
                &raw mut entry,
                room.as_mut_ptr(),
                room.len(),
                &raw mut found,
            );
            answer(error, (!found.is_null()).then_some(entry.gr_gid))
        }
    })
}

/// The group of a user that is known by its number (getpwuid_r(3)). `None` where there is no such user.
///
/// # Errors
/// When the system cannot tell.
pub fn group_of(uid: u32) -> io::Result<Option<u32>> {
    with_room(|room| {
        let mut found = ptr::null_mut();
        #[allow(unsafe_code, reason = "none of the libraries here asks for accounts")]
        // SAFETY: as in `find_user`.
        unsafe {
            let mut entry: libc::passwd = std::mem::zeroed();
            let error = libc::getpwuid_r(uid, &raw mut entry, room.as_mut_ptr(), room.len(), &raw mut found);
            answer(error, (!found.is_null()).then_some(entry.pw_gid))
        }
    })
}

/// What the C library made of a question. Some systems say "not found" by one of these errors (getpwnam(3)).
fn answer<T>(error: libc::c_int, found: Option<T>) -> io::Result<Option<T>> {
    match error {
        0 | libc::ENOENT | libc::ESRCH => Ok(found),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Asks with more and more room for the strings of an entry: a group may have thousands of members.
fn with_room<T>(mut ask: impl FnMut(&mut [libc::c_char]) -> io::Result<Option<T>>) -> io::Result<Option<T>> {
    let mut room = vec![0; 1024];
    loop {
        match ask(&mut room) {
            Err(error) if error.raw_os_error() == Some(libc::ERANGE) && room.len() < MOST_ROOM => {
                room.resize(room.len() * 4, 0);
            }
            answer => return answer,
        }
    }
}

/// No entry is longer.
const MOST_ROOM: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_on_every_system_and_nonsense_on_none() {
        assert_eq!(find_user("root").unwrap(), Some((0, 0)));
        assert_eq!(find_group("root").unwrap(), Some(0));
        assert_eq!(group_of(0).unwrap(), Some(0));
        for name in ["no such user", "", "a\0b"] {
            assert_eq!((find_user(name).unwrap(), find_group(name).unwrap()), (None, None), "{name:?}");
        }
    }

    #[test]
    fn an_entry_that_needs_more_room_gets_it() {
        let mut asked = Vec::new();
        let found = with_room(|room| {
            asked.push(room.len());
            if room.len() < 10_000 { answer(libc::ERANGE, None) } else { answer(0, Some(7)) }
        });
        assert_eq!((found.unwrap(), asked), (Some(7), vec![1024, 4096, 16_384]));
    }

    #[test]
    fn a_process_is_in_its_own_group() {
        let current = Account::current();
        assert!(current.is_in(current.gid));
        assert!(!Account { uid: 1, gid: 2, groups: vec![3] }.is_in(4));
    }
}
