//! Work that gives way to handshakes.

use std::panic::resume_unwind;
use std::thread;

use rustix::process::setpriority_process;

/// Does `work` on a thread, and those that it starts, which the workers come before. It may not start threads that outlive it.
///
/// # Panics
/// As `work`.
pub(crate) fn at_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            // Without, it is only less considerate. To the kernel a thread is a process here (setpriority(2), BUGS).
            let _ = setpriority_process(None, NICE);
            work()
        });
        working.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// A tenth of the weight of a worker (sched(7)): where there are only busy processors, a reload takes ten times as long.
const NICE: i32 = 10;

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn what_it_starts_has_it_too_and_nothing_else() {
        let priority = || getpriority_process(None).unwrap();
        let own = priority();
        let inner = at_low_priority(|| thread::scope(|scope| scope.spawn(priority).join().unwrap()));
        assert_eq!((inner, priority()), (own.max(NICE), own));
    }
}
