//! What was seen, and what of it must not be.

use std::fmt;
use std::time::Duration;

use courser_testkit::open_load::Account;

use super::service::Held;

/// What is done again and again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tries {
    times: Vec<Duration>,
    failed: usize,
}

impl Tries {
    pub(crate) fn add(&mut self, time: Duration, is_good: bool) {
        self.times.push(time);
        self.failed += usize::from(!is_good);
    }

    fn median_and_most(&self) -> [f64; 2] {
        let mut times = self.times.clone();
        times.sort_unstable();
        let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
        [ms(times.get(times.len() / 2)), ms(times.last())]
    }
}

/// The service at a moment of the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) after: Duration,
    pub(crate) held: Held,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// By name.
    pub(crate) kinds: Vec<(&'static str, Account)>,
    pub(crate) tries: Vec<(&'static str, Tries)>,
    pub(crate) samples: Vec<Sample>,
    /// Before and after the load.
    pub(crate) at_rest: [Held; 2],
    /// Processes that should have ended.
    pub(crate) left_over: usize,
    pub(crate) failures: Vec<String>,
    /// Of certificates, where they are ordered, and how many had to be.
    pub(crate) renewals: Option<usize>,
    pub(crate) least_renewals: usize,
    /// As the program says it.
    pub(crate) failed_orders: Vec<String>,
}

/// Of the sessions of a kind.
const LEAST_RESUMED: f64 = 0.99;

/// How much more memory the last minute may take than the first. In shorter stretches chance decides how many processes drain.
const MOST_GROWTH: f64 = 1.1;
const MOST_GROWTH_OF_SHORT: f64 = 1.5;

/// Memory is compared by the minute, or by the fifth part of a shorter run.
const STRETCH: Duration = Duration::from_secs(60);

/// Failures that are told.
const TOLD: usize = 20;

impl Report {
    /// What must not be.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures: Vec<_> = self.failures.iter().take(TOLD).cloned().collect();
        for (name, account) in &self.kinds {
            if account.failed > 0 {
                failures.push(format!(
                    "{name}: {} connections failed: {}",
                    account.failed,
                    account.failures.join("; ")
                ));
            }
            if account.connections == 0 || share(account).is_some_and(|share| share < LEAST_RESUMED) {
                failures.push(format!(
                    "{name}: {} of {} sessions were resumed",
                    account.resumed, account.offered
                ));
            }
        }
        for (name, tries) in self.tries.iter().filter(|(_, tries)| tries.failed > 0 || tries.times.is_empty())
        {
            failures.push(format!("{name}: {} of {} failed", tries.failed, tries.times.len()));
        }
        if let Some(renewals) = self.renewals.filter(|renewals| *renewals < self.least_renewals) {
            failures.push(format!(
                "certificates: {renewals} renewals, at least {} were due",
                self.least_renewals
            ));
        }
        if !failures.is_empty() {
            failures.extend(self.failed_orders.iter().take(TOLD).cloned());
        }
        let [before, after] = self.at_rest;
        if after.descriptors > before.descriptors {
            failures.push(format!(
                "descriptors at rest: {} before, {} after",
                before.descriptors, after.descriptors
            ));
        }
        let [first, last] = self.memory();
        let most = if self.stretch() == STRETCH { MOST_GROWTH } else { MOST_GROWTH_OF_SHORT };
        if last > first * most {
            failures.push(format!("memory: {first:.1} MiB at first, {last:.1} MiB at last"));
        }
        if self.left_over > 0 || after.old > 0 {
            failures.push(format!("processes left over: {}", self.left_over.max(after.old)));
        }
        failures
    }

    fn end(&self) -> Duration {
        self.samples.last().map_or(Duration::ZERO, |sample| sample.after)
    }

    fn stretch(&self) -> Duration {
        STRETCH.min(self.end() / 5)
    }

    /// MiB in the first stretch and in the last, on average.
    fn memory(&self) -> [f64; 2] {
        let (end, stretch) = (self.end(), self.stretch());
        let mean = |is_in: &dyn Fn(Duration) -> bool| {
            let found = self.samples.iter().filter(|sample| is_in(sample.after) && sample.held.memory > 0);
            let found: Vec<_> = found.map(|sample| sample.held.memory as f64).collect();
            found.iter().sum::<f64>() / found.len().max(1) as f64 / f64::from(1 << 20)
        };
        // The first stretch begins once processes drain beside the one that serves, as they do at the end.
        let start = self
            .samples
            .iter()
            .find(|sample| sample.held.old > 0)
            .map_or(Duration::ZERO, |sample| sample.after);
        [mean(&|after| after >= start && after <= start + stretch), mean(&|after| after + stretch >= end)]
    }
}

fn share(account: &Account) -> Option<f64> {
    (account.offered > 0).then(|| account.resumed as f64 / account.offered as f64)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:20} {:>11} {:>7} {:>9} {:>9}", "", "connections", "failed", "offered", "resumed")?;
        for (name, account) in &self.kinds {
            let Account { connections, failed, offered, .. } = account;
            let share =
                share(account).map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", share * 100.0));
            writeln!(f, "{name:20} {connections:>11} {failed:>7} {offered:>9} {share:>9}")?;
        }
        writeln!(f, "\n{:20} {:>11} {:>7} {:>9} {:>9}", "", "count", "failed", "median ms", "most ms")?;
        for (name, tries) in &self.tries {
            let [median, most] = tries.median_and_most();
            writeln!(f, "{name:20} {:>11} {:>7} {median:>9.0} {most:>9.0}", tries.times.len(), tries.failed)?;
        }
        if let Some(renewals) = self.renewals {
            let failed = self.failed_orders.len();
            writeln!(f, "\nrenewals of the certificate: {renewals}; orders that failed: {failed}")?;
        }
        let [before, after] = self.at_rest;
        let [first, last] = self.memory();
        let old = self.samples.iter().map(|sample| sample.held.old).max().unwrap_or(0);
        writeln!(f, "\nprocesses that drained at a time, at most: {old}; left over: {}", self.left_over)?;
        writeln!(f, "memory of all processes: first stretch {first:.1} MiB, last {last:.1} MiB")?;
        write!(f, "descriptors at rest: before {}, after {}", before.descriptors, after.descriptors)
    }
}
