//! A server from outside: all its processes, or its cgroup, sampled at the ends of a window.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use courser_net::cpu;

use super::cgroup::Cgroup;
use super::process::{self, Memory, Stat};
use super::thread::{self, Switches, ThreadSample, ThreadUsage};
use super::{Times, UsageError};
use courser_net::timer;

/// How often reading is begun anew because a process ended meanwhile.
const ATTEMPTS: usize = 8;

/// What Linux shows of children's time comes in steps of this size for each process.
const TICK: Duration = Duration::from_millis(10);

/// A server whose use of processors and memory is followed. It remembers which processes it has seen: keep one for
/// all samples of a run.
#[derive(Debug)]
pub struct Server {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Processes(Processes),
    Cgroup(Cgroup),
}

impl Server {
    /// The process `pid` and all its descendants, also those that are born later or whose parent ends.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn from_pid(pid: u32) -> Result<Self, UsageError> {
        let alive = Stat::of_process(pid).filter(|stat| !stat.zombie);
        let started = alive.ok_or(UsageError::NoSuchProcess { pid })?.started;
        let processes =
            Processes { root: pid, started, seen: BTreeMap::new(), departed: Times::default(), lost: 0 };
        Ok(Self { source: Source::Processes(processes) })
    }

    /// The cgroup (version 2) in `folder` and all below it: a service of systemd, a container.
    ///
    /// # Errors
    /// When the folder is none of a cgroup.
    pub fn from_cgroup(folder: &Path) -> Result<Self, UsageError> {
        Ok(Self { source: Source::Cgroup(Cgroup::new(folder)?) })
    }

    /// The folder, of a server that is followed by its cgroup.
    pub fn cgroup(&self) -> Option<&Path> {
        match &self.source {
            Source::Processes(_) => None,
            Source::Cgroup(cgroup) => Some(cgroup.folder()),
        }
    }

    /// The CPUs that it may use, by its affinity mask or CPU set; `None` where that cannot be read.
    pub fn cpus(&self) -> Option<Vec<usize>> {
        let list = match &self.source {
            Source::Processes(processes) => process::allowed_cpus(processes.root),
            Source::Cgroup(cgroup) => cgroup.cpus(),
        };
        cpu::parse_list(&list?)
    }

    /// What it has used until now. It takes from a fraction of a millisecond to some, by the number of processes on
    /// the machine and of the server's threads; the processor times are read first, and close together.
    ///
    /// # Errors
    /// When the process of [`Self::from_pid`] has ended, or the cgroup has gone.
    pub fn sample(&mut self) -> Result<UsageSample, UsageError> {
        match &mut self.source {
            Source::Processes(processes) => processes.sample(),
            Source::Cgroup(cgroup) => sample_cgroup(cgroup),
        }
    }
}

/// When something was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// By CLOCK_MONOTONIC.
    pub monotonic: Duration,
    /// By the wall clock, since 1970.
    pub unix: Duration,
    /// How far the reading may have been from this moment, either way.
    pub error: Duration,
}

impl Moment {
    /// Does `read`, and says when: in the middle of it.
    fn of<T>(read: impl FnOnce() -> T) -> (Self, T) {
        let begin = timer::now();
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let value = read();
        let error = timer::now().saturating_sub(begin) / 2;
        (Self { monotonic: begin + error, unix: unix + error, error }, value)
    }
}

/// What a server had used at a moment.
#[derive(Clone, Debug)]
pub struct UsageSample {
    /// When its processor time was read.
    pub at: Moment,
    /// Its processes.
    pub pids: Vec<u32>,
    /// Its threads that were alive.
    pub threads: Vec<ThreadSample>,
    /// Its memory; `None` when it may not be read.
    pub held: Option<Held>,
    /// How many processes ended so far without anybody in the family waiting for them: what they used after the last
    /// sample that saw them is not known. Always 0 of a cgroup.
    pub lost: u32,
    times: Times,
}

/// Memory of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Of its processes: what they have mapped. The kernel's buffers for their sockets are not in it.
    Processes(Memory),
    /// What is charged to its cgroup, in bytes: page cache and socket buffers as well.
    Cgroup(u64),
}

impl Held {
    /// The figure to go by: the proportional set size, or the cgroup's charge.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Processes(memory) => memory.pss,
            Self::Cgroup(bytes) => bytes,
        }
    }
}

/// What a server used between two samples.
#[derive(Clone, Debug)]
pub struct Usage {
    /// How long it was between the samples.
    pub wall: Duration,
    /// How far `wall` may be wrong, either way.
    pub error: Duration,
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// How long its threads were ready to run and did not, together; `None` where the kernel does not say.
    pub run_queue_wait: Option<Duration>,
    /// How often they stopped running, together.
    pub switches: Switches,
    /// Those of its threads that were alive at the end, the busiest first. What ended threads used is in the sums of
    /// processor time only.
    pub threads: Vec<ThreadUsage>,
    /// Processes that ended unseen meanwhile, see [`UsageSample::lost`].
    pub lost: u32,
}

impl UsageSample {
    /// What was used from `earlier` until this sample.
    pub fn since(&self, earlier: &Self) -> Usage {
        let (user, system) = self.times.since(earlier.times).split();
        let threads = self.threads_since(earlier);
        let switched = |of: fn(&Switches) -> u64| threads.iter().map(|thread| of(&thread.switches)).sum();
        Usage {
            wall: self.at.monotonic.saturating_sub(earlier.at.monotonic),
            error: self.at.error + earlier.at.error,
            user,
            system,
            run_queue_wait: threads.iter().map(|thread| thread.run_queue_wait).sum(),
            switches: Switches {
                voluntary: switched(|switches| switches.voluntary),
                involuntary: switched(|switches| switches.involuntary),
            },
            threads,
            lost: self.lost.saturating_sub(earlier.lost),
        }
    }

    fn threads_since(&self, earlier: &Self) -> Vec<ThreadUsage> {
        let before: BTreeMap<u32, &ThreadSample> = earlier.threads.iter().map(|t| (t.tid, t)).collect();
        let then = |now: &ThreadSample| before.get(&now.tid).copied().filter(|then| now.is_same(then));
        let mut threads: Vec<_> = self.threads.iter().map(|now| now.since(then(now))).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.cpu()));
        threads
    }
}

fn sample_cgroup(cgroup: &Cgroup) -> Result<UsageSample, UsageError> {
    let (at, times) = Moment::of(|| cgroup.times());
    let pids = cgroup.pids();
    Ok(UsageSample {
        at,
        threads: pids.iter().flat_map(|&pid| thread::threads(pid)).collect(),
        held: cgroup.memory().map(Held::Cgroup),
        lost: 0,
        times: times?,
        pids,
    })
}

/// A process with its descendants, and what is known of those that are gone.
#[derive(Debug)]
struct Processes {
    root: u32,
    started: u64,
    /// As they were at the last sample.
    seen: BTreeMap<u32, Member>,
    /// What those used that ended without being waited for by one of the family.
    departed: Times,
    lost: u32,
}

/// A process of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    started: u64,
    own: Times,
    /// Of its children that it has waited for.
    children: Times,
}

impl Processes {
    fn sample(&mut self) -> Result<UsageSample, UsageError> {
        let (at, members) = self.read()?;
        self.settle(&members);
        let pids: Vec<u32> = members.keys().copied().collect();
        let times =
            members.values().map(|member| member.own + member.children).sum::<Times>() + self.departed;
        self.seen = members;
        Ok(UsageSample {
            at,
            threads: pids.iter().flat_map(|&pid| thread::threads(pid)).collect(),
            held: memory(&pids).map(Held::Processes),
            lost: self.lost,
            times,
            pids,
        })
    }

    /// Reads all members so that none is counted twice or not at all: when one ends in between, it begins anew.
    fn read(&self) -> Result<(Moment, BTreeMap<u32, Member>), UsageError> {
        for _ in 0..ATTEMPTS {
            let pids = self.members()?;
            let (at, members) =
                Moment::of(|| pids.iter().map(|&pid| Some((pid, Member::read(pid)?))).collect());
            if let Some(members) = members {
                return Ok((at, members));
            }
        }
        let path = PathBuf::from("/proc");
        let restless = format!("processes of {} come and go too fast: name its cgroup instead", self.root);
        Err(UsageError::Unreadable { path, error: std::io::Error::other(restless) })
    }

    /// Who belongs to the family now, parents before children.
    fn members(&self) -> Result<Vec<u32>, UsageError> {
        let everybody =
            process::everybody().map_err(|error| UsageError::reading(Path::new("/proc"), error))?;
        let alive = |pid, started| everybody.get(&pid).is_some_and(|stat| stat.started == started);
        if !alive(self.root, self.started) || everybody[&self.root].zombie {
            return Err(UsageError::Ended { pid: self.root });
        }
        // A child stays one of the family when its parent ends and init adopts it.
        let seen =
            self.seen.iter().filter(|(pid, member)| **pid != self.root && alive(**pid, member.started));
        let roots = std::iter::once(self.root).chain(seen.map(|(pid, _)| *pid)).collect();
        Ok(process::descendants(roots, &everybody))
    }

    /// Accounts for those that were there and are gone. Who was waited for is in the times of a parent's children; of
    /// who was not, what was last seen is kept.
    fn settle(&mut self, now: &BTreeMap<u32, Member>) {
        let same = |pid: &u32, then: &Member| now.get(pid).filter(|now| now.started == then.started).copied();
        let (stayed, gone): (Vec<_>, Vec<_>) =
            self.seen.iter().partition(|(pid, then)| same(pid, then).is_some());
        let inherited =
            stayed.iter().filter_map(|(pid, then)| Some(same(pid, then)?.children.since(then.children)));
        let inherited: Times = inherited.sum();
        let owed: Times = gone.iter().map(|(_, member)| member.own + member.children).sum();
        let rounding = TICK * u32::try_from(stayed.len() + gone.len()).unwrap_or(u32::MAX);
        if owed.total > inherited.total + rounding {
            self.departed = self.departed + owed.since(inherited);
            self.lost += u32::try_from(gone.len()).unwrap_or(u32::MAX);
        }
    }
}

impl Member {
    /// `None` when it has ended.
    fn read(pid: u32) -> Option<Self> {
        // In this order: a child that is waited for in between is then missing from its parent's sum, and when its own
        // turn comes it is gone, and all is read again.
        let stat = Stat::of_process(pid)?;
        let total = process::cpu_time(pid).ok()?;
        let own = Times { total, user: stat.user, system: stat.system };
        Some(Self { started: stat.started, own, children: stat.children })
    }
}

/// Of all `pids`, or nothing: a part of the sum would pass for the whole.
fn memory(pids: &[u32]) -> Option<Memory> {
    pids.iter().map(|&pid| process::memory_or_none_left(pid)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(milliseconds: u64) -> Times {
        let time = Duration::from_millis(milliseconds);
        Times { total: time, user: time, system: Duration::ZERO }
    }

    fn member(own: u64, children: u64) -> Member {
        Member { started: 1, own: times(own), children: times(children) }
    }

    fn family(seen: BTreeMap<u32, Member>) -> Processes {
        Processes { root: 1, started: 1, seen, departed: Times::default(), lost: 0 }
    }

    #[test]
    fn a_child_that_was_waited_for_is_in_its_parents_time() {
        let mut family = family(BTreeMap::from([(1, member(100, 0)), (2, member(500, 0))]));
        family.settle(&BTreeMap::from([(1, member(110, 560))]));
        assert_eq!((family.departed, family.lost), (Times::default(), 0));
    }

    #[test]
    fn of_a_child_that_nobody_waited_for_the_last_known_is_kept() {
        let mut family = family(BTreeMap::from([(1, member(100, 0)), (2, member(500, 20))]));
        family.settle(&BTreeMap::from([(1, member(110, 0))]));
        assert_eq!((family.departed, family.lost), (times(520), 1));
    }

    #[test]
    fn another_process_of_the_same_number_is_not_the_one_that_ended() {
        let mut family = family(BTreeMap::from([(1, member(100, 0)), (2, member(500, 0))]));
        let other = Member { started: 2, ..member(5, 0) };
        family.settle(&BTreeMap::from([(1, member(110, 0)), (2, other)]));
        assert_eq!((family.departed, family.lost), (times(500), 1));
    }
}
