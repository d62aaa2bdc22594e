//! Reports lost log lines on standard error: the first at once, then once a minute while lines are lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_telemetry::Losses;
use courser_telemetry::event::{Level, log, try_log};

/// Between two reports about one log.
const APART: Duration = Duration::from_secs(60);

pub(crate) struct LossReport {
    log: &'static str,
    losses: Arc<Losses>,
    /// Lost lines that are in a report.
    reported: u64,
    next: Option<Instant>,
}

impl LossReport {
    pub(crate) fn new(log: &'static str, losses: Arc<Losses>) -> Self {
        Self { log, losses, reported: 0, next: None }
    }

    /// Reports the lines lost since the last report, if that is a minute ago. A report that finds no room is tried again
    /// soon: it may be the event lines themselves that are lost.
    pub(crate) fn report(&mut self, now: Instant) {
        let lost = self.losses.lines();
        if self.is_due(lost, now) && try_log(Level::Warning, self.message(lost)) {
            self.reported = lost;
            self.next = Some(now + APART);
        }
    }

    /// Reports the rest, at the end.
    pub(crate) fn report_last(self) {
        let lost = self.losses.lines();
        if lost > self.reported {
            log(Level::Warning, self.message(lost));
        }
    }

    fn is_due(&self, lost: u64, now: Instant) -> bool {
        lost > self.reported && self.next.is_none_or(|next| next <= now)
    }

    fn message(&self, lost: u64) -> String {
        let (log, new, why) = (self.log, lost - self.reported, self.losses.reason());
        format!("{log}: {new} lines lost ({lost} since the start): {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_reported_at_once_and_then_once_a_minute() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut report = LossReport::new("connection log", Arc::default());
        assert!(!report.is_due(0, start));
        assert!(report.is_due(5, start));
        (report.reported, report.next) = (5, Some(start + APART));
        assert!(!report.is_due(9, start + APART - second));
        assert!(report.is_due(9, start + APART) && !report.is_due(5, start + 10 * APART));
        assert_eq!(
            report.message(9),
            "connection log: 4 lines lost (9 since the start): their reader is too slow"
        );
    }
}
