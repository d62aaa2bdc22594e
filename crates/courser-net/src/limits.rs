//! What the process may use: open descriptors and memory.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open descriptors to the hard one and returns what holds then.
pub fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Bytes of memory that this process may use: the machine's, or what its control groups allow (cgroup-v2.rst,
/// `memory.max`; v1, `memory.limit_in_bytes`) where that is less. `None` where the kernel does not say.
pub fn memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    [machine, crate::cpu::tightest_limit("memory.max"), v1_memory()].into_iter().flatten().min()
}

fn v1_memory() -> Option<u64> {
    let path = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `MemTotal` of /proc/meminfo, bytes (proc_meminfo(5)).
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(total("MemTotal:       24689104 kB\nMemFree: 1 kB\n"), Some(24_689_104 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(memory().is_some_and(|bytes| bytes > 1 << 26));
    }
}
