//! How busy cores were, with whatever: `/proc/stat`.

use std::collections::BTreeMap;
use std::fs;
use std::io;

/// Time of a core since the machine's start, in ticks of `/proc/stat` (10 ms), by what it was spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    user: u64,
    system: u64,
    interrupts: u64,
    soft_interrupts: u64,
    stolen: u64,
    idle: u64,
}

/// What a core spent its time on between two moments, as shares from 0 to 1. Over less than a second they are rough:
/// a tick is 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreShare {
    /// Anything but idleness, for anybody: the sum of the others.
    pub busy: f64,
    /// Processes in user mode.
    pub user: f64,
    /// Processes in the kernel.
    pub system: f64,
    /// Interrupts of devices.
    pub interrupts: f64,
    /// Softirqs: most of the receiving side of the network, of whichever process.
    pub soft_interrupts: f64,
    /// What the host of a virtual machine gave to others while this one wanted to run.
    pub stolen: f64,
}

impl CoreTime {
    /// The shares of the time since `earlier`; all 0 if no time passed.
    #[must_use]
    pub fn since(self, earlier: Self) -> CoreShare {
        let passed = |of: fn(&Self) -> u64| of(&self).saturating_sub(of(&earlier));
        let total = as_f64(passed(Self::total)).max(1.0);
        let share = |of: fn(&Self) -> u64| as_f64(passed(of)) / total;
        CoreShare {
            busy: as_f64(passed(Self::total).saturating_sub(passed(|core| core.idle))) / total,
            user: share(|core| core.user),
            system: share(|core| core.system),
            interrupts: share(|core| core.interrupts),
            soft_interrupts: share(|core| core.soft_interrupts),
            stolen: share(|core| core.stolen),
        }
    }

    fn total(&self) -> u64 {
        self.user + self.system + self.interrupts + self.soft_interrupts + self.stolen + self.idle
    }
}

/// Time of a core so far. Time stolen by the host of a virtual machine counts as busy.
///
/// # Errors
/// When there is no such core.
pub fn core_time(core: usize) -> io::Result<CoreTime> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no core {core}"));
    Cores::read()?.cores.get(&core).copied().ok_or_else(missing)
}

/// Time of all cores so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    cores: BTreeMap<usize, CoreTime>,
}

impl Cores {
    /// Reads `/proc/stat`. Cores that are switched off are left out.
    ///
    /// # Errors
    /// When there is no `/proc`.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string("/proc/stat")?))
    }

    /// What each core, by its number, did since `earlier`. One that was not there then is left out.
    pub fn since(&self, earlier: &Self) -> BTreeMap<usize, CoreShare> {
        let both =
            self.cores.iter().filter_map(|(core, now)| Some((*core, now.since(*earlier.cores.get(core)?))));
        both.collect()
    }

    fn parse(stat: &str) -> Self {
        let core = |line: &str| {
            let (number, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
            Some((number.parse().ok()?, parse_core_time(fields)))
        };
        Self { cores: stat.lines().filter_map(core).collect() }
    }
}

/// user nice system idle iowait irq softirq steal guest guest_nice (proc_stat(5)); guest time is part of user time.
fn parse_core_time(fields: &str) -> CoreTime {
    let ticks: Vec<u64> = fields.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    CoreTime {
        user: at(0) + at(1),
        system: at(2),
        interrupts: at(5),
        soft_interrupts: at(6),
        stolen: at(7),
        idle: at(3) + at(4),
    }
}

fn as_f64(ticks: u64) -> f64 {
    ticks as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_time_is_not_busy() {
        let earlier = parse_core_time("100 0 100 1000 50 0 0 0 0 0");
        let later = parse_core_time("110 1 102 1020 60 3 4 10 0 0");
        let share = later.since(earlier);
        assert_eq!(share.busy, 0.5);
        assert_eq!((share.user, share.system), (11.0 / 60.0, 2.0 / 60.0));
        assert_eq!(
            (share.interrupts, share.soft_interrupts, share.stolen),
            (3.0 / 60.0, 4.0 / 60.0, 10.0 / 60.0)
        );
        assert_eq!(later.since(later).busy, 0.0);
    }

    #[test]
    fn cores_are_told_from_their_sum_and_from_other_lines() {
        let then =
            Cores::parse("cpu  9 0 0 9 0 0 0 0 0 0\ncpu0 5 0 0 5 0 0 0 0 0 0\ncpu3 4 0 0 4\nintr 1 2\n");
        let now = Cores::parse("cpu0 6 0 0 8 0 0 0 0 0 0\ncpu3 14 0 0 4\ncpu7 1 0 0 1\nctxt 5\n");
        let since = now.since(&then);
        assert_eq!(since.keys().copied().collect::<Vec<_>>(), [0, 3]);
        assert_eq!((since[&0].busy, since[&3].busy), (0.25, 1.0));
    }

    #[test]
    fn this_machine_has_a_core_and_not_any_number() {
        assert!(!Cores::read().unwrap().cores.is_empty());
        assert_eq!(core_time(usize::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
