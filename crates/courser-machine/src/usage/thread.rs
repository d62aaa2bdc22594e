//! Threads: what each ran, and how long it was ready and had to wait for a processor.

use std::fs;
use std::io;
use std::time::Duration;

use nix::time::ClockId;

use super::Times;
use super::process::Stat;

/// How often a thread stopped running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Because it had nothing to do.
    pub voluntary: u64,
    /// Because another thread was to run on its processor.
    pub involuntary: u64,
}

/// What one thread had used at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    /// The process that it belongs to.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name (at most 15 bytes).
    pub name: String,
    times: Times,
    run_queue_wait: Option<Duration>,
    switches: Switches,
    started: u64,
}

/// What one thread used between two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadUsage {
    /// The process that it belongs to.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name at the end.
    pub name: String,
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// How long it was ready to run and did not; `None` where the kernel does not say (CONFIG_SCHED_INFO).
    pub run_queue_wait: Option<Duration>,
    /// How often it stopped running.
    pub switches: Switches,
}

impl ThreadUsage {
    /// Processor time, user mode and kernel.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

impl ThreadSample {
    /// `None` when the thread has ended.
    fn of(pid: u32, tid: u32) -> Option<Self> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/task/{tid}/{file}"));
        let stat = Stat::parse(&read("stat").ok()?)?;
        let schedule = read("schedstat").ok().and_then(|text| parse_schedstat(&text));
        let ran = schedule.map_or(stat.user + stat.system, |(ran, _)| ran);
        Some(Self {
            pid,
            tid,
            times: Times { total: ran, user: stat.user, system: stat.system },
            run_queue_wait: schedule.map(|(_, waited)| waited),
            switches: parse_switches(&read("status").unwrap_or_default()),
            name: stat.name,
            started: stat.started,
        })
    }

    /// What the thread used since `earlier`; since its start when there is none.
    pub fn since(&self, earlier: Option<&Self>) -> ThreadUsage {
        let (user, system) = self.times.since(earlier.map(|e| e.times).unwrap_or_default()).split();
        let waited = earlier.and_then(|e| e.run_queue_wait).unwrap_or_default();
        let switched = earlier.map(|e| e.switches).unwrap_or_default();
        ThreadUsage {
            pid: self.pid,
            tid: self.tid,
            name: self.name.clone(),
            user,
            system,
            run_queue_wait: self.run_queue_wait.map(|now| now.saturating_sub(waited)),
            switches: Switches {
                voluntary: self.switches.voluntary.saturating_sub(switched.voluntary),
                involuntary: self.switches.involuntary.saturating_sub(switched.involuntary),
            },
        }
    }

    /// Whether both are of one thread, and not of two that had the same number one after the other.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.tid, self.started) == (other.tid, other.started)
    }
}

/// All threads of a process that are alive; none when it has ended.
pub(super) fn threads(pid: u32) -> Vec<ThreadSample> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let tids = tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    tids.filter_map(|tid| ThreadSample::of(pid, tid)).collect()
}

/// A thread of this process, to be sampled by itself or by any other.
#[derive(Clone, Copy, Debug)]
pub struct OwnThread {
    tid: u32,
    clock: ClockId,
}

impl OwnThread {
    /// The calling thread.
    pub fn current() -> Self {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        // The clock of a thread by its number: MAKE_THREAD_CPUCLOCK with CPUCLOCK_SCHED (linux/posix-timers_types.h).
        // pthread_getcpuclockid(3) makes the same number, for a pthread_t only.
        Self { tid: tid.unsigned_abs(), clock: ClockId::from_raw((!tid << 3) | 4 | 2) }
    }

    /// What it has used; its processor time is exact, also of a thread that is running.
    ///
    /// # Errors
    /// When it has ended.
    pub fn sample(&self) -> io::Result<ThreadSample> {
        let ended = || io::Error::new(io::ErrorKind::NotFound, format!("thread {} has ended", self.tid));
        let mut sample = ThreadSample::of(std::process::id(), self.tid).ok_or_else(ended)?;
        sample.times.total = self.clock.now().map_err(|_| ended())?.into();
        Ok(sample)
    }
}

/// `/proc/PID/task/TID/schedstat`: nanoseconds that it ran, nanoseconds that it waited, number of turns
/// (sched-stats.rst).
fn parse_schedstat(text: &str) -> Option<(Duration, Duration)> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().map(Duration::from_nanos));
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

fn parse_switches(status: &str) -> Switches {
    let of = |key| status.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok()).unwrap_or(0);
    Switches { voluntary: of("voluntary_ctxt_switches:"), involuntary: of("nonvoluntary_ctxt_switches:") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_and_waiting_are_told_apart() {
        let (ran, waited) = parse_schedstat("958071462 4698249 36\n").unwrap();
        assert_eq!((ran.as_nanos(), waited.as_nanos()), (958_071_462, 4_698_249));
        assert_eq!(parse_schedstat(""), None);
    }

    #[test]
    fn switches_by_kind() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(parse_switches(status), Switches { voluntary: 5, involuntary: 7 });
    }
}
