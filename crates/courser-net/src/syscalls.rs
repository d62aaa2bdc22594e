//! The system calls of a worker, and the filter that lets nothing else through (seccomp(2)).
//!
//! Arguments are looked at where a call is rare: for one that is allowed whatever its arguments, the kernel remembers so and
//! does not run the filter (SECCOMP_ARCH_NATIVE, a bitmap since Linux 5.11).

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Operator,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
};

/// What a thread may ask of the kernel.
pub(crate) struct Filter {
    allowed: BpfProgram,
    fatal: BpfProgram,
}

impl Filter {
    /// The filter of a worker.
    ///
    /// A call that is not in the list fails with ENOSYS, as on a kernel that does not have it: what a library tries because
    /// it is new, it does in another way then. Those that only an intruder makes end the process.
    ///
    /// # Errors
    /// When the filter cannot be made for this kind of processor.
    pub(crate) fn of_worker() -> Result<Self, BackendError> {
        let unknown = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
        let allowed = SeccompFilter::new(allowed()?, unknown, SeccompAction::Allow, ARCH.try_into()?)?;
        let fatal = FATAL.iter().map(|&call| (call, Vec::new())).collect();
        let end = SeccompAction::KillProcess;
        let fatal = SeccompFilter::new(fatal, SeccompAction::Allow, end, ARCH.try_into()?)?;
        Ok(Self { allowed: allowed.try_into()?, fatal: fatal.try_into()? })
    }

    /// Holds the calling thread, and those that it will start, to it. It cannot be undone. Of two filters the stricter answer
    /// counts.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn enter(&self) -> Result<(), seccompiler::Error> {
        // The second before the first, which does not let it in.
        seccompiler::apply_filter(&self.fatal)?;
        seccompiler::apply_filter(&self.allowed)
    }
}

fn allowed() -> Result<BTreeMap<i64, Vec<Rule>>, BackendError> {
    let mut allowed: BTreeMap<_, _> = ALWAYS.iter().map(|&call| (call, Vec::new())).collect();
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX].into_iter();
    let sockets = families.map(|family| {
        Rule::new(vec![Condition::new(0, Length::Dword, Operator::Eq, family.cast_unsigned().into())?])
    });
    allowed.insert(libc::SYS_socket, sockets.collect::<Result<_, _>>()?);
    // Memory that can be executed is what an intruder's code needs; ours is loaded before.
    let executable: u64 = libc::PROT_EXEC.cast_unsigned().into();
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let not_executable = Condition::new(2, Length::Dword, Operator::MaskedEq(executable), 0)?;
        allowed.insert(call, vec![Rule::new(vec![not_executable])?]);
    }
    Ok(allowed)
}

/// What workers do, what the allocators under them do, and what a panic or the end of a thread needs.
const ALWAYS: &[i64] = &[
    // Connections and their ends.
    libc::SYS_accept4,
    libc::SYS_close,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    // Bytes. Sockets alone are open for reading, beside what wakes the thread.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_splice,
    libc::SYS_write,
    libc::SYS_writev,
    // Waiting and being woken. fcntl(2) and eventfd(2): what a library makes to wake itself.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_fcntl,
    libc::SYS_futex,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    // Time, randomness, processors.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getcpu,
    libc::SYS_getrandom,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    // Memory, for the allocators of Rust and of C. mmap(2) and mprotect(2) are above.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Who am I: for panics, and for libraries that look whether they have been forked.
    libc::SYS_getpid,
    libc::SYS_gettid,
    // Signals: handlers run on whatever thread is there; a panic that cannot be caught aborts.
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    // The end of a thread, and of the process.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_membarrier,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
];

/// Other programs, other processes, the kernel: no worker goes there, and no library under it.
const FATAL: &[i64] = &[
    libc::SYS_bpf,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_in_both_lists_or_twice_in_one() {
        let mut all: Vec<_> = ALWAYS.iter().chain(FATAL).copied().collect();
        all.extend([libc::SYS_socket, libc::SYS_mmap, libc::SYS_mprotect]);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
