//! Processes and their children, by `/proc`: who descends from whom, and the end of all of them.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait, waitpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How long a process may take to end when it is asked to: nobody's data is at stake.
const POLITE: Duration = Duration::from_secs(1);
/// After this, what is left cannot be killed: it hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// A process, as its line in `/proc/PID/stat` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    group: u32,
    /// It has ended, and waits for its parent to notice.
    is_dead: bool,
}

/// Ends every descendant of this process: first it asks, then it kills, until none is left.
///
/// This process has to be a subreaper, or those whose parents end first are lost.
pub fn end_all() {
    let own = std::process::id();
    end(|all| descendants(all, own), reap_all);
}

/// Ends what a keeper has left behind when it was killed: its process group, and whatever descends from that. They are
/// our children now.
pub(super) fn end_orphans(keeper: u32) {
    end(|all| orphans(all, keeper), || {});
}

/// Holds a process, its descendants and all their threads to these processors, and says whether any of them was
/// elsewhere: there are programs that bind their workers themselves.
pub(super) fn hold(root: u32, cpus: &[usize]) -> bool {
    let wanted = set(cpus);
    let is_beyond = |cpus: CpuSet| (0..CpuSet::MAX_CPU).any(|cpu| cpus.is_set(cpu) && !wanted.is_set(cpu));
    let mut family: Vec<u32> = descendants(&processes(), root).iter().map(|process| process.pid).collect();
    family.push(root);
    let threads: Vec<Pid> = family.into_iter().flat_map(threads).collect();
    // Where all are bound to some of these, they stay there.
    if !threads.iter().any(|thread| sched_getaffinity(Some(*thread)).is_ok_and(is_beyond)) {
        return false;
    }
    threads.into_iter().filter(|thread| sched_setaffinity(Some(*thread), &wanted).is_ok()).count() > 0
}

/// Binds each of the first `workers` children of a process to a processor of its own, in the order in which they were
/// started.
pub(super) fn spread(root: u32, workers: usize, cpus: &[usize]) {
    let mut children: Vec<u32> =
        processes().iter().filter(|one| one.parent == root && !one.is_dead).map(|one| one.pid).collect();
    children.sort_unstable();
    for (child, cpu) in children.into_iter().take(workers).zip(cpus.iter().cycle()) {
        for thread in threads(child) {
            // One that has ended meanwhile is no failure.
            let _ = sched_setaffinity(Some(thread), &set(&[*cpu]));
        }
    }
}

fn set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    set
}

/// Whether a process has not ended, noticed or not.
pub(super) fn is_running(pid: u32) -> bool {
    process(pid).is_some_and(|process| !process.is_dead)
}

/// The threads of a process; none of one that has ended.
fn threads(pid: u32) -> Vec<Pid> {
    let Ok(folder) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let number = |name: std::ffi::OsString| name.to_str()?.parse::<i32>().ok().and_then(Pid::from_raw);
    folder.filter_map(|entry| number(entry.ok()?.file_name())).collect()
}

/// Takes the exit statuses of children that have ended: gives them to `report`.
pub fn reap(mut report: impl FnMut(u32, &str)) {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        let how = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (_, Some(signal)) => format!("signal {signal}"),
            _ => "no reason given".to_owned(),
        };
        report(number(pid), &how);
    }
}

fn reap_all() {
    reap(|_, _| {});
}

fn end(members: impl Fn(&[Process]) -> Vec<Process>, reap: impl Fn()) {
    let begun = Instant::now();
    let mut asked = false;
    while begun.elapsed() < PATIENCE {
        reap();
        let left = members(&processes());
        left.iter().filter(|one| one.is_dead).for_each(bury);
        if left.is_empty() {
            return;
        }
        let signal = if begun.elapsed() < POLITE { Signal::TERM } else { Signal::KILL };
        if !asked || signal == Signal::KILL {
            // Somebody who has ended meanwhile is no failure.
            for pid in left.iter().filter_map(|one| known(one.pid)) {
                let _ = kill_process(pid, signal);
            }
            asked = true;
        }
        thread::sleep(PAUSE);
    }
}

/// Takes the exit status of a child that has ended; of somebody else's it does nothing.
fn bury(process: &Process) {
    if let Some(pid) = known(process.pid) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

fn descendants(all: &[Process], root: u32) -> Vec<Process> {
    let mut found: Vec<Process> = all.iter().filter(|one| one.parent == root).copied().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|one| one.pid) {
        found.extend(all.iter().filter(|one| one.parent == parent));
        next += 1;
    }
    found
}

fn orphans(all: &[Process], group: u32) -> Vec<Process> {
    let mut found: Vec<Process> = all.iter().filter(|one| one.group == group).copied().collect();
    let deeper: Vec<Process> = found.iter().flat_map(|one| descendants(all, one.pid)).collect();
    found.extend(deeper);
    found
}

/// All that there are.
fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(process).collect()
}

/// One of them; none when its parent has noticed its end.
fn process(pid: u32) -> Option<Process> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// proc_pid_stat(5): the name is in brackets and may have brackets and spaces of its own.
fn parse(pid: u32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let is_dead = matches!(fields.next()?, "Z" | "X");
    Some(Process { pid, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()?, is_dead })
}

fn known(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_the_parent() {
        let read = parse(7, "7 (a) Z 9 (b)) S 3 5 5 0 -1 4194560");
        assert_eq!(read, Some(Process { pid: 7, parent: 3, group: 5, is_dead: false }));
        assert_eq!(parse(7, "7 (a"), None);
    }

    #[test]
    fn a_family_is_found_however_deep_it_is() {
        let process = |pid, parent, group| Process { pid, parent, group, is_dead: false };
        let all = [process(2, 1, 2), process(5, 4, 9), process(3, 2, 2), process(4, 3, 4), process(8, 1, 8)];
        let pids = |found: Vec<Process>| found.iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!(pids(descendants(&all, 2)), [3, 4, 5]);
        // Of group 2, and one that has left it.
        assert_eq!(pids(orphans(&all, 8)), [8]);
        assert!(pids(orphans(&all, 2)).contains(&5));
    }
}
