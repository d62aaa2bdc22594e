//! A control group that holds processes to a share of the processors' time, and what the kernel counts of such a group.
//!
//! The only part of this crate that changes anything: it makes a folder below the place of this process in the
//! hierarchy of control groups (version 1 or 2, whichever has the processor), and removes it. What a process that was
//! killed left behind is removed by the next one.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::usage::{family, started};

/// Names of our groups begin with this; the number and the start of the process that made it follow.
const PREFIX: &str = "courser-bench-";

/// The kernel refuses quotas below a millisecond (Documentation/scheduler/sched-bwc.rst).
const LEAST_QUOTA: Duration = Duration::from_millis(1);

/// The shortest period whose distortion is small (METHODOLOGY.md, "A server held to a share of its core").
const PERIOD: Duration = Duration::from_millis(5);

/// The kernel refuses periods above a second.
const LONGEST_PERIOD: Duration = Duration::from_secs(1);

/// How long a group may take to become empty once its processes have ended.
const PATIENCE: Duration = Duration::from_millis(200);

/// Processor time that processes together may use, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLimit {
    /// So much,
    pub quota: Duration,
    /// in each of these.
    pub period: Duration,
}

impl CpuLimit {
    /// The limit for this many cores, of which one is 1.0: in periods of 5 ms, or longer where the kernel asks for it.
    pub fn of_cores(cores: f64) -> Self {
        let period = PERIOD.max(LEAST_QUOTA.div_f64(cores.max(1e-3))).min(LONGEST_PERIOD);
        Self { quota: period.mul_f64(cores).max(LEAST_QUOTA), period }
    }

    /// Cores that it comes to: 0.5 is half of one.
    pub fn cores(self) -> f64 {
        self.quota.as_secs_f64() / self.period.as_secs_f64()
    }
}

/// What the kernel counted of a limit since the group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Those of them in which it used its quota up, and waited.
    pub throttled_periods: u64,
    /// How long its processors' queues waited, together.
    pub throttled: Duration,
}

impl Throttling {
    /// What was counted after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled_periods: self.throttled_periods.saturating_sub(earlier.throttled_periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
        }
    }
}

/// A group that has a limit, wherever it came from: ours, a service's, a container's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedGroup {
    folder: PathBuf,
    version: Version,
}

impl LimitedGroup {
    /// The nearest group with a limit that a process is in; `None` where it has none, or nothing can be read.
    pub fn of_process(pid: u32) -> Option<Self> {
        let (hierarchy, own) = hierarchies(pid)
            .into_iter()
            .find_map(|hierarchy| hierarchy.own_folder().map(|folder| (hierarchy, folder)))?;
        let (root, version) = (hierarchy.mount, hierarchy.version);
        own.ancestors()
            .take_while(|folder| folder.starts_with(&root))
            .map(|folder| Self { folder: folder.to_owned(), version })
            .find(|group| group.limit().is_some())
    }

    /// Its limit; `None` once it has been lifted.
    pub fn limit(&self) -> Option<CpuLimit> {
        let read = |name| fs::read_to_string(self.folder.join(name)).ok();
        let (quota, period) = match self.version {
            Version::One => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
            Version::Two => {
                let text = read("cpu.max")?;
                let (quota, period) = text.split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
        };
        // No limit is -1 in version 1, `max` in version 2.
        let time = |text: &str| text.trim().parse().ok().map(Duration::from_micros);
        Some(CpuLimit { quota: time(&quota)?, period: time(&period)? })
    }

    /// What the kernel counted so far; `None` where it does not count.
    pub fn throttling(&self) -> Option<Throttling> {
        parse_throttling(&fs::read_to_string(self.folder.join("cpu.stat")).ok()?)
    }
}

/// A group of ours, with a limit. Dropping it removes it; its processes have to have ended by then.
#[derive(Debug)]
pub struct LimitGroup {
    group: LimitedGroup,
    limit: CpuLimit,
}

impl LimitGroup {
    /// Makes a group with this limit and no process, after removing those that processes left behind which are gone.
    ///
    /// # Errors
    /// What is missing, in a sentence.
    pub fn new(limit: CpuLimit) -> Result<Self, LimitError> {
        let places = places();
        if places.is_empty() {
            return Err(LimitError::NoController);
        }
        places.iter().for_each(|(folder, _)| remove_stale(folder));
        let mut refused = None;
        for (parent, version) in places {
            match Self::below(&parent, version, limit) {
                Ok(group) => return Ok(group),
                Err(error) => refused = refused.or(Some(LimitError::Refused { folder: parent, error })),
            }
        }
        Err(refused.unwrap_or(LimitError::NoController))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.group.folder
    }

    /// Holds a process and all its descendants to the limit, those to come included.
    ///
    /// # Errors
    /// When one of them cannot be moved.
    pub fn hold(&self, root: u32) -> io::Result<()> {
        let procs = self.folder().join("cgroup.procs");
        loop {
            let held = fs::read_to_string(&procs)?;
            let held: Vec<u32> = held.lines().filter_map(|line| line.parse().ok()).collect();
            let left: Vec<u32> = family(root)?.into_iter().filter(|pid| !held.contains(pid)).collect();
            // Zombies stay where they were, and use nothing any more.
            if left.iter().all(|pid| started(*pid).is_none()) {
                return Ok(());
            }
            for pid in left {
                match fs::write(&procs, pid.to_string()) {
                    Err(why) if started(pid).is_some() => return Err(why),
                    _ => {}
                }
            }
        }
    }

    /// Its limit.
    pub fn limit(&self) -> CpuLimit {
        self.limit
    }

    fn below(parent: &Path, version: Version, limit: CpuLimit) -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);

        if version == Version::Two && !names(parent, "cgroup.subtree_control").any(|name| name == "cpu") {
            fs::write(parent.join("cgroup.subtree_control"), "+cpu")?;
        }
        let pid = std::process::id();
        let started = started(pid).unwrap_or_default();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{PREFIX}{pid}-{started}-{number}"));
        fs::create_dir(&folder)?;
        // From here on it is removed when anything is refused.
        let group = Self { group: LimitedGroup { folder, version }, limit };
        let write = |name, text: String| fs::write(group.folder().join(name), text);
        let (quota, period) = (limit.quota.as_micros(), limit.period.as_micros());
        match version {
            Version::One => {
                write("cpu.cfs_period_us", period.to_string())?;
                write("cpu.cfs_quota_us", quota.to_string())?;
            }
            Version::Two => write("cpu.max", format!("{quota} {period}"))?,
        }
        Ok(group)
    }
}

impl Drop for LimitGroup {
    fn drop(&mut self) {
        const PAUSE: Duration = Duration::from_millis(5);

        // A process that has just ended is in its group for a moment more. What cannot be removed now is by the next run.
        let mut left = PATIENCE;
        while fs::remove_dir(self.folder()).is_err_and(|why| why.kind() == io::ErrorKind::ResourceBusy)
            && !left.is_zero()
        {
            thread::sleep(PAUSE);
            left = left.saturating_sub(PAUSE);
        }
    }
}

/// Why processes cannot be held to a share of the processors' time.
#[derive(Debug)]
pub enum LimitError {
    /// No hierarchy of control groups with the processor's controller is mounted.
    NoController,
    /// No group can be made, or its limit not be set.
    Refused {
        /// Below which one.
        folder: PathBuf,
        /// How it was refused.
        error: io::Error,
    },
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoController => f.write_str(
                "no control groups with the cpu controller are mounted: `mount -t cgroup2 none /sys/fs/cgroup`, and a \
                 kernel with CONFIG_CFS_BANDWIDTH",
            ),
            Self::Refused { folder, error } if error.kind() == io::ErrorKind::PermissionDenied => write!(
                f,
                "not permitted to make a control group in {}: run as root, or as a service with Delegate=cpu",
                folder.display()
            ),
            Self::Refused { folder, error } => {
                write!(f, "cannot make a control group with a limit in {}: {error}", folder.display())
            }
        }
    }
}

impl std::error::Error for LimitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { error, .. } => Some(error),
            Self::NoController => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A mounted hierarchy that may have the processor's controller, and where a process is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    mount: PathBuf,
    version: Version,
    /// Below the mount; empty for its root.
    path: PathBuf,
}

impl Hierarchy {
    /// The folder of the process; `None` where a container does not show it.
    fn own_folder(&self) -> Option<PathBuf> {
        let folder = self.mount.join(&self.path);
        let file = if self.version == Version::One { "cpu.cfs_quota_us" } else { "cgroup.controllers" };
        folder.join(file).exists().then_some(folder)
    }
}

/// Where a group can be made: our own place first, then the root, which a container shows as its own.
fn places() -> Vec<(PathBuf, Version)> {
    let mut places: Vec<(PathBuf, Version)> = Vec::new();
    for hierarchy in hierarchies(std::process::id()) {
        let (root, version) = (hierarchy.mount.clone(), hierarchy.version);
        for folder in hierarchy.own_folder().into_iter().chain([root]) {
            let has_controller = match version {
                Version::One => folder.join("cpu.cfs_quota_us").exists(),
                Version::Two => names(&folder, "cgroup.controllers").any(|name| name == "cpu"),
            };
            if has_controller && !places.iter().any(|(known, _)| *known == folder) {
                places.push((folder, version));
            }
        }
    }
    places
}

/// That of version 1 first: where both are mounted, the processor's controller is there.
fn hierarchies(pid: u32) -> Vec<Hierarchy> {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let (mounts, groups) = (read("/proc/self/mounts".into()), read(format!("/proc/{pid}/cgroup")));
    parse_hierarchies(&mounts, &groups)
}

fn parse_hierarchies(mounts: &str, groups: &str) -> Vec<Hierarchy> {
    let own = |version: Version| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_it = match version {
                Version::One => controllers.split(',').any(|name| name == "cpu"),
                Version::Two => controllers.is_empty(),
            };
            is_it.then(|| PathBuf::from(path.trim_start_matches('/')))
        })
    };
    let one = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let (mount, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let version = match kind {
            "cgroup" if options.split(',').any(|option| option == "cpu") => Version::One,
            "cgroup2" => Version::Two,
            _ => return None,
        };
        Some(Hierarchy { mount: mount.into(), version, path: own(version).unwrap_or_default() })
    };
    let mut found: Vec<Hierarchy> = mounts.lines().filter_map(one).collect();
    found.sort_by_key(|hierarchy| hierarchy.version == Version::Two);
    found
}

fn names(folder: &Path, file: &str) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// Removes the groups of processes of ours that are gone. One that has processes yet stays: its keeper is ending them.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(maker).is_some_and(|(pid, start)| started(pid) != Some(start)) {
            // Another run that starts now may be faster.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Number and start of the process that made a group of this name.
fn maker(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Version 1 counts nanoseconds, version 2 microseconds.
fn parse_throttling(text: &str) -> Option<Throttling> {
    let of = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let throttled = of("throttled_usec")
        .map(Duration::from_micros)
        .or_else(|| of("throttled_time").map(Duration::from_nanos))?;
    Some(Throttling { periods: of("nr_periods")?, throttled_periods: of("nr_throttled")?, throttled })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_limit_is_one_that_the_kernel_takes() {
        let half = CpuLimit::of_cores(0.5);
        assert_eq!((half.quota, half.period), (MS * 5 / 2, 5 * MS));
        let tenth = CpuLimit::of_cores(0.1);
        assert_eq!((tenth.quota, tenth.period), (MS, 10 * MS));
        assert!((CpuLimit::of_cores(1.5).cores() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn the_hierarchy_of_the_processor_is_found_in_both_versions() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n\
                      cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n";
        let groups = "3:cpuset:/\n2:cpu,cpuacct:/system.slice/a:b\n0::/elsewhere\n";
        let found = parse_hierarchies(mounts, groups);
        let expected = [
            ("/sys/fs/cgroup/cpu,cpuacct", Version::One, "system.slice/a:b"),
            ("/sys/fs/cgroup/unified", Version::Two, "elsewhere"),
        ];
        assert_eq!(
            found,
            expected.map(|(mount, version, path)| Hierarchy {
                mount: mount.into(),
                version,
                path: path.into()
            })
        );
    }

    #[test]
    fn what_was_throttled_is_read_in_both_versions() {
        let both = [
            "nr_periods 40\nnr_throttled 30\nthrottled_time 75000000\nnr_bursts 0\n",
            "usage_usec 9\nnr_periods 40\nnr_throttled 30\nthrottled_usec 75000\n",
        ];
        for text in both {
            let read = Throttling { periods: 40, throttled_periods: 30, throttled: 75 * MS };
            assert_eq!(parse_throttling(text), Some(read), "{text}");
        }
        assert_eq!(parse_throttling("usage_usec 9\n"), None);
    }

    #[test]
    fn only_the_groups_of_processes_that_are_gone_are_removed() {
        let parent = courser_testkit::Folder::new();
        let pid = std::process::id();
        let names = [
            format!("{PREFIX}{pid}-{}-0", started(pid).unwrap()),
            format!("{PREFIX}{pid}-1-0"),
            format!("{PREFIX}mine"),
        ];
        names.iter().for_each(|name| fs::create_dir(parent.path().join(name)).unwrap());
        remove_stale(parent.path());
        let left = names.map(|name| parent.path().join(name).exists());
        assert_eq!(left, [true, false, true]);
    }
}
