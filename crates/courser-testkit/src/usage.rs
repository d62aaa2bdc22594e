//! What a process has used, read from outside it: processor time, memory, descriptors; and how busy a core was.
//!
//! Processor time is the process's own clock (`clock_getcpuclockid(3)`), not the fields of `/proc/PID/stat`, which
//! count in ticks of 10 ms, nor the sum over `/proc/PID/task/*/schedstat`, which is exact to the nanosecond but
//! forgets threads that have ended: a server with a thread per connection would look nearly free.

use std::{collections::HashMap, fs, io, iter::Sum, ops::Add, time::Duration};

use nix::{time::ClockId, unistd::Pid};

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
/// When the process does not exist or belongs to another user.
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

/// Time that a core has been busy and that has passed on it, in ticks of `/proc/stat` (10 ms) since the machine's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    busy: u64,
    total: u64,
}

impl CoreTime {
    /// The share of the time since `earlier` in which the core did anything for anybody, 0 to 1; 0 if no time passed.
    #[must_use]
    pub fn busy_since(self, earlier: Self) -> f64 {
        let ticks = |now: u64, then: u64| u32::try_from(now.saturating_sub(then)).map_or(f64::MAX, f64::from);
        let total = ticks(self.total, earlier.total);
        if total > 0.0 { ticks(self.busy, earlier.busy) / total } else { 0.0 }
    }
}

/// Time of a core so far. Time stolen by the host of a virtual machine counts as busy.
///
/// # Errors
/// When there is no such core.
pub fn core_time(core: usize) -> io::Result<CoreTime> {
    let name = format!("cpu{core} ");
    let stat = fs::read_to_string("/proc/stat")?;
    let fields = stat.lines().find_map(|line| line.strip_prefix(&name));
    let fields = fields.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no core {core}")))?;
    Ok(parse_core_time(fields))
}

/// user nice system idle iowait irq softirq steal guest guest_nice (proc_stat(5)); guest time is part of user time.
fn parse_core_time(fields: &str) -> CoreTime {
    let ticks: Vec<u64> = fields.split_whitespace().take(8).flat_map(str::parse).collect();
    let total = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    CoreTime { busy: total - idle, total }
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
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (child, parent) in fs::read_dir("/proc")?.flatten().filter_map(|entry| parent_of(&entry)) {
        children.entry(parent).or_default().push(child);
    }
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(member) = family.get(next) {
        family.extend(children.remove(member).unwrap_or_default());
        next += 1;
    }
    Ok(family)
}

/// The process of an entry of `/proc` and its parent. Processes that end while we look are left out.
fn parent_of(entry: &fs::DirEntry) -> Option<(u32, u32)> {
    let pid = entry.file_name().to_str()?.parse().ok()?;
    let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
    // The second field, the name in parentheses, may itself contain spaces and parentheses.
    let after_name = stat.rsplit_once(')')?.1;
    Some((pid, after_name.split_whitespace().nth(1)?.parse().ok()?))
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

    #[test]
    fn idle_and_waiting_time_is_not_busy() {
        let earlier = parse_core_time("100 0 100 1000 50 0 0 0 0 0");
        let later = parse_core_time("110 1 102 1020 60 3 4 10 0 0");
        assert_eq!(later.busy_since(earlier), 0.5);
        assert_eq!(later.busy_since(later), 0.0);
    }
}
