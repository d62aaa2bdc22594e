//! A timer as precise as the kernel's (timerfd_create(2)): the runtime's own rounds up to whole milliseconds, twenty
//! times the schedule error that a load generator may have.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::stream::{Watched, register};

/// Time since the machine was started, without its sleep: CLOCK_MONOTONIC, the clock of [`Timer`].
pub fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default() // it is never negative
}

/// Waits for moments of the monotonic clock.
///
/// A moment is a reading of CLOCK_MONOTONIC (clock_gettime(2)): the time since about the machine's start. The caller
/// reads the clock by [`now`]; [`std::time::Instant`] does not define what it reads.
///
/// It wakes when the runtime next asks the kernel for events. A runtime with other tasks to run does so only after a
/// number of them (`event_interval` of tokio's builder, 61 by default): lower it where lateness matters.
#[derive(Debug)]
pub struct Timer {
    // Dropped before `fd`: see `register`.
    queue: AsyncFd<Watched>,
    fd: OwnedFd,
    /// The moment that the kernel's timer is set to and that was not reported yet.
    armed: Option<Duration>,
}

impl Timer {
    /// A timer in the event queue of the current thread's runtime, which has to have I/O enabled.
    ///
    /// # Errors
    /// When descriptors have run out.
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { queue: register(&fd, Interest::READABLE)?, fd, armed: None })
    }

    /// Waits until the monotonic clock shows `moment`. One that has passed costs three system calls all the same: a
    /// caller with a clock at hand asks that first. Dropping the future is harmless.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn until(&mut self, moment: Duration) -> io::Result<()> {
        poll_fn(|cx| self.poll_until(cx, moment)).await
    }

    /// As [`Self::until`]. A different `moment` than in the call before replaces it.
    pub fn poll_until(&mut self, cx: &mut Context<'_>, moment: Duration) -> Poll<io::Result<()>> {
        if self.armed != Some(moment) {
            self.arm(moment)?;
        }
        loop {
            let mut ready = ready!(self.queue.poll_read_ready(cx))?;
            // The readiness may be that of an earlier moment whose wait was given up.
            let expired = rustix::io::read(&self.fd, &mut [0; 8]);
            ready.clear_ready();
            if expired != Err(Errno::AGAIN) {
                self.armed = None;
                return Poll::Ready(expired.map(drop).map_err(io::Error::from));
            }
        }
    }

    fn arm(&mut self, moment: Duration) -> io::Result<()> {
        // Zero would switch the timer off.
        let moment_or_start = moment.max(Duration::from_nanos(1));
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec::try_from(moment_or_start).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "the moment is beyond the clock's range")
        })?;
        timerfd_settime(
            &self.fd,
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec { it_interval: never, it_value: value },
        )?;
        self.armed = Some(moment);
        Ok(())
    }
}
