//! What this process used in a stretch of time, and what was done in it.

use std::{
    fmt,
    time::{Duration, Instant},
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::{TimeVal, TimeValLike},
};

/// Parts of one core, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) user: f64,
    pub(crate) kernel: f64,
}

impl Share {
    pub(crate) fn total(self) -> f64 {
        self.user + self.kernel
    }

    /// What is more here than in a stretch in which nothing was done.
    pub(crate) fn beyond(self, idle: Self) -> Self {
        Self { user: self.user - idle.user, kernel: self.kernel - idle.kernel }
    }
}

/// A stretch of time that has begun.
pub(crate) struct CpuSpan {
    begun: Instant,
    user: Duration,
    kernel: Duration,
}

impl CpuSpan {
    pub(crate) fn begin() -> std::io::Result<Self> {
        let used = getrusage(UsageWho::RUSAGE_SELF)?;
        let (user, kernel) = (duration(used.user_time()), duration(used.system_time()));
        Ok(Self { begun: Instant::now(), user, kernel })
    }

    /// So far.
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub(crate) fn end(&self) -> std::io::Result<Share> {
        let (now, length) = (Self::begin()?, self.begun.elapsed());
        let part = |used: Duration| 100.0 * used.as_secs_f64() / length.as_secs_f64();
        let (user, kernel) = (now.user.saturating_sub(self.user), now.kernel.saturating_sub(self.kernel));
        Ok(Share { user: part(user), kernel: part(kernel) })
    }
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or_default())
}

/// One sample of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// What sharing used, without the pace.
    pub(crate) share: Share,
    /// What the stretch without sessions used.
    pub(crate) idle: Share,
    /// How long the stretch with sessions was.
    pub(crate) seconds: f64,
    /// Sessions made.
    pub(crate) made: u64,
    /// Datagrams for them that arrived.
    pub(crate) datagrams: u64,
    /// Sessions, or in the cases of the sender datagrams, that did not arrive.
    pub(crate) lost: u64,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { share, idle, made, datagrams, lost, .. } = self;
        write!(f, "user {:.2} %, kernel {:.2} % (idle {:.2} %)", share.user, share.kernel, idle.total())?;
        write!(f, "; {made} sessions, {datagrams} datagrams, {lost} lost")
    }
}
