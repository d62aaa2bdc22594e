//! One process, and who belongs to whom.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::iter::Sum;
use std::ops::Add;
use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::Times;

/// Memory of a process, or of several added up, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Proportional set size: each shared page divided by the number of processes that share it.
    pub pss: u64,
    /// Resident set size: shared pages counted in every process.
    pub rss: u64,
}

impl Add for Memory {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { pss: self.pss + other.pss, rss: self.rss + other.rss }
    }
}

impl Sum for Memory {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// User and system time of one process since its start, all threads, those that ended included.
///
/// # Errors
/// When the process does not exist.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    Ok(ClockId::pid_cpu_clock_id(Pid::from_raw(pid))?.now()?.into())
}

/// Memory of one process, from `/proc/PID/smaps_rollup`.
///
/// # Errors
/// When the process does not exist or belongs to another user.
pub fn memory(pid: u32) -> io::Result<Memory> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(Memory { pss: kilobytes(&rollup, "Pss:")?, rss: kilobytes(&rollup, "Rss:")? })
}

/// As [`memory`]; of a process that has ended nothing is left, and `None` is one that may not be read.
pub(super) fn memory_or_none_left(pid: u32) -> Option<Memory> {
    match memory(pid) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        result => Some(result.unwrap_or_default()),
    }
}

/// The CPUs that a process may use, as a list of ranges (proc_pid_status(5)).
pub(super) fn allowed_cpus(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(|list| list.trim().to_owned())
}

/// When a process started, in ticks since the machine did: with the number it names one process for good. `None` when
/// it has ended.
pub(crate) fn started(pid: u32) -> Option<u64> {
    Stat::of_process(pid).filter(|stat| !stat.zombie).map(|stat| stat.started)
}

/// How many descriptors a process has open.
///
/// # Errors
/// When the process does not exist or belongs to another user.
pub fn descriptors(pid: u32) -> io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// A process and all its descendants that are alive, the process first.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn family(pid: u32) -> io::Result<Vec<u32>> {
    Ok(descendants(vec![pid], &everybody()?))
}

/// `roots` and all that descend from them, parents before their children.
pub(super) fn descendants(roots: Vec<u32>, everybody: &HashMap<u32, Stat>) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (&pid, stat) in everybody {
        children.entry(stat.parent).or_default().push(pid);
    }
    let mut family = roots;
    let mut next = 0;
    while let Some(member) = family.get(next) {
        let born = children.remove(member).unwrap_or_default();
        let new: Vec<u32> = born.into_iter().filter(|child| !family.contains(child)).collect();
        family.extend(new);
        next += 1;
    }
    family
}

/// All processes that we may see. Those that end while we look are left out.
pub(super) fn everybody() -> io::Result<HashMap<u32, Stat>> {
    let pids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(|pid| Some((pid, Stat::of_process(pid)?))).collect())
}

/// What `/proc/PID/stat`, and of a thread `/proc/PID/task/TID/stat`, tell (proc_pid_stat(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: String,
    /// It has ended and its parent has not waited for it yet.
    pub(super) zombie: bool,
    pub(super) parent: u32,
    pub(super) user: Duration,
    pub(super) system: Duration,
    /// Of children that ended and were waited for, and of theirs.
    pub(super) children: Times,
    /// When it started: tells it from an earlier one of the same number.
    pub(super) started: u64,
}

impl Stat {
    /// `None` when there is no such process.
    pub(super) fn of_process(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        // The second field, the name in parentheses, may itself contain spaces and parentheses.
        let (before, after) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let time = |index: usize| Some(ticks(number(index)?));
        let (user, system) = (time(13)?, time(14)?);
        Some(Self {
            name: before.split_once('(')?.1.to_owned(),
            zombie: *fields.first()? == "Z",
            parent: fields.get(1)?.parse().ok()?,
            user: time(11)?,
            system: time(12)?,
            children: Times { total: user + system, user, system },
            started: number(19)?,
        })
    }
}

/// Ticks of `/proc` (sysconf(3), _SC_CLK_TCK): 10 ms on every architecture of today.
fn ticks(count: u64) -> Duration {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u64::try_from(ticks).ok());
    let nanoseconds = 1_000_000_000 / per_second.filter(|ticks| *ticks > 0).unwrap_or(100);
    Duration::from_nanos(count.saturating_mul(nanoseconds))
}

fn kilobytes(text: &str, key: &str) -> io::Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no {key} in smaps_rollup")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "77 (a) b (c)) S 12 77 77 0 -1 4194560 1 2 3 4 150 50 7 3 20 0 4 0 9876 1 2";

    fn stat(parent: u32) -> Stat {
        Stat { parent, ..Stat::parse(STAT).unwrap() }
    }

    #[test]
    fn a_name_may_have_spaces_and_parentheses() {
        let stat = Stat::parse(STAT).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.started), ("a) b (c)", 12, 9876));
        assert_eq!((stat.user, stat.system), (Duration::from_millis(1500), Duration::from_millis(500)));
        assert_eq!(stat.children.total, Duration::from_millis(100));
    }

    #[test]
    fn half_a_line_is_no_process() {
        for end in 0..STAT.rfind("9876").unwrap() {
            assert_eq!(Stat::parse(&STAT[..end]), None);
        }
    }

    #[test]
    fn descendants_come_after_their_parents() {
        let everybody = HashMap::from([(1, stat(0)), (2, stat(1)), (3, stat(2)), (9, stat(8)), (8, stat(1))]);
        assert_eq!(descendants(vec![2], &everybody), [2, 3]);
        assert_eq!(descendants(vec![8, 2, 3], &everybody), [8, 2, 3, 9], "no one twice");
    }
}
