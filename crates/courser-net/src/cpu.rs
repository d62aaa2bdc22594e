//! CPUs: which this process may use, in what order, and how to stay on one.

use std::collections::BTreeMap;
use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that a process may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Cpus {
    /// Numbers of the CPUs in the affinity mask, one of each physical core first, then their SMT siblings.
    pub order: Vec<usize>,
    /// CPUs' worth of time that the cgroup's quota allows, when there is one.
    pub quota: Option<f64>,
}

impl Cpus {
    /// Reads the affinity mask, the topology and the cgroup quota (v2 `cpu.max`, or v1 `cpu.cfs_quota_us`).
    pub fn available() -> Self {
        let mask = affinity();
        Self { order: cores_first(&mask, core_of), quota: quota() }
    }

    /// Workers to start by default: one per CPU, at most the quota rounded up, at least one.
    pub fn workers(&self) -> usize {
        let quota = self.quota.map_or(usize::MAX, whole_cpus);
        self.order.len().min(quota).max(1)
    }
}

/// Pins the calling thread to `cpu`.
pub fn pin(cpu: usize) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// The CPUs that share a physical core with `cpu`, itself included: they slow each other down. Only itself where the
/// kernel does not report it.
pub fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = fs::read_to_string(path).ok().and_then(|text| parse_list(&text));
    list.unwrap_or_else(|| vec![cpu])
}

/// A list of CPUs as the kernel and taskset(1) write it: "0-3,8" (cpuset(7), List format). `None` when it is none, or
/// names a CPU beyond what a CPU set can hold.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&cpu| cpu < CpuSet::MAX_CPU);
    let mut cpus = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(number(first)?..=number(last)?);
    }
    Some(cpus)
}

fn affinity() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => vec![0],
    }
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to 1..=65536 just before")]
fn whole_cpus(quota: f64) -> usize {
    quota.ceil().clamp(1.0, 65_536.0) as usize
}

/// The physical core of `cpu`: (package, core).
fn core_of(cpu: usize) -> (usize, usize) {
    let read = |what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
        fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok())
    };
    (read("physical_package_id").unwrap_or(0), read("core_id").unwrap_or(cpu))
}

/// Orders CPUs so that every physical core comes once before any comes twice.
fn cores_first(mask: &[usize], core_of: impl Fn(usize) -> (usize, usize)) -> Vec<usize> {
    let mut seen = BTreeMap::new();
    let mut ranked: Vec<(usize, usize)> = Vec::with_capacity(mask.len());
    for &cpu in mask {
        let rank = seen.entry(core_of(cpu)).or_insert(0);
        ranked.push((*rank, cpu));
        *rank += 1;
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, cpu)| cpu).collect()
}

fn quota() -> Option<f64> {
    let v2 = own_cgroup().and_then(|path| tightest(&path, |dir| parse_cpu_max(&read(dir, "cpu.max")?)));
    v2.or_else(|| {
        let quota: f64 = read("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us")?.trim().parse().ok()?;
        let period: f64 = read("/sys/fs/cgroup/cpu", "cpu.cfs_period_us")?.trim().parse().ok()?;
        (quota > 0.0).then_some(quota / period)
    })
}

/// The smallest number in a file of this name in this process's control groups (v2), on the way up.
pub(crate) fn tightest_limit(file: &str) -> Option<u64> {
    tightest(&own_cgroup()?, |dir| read(dir, file)?.trim().parse().ok())
}

fn own_cgroup() -> Option<String> {
    let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
    cgroups.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

fn read(dir: &str, file: &str) -> Option<String> {
    fs::read_to_string(format!("{dir}/{file}")).ok()
}

/// A limit holds for a whole subtree: the smallest on the way up counts.
fn tightest<T: PartialOrd>(path: &str, limit_of: impl Fn(&str) -> Option<T>) -> Option<T> {
    let mut path = path.trim_end_matches('/');
    let mut least: Option<T> = None;
    loop {
        if let Some(limit) = limit_of(&format!("/sys/fs/cgroup{path}"))
            && least.as_ref().is_none_or(|least| limit < *least)
        {
            least = Some(limit);
        }
        match path.rfind('/') {
            Some(cut) => path = &path[..cut],
            None => return least,
        }
    }
}

/// `"max 100000"` or `"150000 100000"` (cgroup-v2.rst, "CPU Interface Files").
fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut fields = text.split_ascii_whitespace();
    let quota: f64 = fields.next()?.parse().ok()?;
    let period: f64 = fields.next()?.parse().ok()?;
    (period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_cores_come_before_their_siblings() {
        // Four CPUs on two cores, siblings numbered next to each other.
        assert_eq!(cores_first(&[0, 1, 2, 3], |cpu| (0, cpu / 2)), [0, 2, 1, 3]);
        // Two packages with the same core numbers are different cores; the mask is respected.
        assert_eq!(cores_first(&[4, 5, 6], |cpu| (cpu / 6, 0)), [4, 6, 5]);
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_list("0-2,8\n").unwrap(), [0, 1, 2, 8]);
        assert_eq!(parse_list("5").unwrap(), [5]);
        assert_eq!(parse_list("").unwrap(), [0; 0]);
        for wrong in ["a", "1-", "1,,x", "0-99999999999"] {
            assert_eq!(parse_list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn everyone_is_among_its_siblings() {
        for cpu in affinity() {
            assert!(siblings(cpu).contains(&cpu));
        }
        assert_eq!(siblings(usize::MAX), [usize::MAX]);
    }

    #[test]
    fn cpu_max() {
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
    }

    #[test]
    fn the_tightest_quota_on_the_way_up_counts() {
        let quota_of = |dir: &str| match dir {
            "/sys/fs/cgroup/a" => Some(1.5),
            "/sys/fs/cgroup/a/b" => Some(4.0),
            _ => None,
        };
        assert_eq!(tightest("/a/b", quota_of), Some(1.5));
        assert_eq!(tightest("/", quota_of), None);
    }

    #[test]
    fn workers_follow_mask_and_quota() {
        let cpus = |quota| Cpus { order: vec![0, 1, 2, 3], quota };
        assert_eq!(cpus(None).workers(), 4);
        assert_eq!(cpus(Some(1.5)).workers(), 2);
        assert_eq!(cpus(Some(0.1)).workers(), 1);
        assert_eq!(cpus(Some(9.0)).workers(), 4);
    }
}
