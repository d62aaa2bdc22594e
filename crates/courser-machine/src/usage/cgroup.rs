//! A cgroup: the kernel's own account of a service or container (cgroup-v2.rst).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Times, UsageError};

/// The folder of a cgroup.
#[derive(Clone, Debug)]
pub(super) struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    pub(super) fn new(folder: &Path) -> Result<Self, UsageError> {
        let cgroup = Self { folder: folder.to_owned() };
        cgroup.times().map(|_| cgroup)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn times(&self) -> Result<Times, UsageError> {
        let missing = || UsageError::NotACgroup { folder: self.folder.clone() };
        let path = self.folder.join("cpu.stat");
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => missing(),
            _ => UsageError::reading(&path, error),
        })?;
        parse_cpu_stat(&text).ok_or_else(missing)
    }

    /// Memory charged to it, in bytes: pages, page cache, and the kernel's for it, as socket buffers. `None` where the
    /// memory controller is off.
    pub(super) fn memory(&self) -> Option<u64> {
        fs::read_to_string(self.folder.join("memory.current")).ok()?.trim().parse().ok()
    }

    /// Its processes and those of the cgroups below it. Empty where only threads are in it.
    pub(super) fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        collect(&self.folder, &mut pids);
        pids
    }

    /// The CPUs that it may use, as a list of ranges; `None` where the controller of CPU sets is off.
    pub(super) fn cpus(&self) -> Option<String> {
        fs::read_to_string(self.folder.join("cpuset.cpus.effective")).ok()
    }
}

fn collect(folder: &Path, pids: &mut Vec<u32>) {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    pids.extend(processes.lines().filter_map(|line| line.parse::<u32>().ok()));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), pids);
        }
    }
}

fn parse_cpu_stat(text: &str) -> Option<Times> {
    let of = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok());
        value.map(Duration::from_micros)
    };
    Some(Times { total: of("usage_usec")?, user: of("user_usec")?, system: of("system_usec")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_sums() {
        let text = "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnice_usec 7\nnr_periods 0\n";
        let times = parse_cpu_stat(text).unwrap();
        assert_eq!(times.total, Duration::from_micros(1500));
        assert_eq!(times.split(), (Duration::from_micros(1000), Duration::from_micros(500)));
        assert_eq!(parse_cpu_stat("usage_usec 1\n"), None);
    }
}
