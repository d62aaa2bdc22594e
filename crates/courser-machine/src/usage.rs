//! What processes, threads and cores have used, read from outside them: processor time, waiting for a processor,
//! memory, context switches. It reads `/proc`, cgroup folders and clocks, and changes nothing.
//!
//! How exact it is:
//!
//! * The total of a process is its own clock (clock_getcpuclockid(3)): nanoseconds, threads that ended included. Sums
//!   over `/proc/PID/task/*/schedstat` forget those, and a server with a thread per connection would look nearly free.
//! * How much of that was user mode and how much the kernel comes from `/proc/PID/stat`. Most kernels sample it at
//!   every tick of the scheduler (1 to 10 ms) and it is shown in steps of 10 ms: good to about a percent over ten
//!   seconds of work, worthless over a tenth of one.
//! * Children that ended count once their parent has waited for them, in steps of 10 ms. What is known of a child
//!   that nobody in the family waited for is kept, and the sample says how many there were.
//! * A cgroup's figures are the kernel's own sums, to the microsecond, whoever came and went.

mod cgroup;
mod cores;
mod process;
mod server;
mod thread;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use cores::{CoreShare, CoreTime, Cores, core_time};
pub use process::{Memory, cpu_time, descriptors, family, memory};
pub use server::{Held, Moment, Server, Usage, UsageSample};
pub use thread::{OwnThread, Switches, ThreadSample, ThreadUsage};

pub(crate) use process::started;

/// Why usage cannot be read.
#[derive(Debug)]
pub enum UsageError {
    /// There is no process of this number, or `/proc` hides it from us.
    NoSuchProcess {
        /// Its number.
        pid: u32,
    },
    /// The process was there at first and has ended.
    Ended {
        /// Its number.
        pid: u32,
    },
    /// The folder is none of a cgroup (version 2) whose processor time is accounted.
    NotACgroup {
        /// The folder.
        folder: PathBuf,
    },
    /// Reading is not permitted.
    NotPermitted {
        /// What was to be read.
        path: PathBuf,
    },
    /// Reading failed otherwise, or what was read makes no sense.
    Unreadable {
        /// What was to be read.
        path: PathBuf,
        /// How it failed.
        error: io::Error,
    },
}

impl UsageError {
    fn reading(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted { path },
            _ => Self::Unreadable { path, error },
        }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchProcess { pid } => write!(
                f,
                "there is no process {pid} here: it has to run on this machine, in this container, and be visible \
                 (a /proc mounted with hidepid shows other users' processes to root alone)"
            ),
            Self::Ended { pid } => write!(f, "process {pid} has ended while it was measured"),
            Self::NotACgroup { folder } => write!(
                f,
                "{} is no folder of a cgroup: name one below /sys/fs/cgroup that has cpu.stat with usage_usec \
                 (cgroup version 2), or a process",
                folder.display()
            ),
            Self::NotPermitted { path } => {
                write!(f, "not permitted to read {}: run as root or as the server's user", path.display())
            }
            Self::Unreadable { path, error } => write!(f, "cannot read {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for UsageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Processor time: how much, and by another measure that is coarser where it was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    total: Duration,
    user: Duration,
    system: Duration,
}

impl Times {
    fn since(self, earlier: Self) -> Self {
        Self {
            total: self.total.saturating_sub(earlier.total),
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    /// The total, divided into user mode and kernel as the coarse figures are. Without any, less than one of their
    /// steps was spent, and all of it counts as user mode.
    fn split(self) -> (Duration, Duration) {
        let (user, system) = (self.user.as_secs_f64(), self.system.as_secs_f64());
        let system =
            if user + system > 0.0 { self.total.mul_f64(system / (user + system)) } else { Duration::ZERO };
        (self.total.saturating_sub(system), system)
    }
}

impl std::ops::Add for Times {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            user: self.user + other.user,
            system: self.system + other.system,
        }
    }
}

impl std::iter::Sum for Times {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), std::ops::Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_exact_total_is_split_as_the_ticks_are() {
        let times = Times { total: 98 * MS, user: 30 * MS, system: 60 * MS };
        let (user, system) = times.split();
        assert_eq!(user + system, times.total);
        assert!(system > 65 * MS && system < 66 * MS, "{system:?}");
    }

    #[test]
    fn less_than_a_tick_is_user_time() {
        assert_eq!(Times { total: 3 * MS, ..Times::default() }.split(), (3 * MS, Duration::ZERO));
    }

    #[test]
    fn advice_goes_with_a_refusal() {
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = UsageError::reading(Path::new("/proc/1/smaps_rollup"), refused);
        assert_eq!(
            error.to_string(),
            "not permitted to read /proc/1/smaps_rollup: run as root or as the server's user"
        );
    }
}
