//! What the workers of a process share of an overload: who is known, and what the operator is told.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use courser_overload::{Change, Shares};
use courser_telemetry::event::{Level, log};

pub use super::visitors::Visitors;
use crate::clock::since_start;

/// One for all workers.
#[derive(Debug)]
pub struct Crowd {
    /// Who has been here.
    pub visitors: Visitors,
    /// Handshakes a second of a worker, as the last one has measured that clients waited for; the bits of a number.
    capacity: AtomicU64,
    report: Mutex<Report>,
}

/// Touched a hundred times a second by a worker in overload, and never by a connection.
#[derive(Debug, Default)]
struct Report {
    workers: u32,
    began: Duration,
    /// When the last line was written; `None`: none of this overload.
    said: Option<Duration>,
    /// A line has named a network.
    named: bool,
    refused: u64,
}

/// After so long an overload is reported: by then it is known who causes it.
const FIRST: Duration = Duration::from_secs(1);

/// Between lines.
const APART: Duration = Duration::from_secs(60);

/// Networks that a line names.
const MOST_NAMED: usize = 5;

impl Crowd {
    /// No overload. `capacity` is what another process has measured, or 0.
    pub fn new(visitors: Visitors, capacity: f64) -> Self {
        Self { visitors, capacity: AtomicU64::new(capacity.to_bits()), report: Mutex::default() }
    }

    /// Handshakes a second that a worker makes while clients wait; 0 before any have waited.
    pub fn capacity(&self) -> f64 {
        f64::from_bits(self.capacity.load(Ordering::Relaxed))
    }

    pub(super) fn set_capacity(&self, capacity: f64) {
        self.capacity.store(capacity.to_bits(), Ordering::Relaxed);
    }

    /// A worker in overload has ticked, or its overload has just ended.
    pub(super) fn report(&self, change: Option<Change>, now: Duration, refused: u32, shares: &Shares) {
        let mut report = self.lock();
        if change == Some(Change::Began) {
            if report.workers == 0 {
                *report = Report { began: now, ..Report::default() };
            }
            report.workers += 1;
        }
        report.refused += u64::from(refused);
        if change == Some(Change::Ended) {
            report.end(now);
            return;
        }
        if report.is_due(now, shares) {
            report.say(now, shares);
        }
    }

    /// A worker that was in overload ends.
    pub(super) fn leave(&self) {
        let now = since_start();
        self.lock().end(now);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report {
    /// Each minute, and once more when the first network is found out.
    fn is_due(&self, now: Duration, shares: &Shares) -> bool {
        let Some(said) = self.said else { return now >= self.began + FIRST };
        now >= said + APART || (!self.named && !shares.networks.is_empty())
    }

    fn say(&mut self, now: Duration, shares: &Shares) {
        let (since, refused) = ((now - self.began).as_secs(), self.refused);
        let begin = match self.said.replace(now) {
            None => "overload: more clients come than can be served, so some are not let in".to_owned(),
            Some(_) => format!("overload goes on since {since} s"),
        };
        self.named |= !shares.networks.is_empty();
        let causes = causes(shares);
        log(Level::Warning, format_args!("{begin}; {refused} refused (clients or repeated SYNs); {causes}"));
    }

    fn end(&mut self, now: Duration) {
        self.workers = self.workers.saturating_sub(1);
        if self.workers == 0 {
            let (lasted, refused) = ((now - self.began).as_secs_f64(), self.refused);
            log(
                Level::Warning,
                format_args!(
                    "overload is over after {lasted:.1} s; {refused} refused; all clients are let in"
                ),
            );
        }
    }
}

/// Who is limited, the most limited first.
fn causes(shares: &Shares) -> String {
    if shares.networks.is_empty() {
        return "no network stands out".to_owned();
    }
    let mut networks: Vec<_> = shares.networks.iter().collect();
    networks.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut text = "limited:".to_owned();
    for ((address, bits), share) in networks.iter().take(MOST_NAMED) {
        let _ = write!(text, " {address}/{bits} to {:.0} %,", share * 100.0);
    }
    text.pop();
    if let Some(more @ 1..) = networks.len().checked_sub(MOST_NAMED) {
        let _ = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_network_that_is_found_out_late_is_named_at_once() {
        let none = Shares::default();
        let one =
            Shares { networks: vec![((Ipv4Addr::new(10, 0, 0, 0).into(), 24), 0.1)], ..Shares::default() };
        let seconds = Duration::from_secs;
        let mut report = Report { began: seconds(10), ..Report::default() };
        assert!(!report.is_due(seconds(10), &one));
        assert!(report.is_due(seconds(11), &none));
        report.say(seconds(11), &none);
        assert!(!report.is_due(seconds(12), &none) && report.is_due(seconds(12), &one));
        report.say(seconds(12), &one);
        assert!(!report.is_due(seconds(71), &one) && report.is_due(seconds(72), &none));
    }

    #[test]
    fn the_most_limited_networks_are_named() {
        let network = |number: u8| ((Ipv4Addr::new(10, 0, number, 0).into(), 24), f64::from(number) / 100.0);
        let shares = Shares { networks: (1..=7).rev().map(network).collect(), ..Shares::default() };
        let expected = "limited: 10.0.1.0/24 to 1 %, 10.0.2.0/24 to 2 %, 10.0.3.0/24 to 3 %, 10.0.4.0/24 to 4 %, \
                        10.0.5.0/24 to 5 % and 2 more";
        assert_eq!(causes(&shares), expected);
        assert_eq!(causes(&Shares::default()), "no network stands out");
    }
}
