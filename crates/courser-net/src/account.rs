//! The accounts of the system: which one this process has, by what numbers another one is known, and how to become it.
//!
//! Names are looked up by the C library, so that accounts of a directory service (nsswitch.conf(5)) are known as well.

use std::ffi::CString;
use std::path::Path;
use std::{io, ptr, thread};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, chownat, fstat, openat};
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

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
            groups: groups.into_iter().map(Gid::as_raw).collect(),
        }
    }

    /// Does something on a thread that is this account, and then ends. `work` may start no thread.
    ///
    /// # Errors
    /// When this process may not become that account.
    pub fn lend<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let lent = thread::Builder::new().name("account".to_owned()).spawn_scoped(scope, || {
                // The system calls, which concern the calling thread alone: the C library would change all threads.
                let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
                set_thread_groups(
                    &self.groups.iter().map(|&group| Gid::from_raw(group)).collect::<Vec<_>>(),
                )?;
                set_thread_res_gid(gid, gid, gid)?;
                set_thread_res_uid(uid, uid, uid)?;
                Ok(work())
            })?;
            lent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Makes all threads of this process this account, for good.
    ///
    /// # Errors
    /// When the system refuses, or would let the process go back.
    pub fn become_for_good(&self) -> io::Result<()> {
        let (uid, gid) = (self.uid, self.gid);
        #[expect(
            unsafe_code,
            reason = "the libraries here change one thread, the C library all of them (nptl(7))"
        )]
        // SAFETY: `groups` has as many numbers as said, and the other calls take numbers (setgroups(2), setresuid(2)).
        let result = unsafe {
            check(libc::setgroups(self.groups.len(), self.groups.as_ptr()))
                .and_then(|()| check(libc::setresgid(gid, gid, gid)))
                .and_then(|()| check(libc::setresuid(uid, uid, uid)))
        };
        result?;
        let is_root_gone = uid == 0 || set_thread_res_uid(None, Uid::ROOT, None).is_err();
        if Self::current() == *self && is_root_gone {
            Ok(())
        } else {
            Err(io::Error::other("the system let the process keep its old user"))
        }
    }

    /// Makes this account the owner of a unix socket's file; whatever else is there by that name is left alone.
    ///
    /// # Errors
    /// When it is no socket, or the system refuses.
    pub fn take_socket(&self, path: &Path) -> io::Result<()> {
        // By descriptor: who can write to the folder could put something else in its place meanwhile.
        let file = openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::Socket {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no socket any more"));
        }
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        Ok(chownat(&file, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?)
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
        #[expect(unsafe_code, reason = "none of the libraries here asks for accounts")]
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
        #[expect(unsafe_code, reason = "none of the libraries here asks for groups")]
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
        #[expect(unsafe_code, reason = "none of the libraries here asks for accounts")]
        // SAFETY: as in `find_user`.
        unsafe {
            let mut entry: libc::passwd = std::mem::zeroed();
            let error = libc::getpwuid_r(uid, &raw mut entry, room.as_mut_ptr(), room.len(), &raw mut found);
            answer(error, (!found.is_null()).then_some(entry.pw_gid))
        }
    })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The result of a call of the C library. Some systems say "not found" by one of these errors (getpwnam(3)).
fn answer<T>(error: libc::c_int, found: Option<T>) -> io::Result<Option<T>> {
    match error {
        0 | libc::ENOENT | libc::ESRCH => Ok(found),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Asks with more and more room for the strings of an entry: a group may have thousands of members.
fn with_room<T>(mut call: impl FnMut(&mut [libc::c_char]) -> io::Result<Option<T>>) -> io::Result<Option<T>> {
    let mut room = vec![0; 1024];
    loop {
        match call(&mut room) {
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
