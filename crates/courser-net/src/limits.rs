//! What the process may use and what it gives up: open descriptors, memory, core files, swap, what it may become.

use std::fs;
use std::io;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Raises the soft limit of open descriptors to the hard one and returns what holds then.
pub fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Has the kernel give this process pages of the ordinary size alone (PR_SET_THP_DISABLE(2const)). An allocator's heap that
/// was full for a moment and is sparse again stays whole where its pages are of 2 MiB.
pub fn use_small_pages() {
    // Without it the process takes more memory, and works.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Bytes of memory that this process may use: the machine's, or what its control groups allow (cgroup-v2.rst,
/// `memory.max`; v1, `memory.limit_in_bytes`) where that is less. `None` where the kernel has no limit or does not report it.
pub fn memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    [machine, crate::cpu::tightest_limit("memory.max"), v1_memory()].into_iter().flatten().min()
}

fn v1_memory() -> Option<u64> {
    let path = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `MemTotal` of /proc/meminfo, bytes (proc_meminfo(5)).
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Allows no core file, and no debugger or reader of memory but root (PR_SET_DUMPABLE(2const), getrlimit(2)). The first
/// also holds for core files that are piped to a program, which a limit does not prevent.
///
/// # Errors
/// When the system refuses.
pub fn forbid_core_dumps() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// Makes the process dumpable again, as the kernel has it until a process changes its user (core(5)).
///
/// # Errors
/// When the system refuses.
pub fn allow_core_dumps() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}

/// From now on no program that this process executes has more rights than itself, by no bit of its file
/// (PR_SET_NO_NEW_PRIVS(2const)). Threads that are started later inherit it; call it before there is any.
///
/// # Errors
/// When the system refuses.
pub fn forbid_new_privileges() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Keeps all memory of this process, of now and later, out of swap (mlockall(2)). Pages are locked as they are first touched,
/// so that the memory that was reserved and not used costs nothing.
///
/// `Ok(false)`: nothing was locked, since the limit of locked memory is finite: beyond it no memory could be had at all. The
/// right to exceed it (CAP_IPC_LOCK) is not enough: it goes with the user.
///
/// # Errors
/// When the system refuses.
pub fn lock_memory() -> io::Result<bool> {
    if getrlimit(Resource::Memlock).maximum.is_some() {
        return Ok(false);
    }
    setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None })?;
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(total("MemTotal:       24689104 kB\nMemFree: 1 kB\n"), Some(24_689_104 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(memory().is_some_and(|bytes| bytes > 1 << 26));
    }
}
