//! Tells on standard error of log lines that are lost: of the first at once, then once a minute while it lasts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_telemetry::Losses;
use courser_telemetry::event::{Level, log, try_log};

/// Between two lines about one log.
const APART: Duration = Duration::from_secs(60);

/// What is told of one log.
pub(crate) struct LossReport {
    log: &'static str,
    losses: Arc<Losses>,
    /// Lines that were told to be lost.
    told: u64,
    next: Option<Instant>,
}

impl LossReport {
    /// About the log of this name.
    pub(crate) fn new(log: &'static str, losses: Arc<Losses>) -> Self {
        Self { log, losses, told: 0, next: None }
    }

    /// Tells of what has come since the last time, if that is a minute ago. A line that finds no room is tried again soon:
    /// it may be the event lines themselves that are lost.
    pub(crate) fn tell(&mut self, now: Instant) {
        let lost = self.losses.lines();
        if self.is_due(lost, now) && try_log(Level::Warning, self.message(lost)) {
            self.told = lost;
            self.next = Some(now + APART);
        }
    }

    /// Tells of the rest, at the end.
    pub(crate) fn tell_last(self) {
        let lost = self.losses.lines();
        if lost > self.told {
            log(Level::Warning, self.message(lost));
        }
    }

    fn is_due(&self, lost: u64, now: Instant) -> bool {
        lost > self.told && self.next.is_none_or(|next| next <= now)
    }

    fn message(&self, lost: u64) -> String {
        let (log, new, why) = (self.log, lost - self.told, self.losses.reason());
        format!("{log}: {new} lines lost ({lost} since the start): {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_at_once_and_then_once_a_minute_while_it_lasts() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut report = LossReport::new("connection log", Arc::default());
        assert!(!report.is_due(0, start));
        assert!(report.is_due(5, start));
        (report.told, report.next) = (5, Some(start + APART));
        assert!(!report.is_due(9, start + APART - second));
        assert!(report.is_due(9, start + APART) && !report.is_due(5, start + 10 * APART));
        assert_eq!(
            report.message(9),
            "connection log: 4 lines lost (9 since the start): their reader is too slow"
        );
    }
}
