//! What has happened in the last seconds: the difference of two samples of what is counted. May not know who asks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use courser_session::ResumptionFailure;
use courser_telemetry::metrics::{METRICS, Metric, Step};
use courser_telemetry::time::micros;
use courser_telemetry::{Cause, CloseReason, Counts, Resumption};

use crate::status::Status;
use crate::status::recent::{FailureRow, Recent, RecentStep, ShedRow};

/// What was counted until an instant.
struct Sample {
    at: Instant,
    counts: Counts,
    /// Of each worker, in microseconds.
    busy: Vec<u64>,
    syn_dropped: u64,
}

/// Samples of the last seconds, the oldest first. They are taken when somebody asks: who is not watched has none.
#[derive(Default)]
pub(crate) struct History(Vec<Sample>);

/// As far as figures look back: long enough for a percentile of what comes ten times a second, short enough to be now.
const WINDOW: Duration = Duration::from_secs(10);

/// Between two samples: a little less than a second, so that who asks each second gives one each time.
const APART: Duration = Duration::from_millis(900);

impl History {
    /// Adds to a status what has happened since the oldest sample of the window. Nothing, where there is none yet.
    pub(crate) fn add_recent(&mut self, at: Instant, counts: &Counts, status: &mut Status) {
        let now = Sample {
            at,
            counts: counts.clone(),
            busy: status.workers.iter().map(|worker| worker.busy_us).collect(),
            syn_dropped: status.listeners.iter().map(|listener| listener.syn_dropped).sum(),
        };
        self.0.retain(|sample| at.duration_since(sample.at) <= WINDOW + APART);
        let difference =
            self.0.first().filter(|oldest| at.duration_since(oldest.at) >= APART).map(|oldest| {
                let seconds = at.duration_since(oldest.at).as_secs_f64();
                let mut lately = counts.clone();
                lately.subtract(&oldest.counts);
                (lately, recent(oldest, &now, seconds), seconds)
            });
        status.shed = ShedRow::of(&status.connections.shed);
        status.failures =
            failures(counts, difference.as_ref().map(|(lately, _, seconds)| (lately, *seconds)));
        status.recent = difference.map(|(_, recent, _)| recent);
        if self.0.last().is_none_or(|last| at.duration_since(last.at) >= APART) {
            self.0.push(now);
        }
    }
}

fn recent(before: &Sample, now: &Sample, seconds: f64) -> Recent {
    let mut counts = now.counts.clone();
    counts.subtract(&before.counts);
    let rate = |count: u64| rounded(float(count) / seconds);
    let rates = |metric: Metric, names: &[&str]| {
        let some = names.iter().zip(counts.of(metric)).filter(|(_, count)| **count > 0);
        some.map(|(name, &count)| ((*name).to_owned(), rate(count))).collect::<BTreeMap<_, _>>()
    };
    let step = |&step: &Step| {
        let found = counts.step(step);
        let percentile = |percent| found.percentile(percent).map(micros);
        let (p50_us, p99_us) = (percentile(50)?, percentile(99)?);
        Some((step.name().to_owned(), RecentStep { rate: rate(found.count()), p50_us, p99_us }))
    };
    let spent = rates(Metric::HandshakeCpu, METRICS[Metric::HandshakeCpu as usize].series);
    let busy = now.busy.iter().zip(&before.busy);
    let share = |(now, before): (&u64, &u64)| float(now.saturating_sub(*before)) / 1e6 / seconds;
    Recent {
        seconds: rounded(seconds),
        closed: rate(counts.of(Metric::Connections).iter().sum()),
        bytes_in: rate(counts.of(Metric::PlaintextBytes)[0]),
        bytes_out: rate(counts.of(Metric::PlaintextBytes)[1]),
        handshakes: rates(Metric::Handshakes, Resumption::NAMES),
        not_resumed: rates(Metric::ResumptionFailures, &ResumptionFailure::ALL.map(ResumptionFailure::name)),
        steps: Step::ALL.iter().filter_map(step).collect(),
        busy: busy.map(|pair| rounded(share(pair).min(1.0))).collect(),
        handshake_cpu: spent.into_iter().map(|(kind, micros)| (kind, micros.round() / 1e6)).collect(),
        syn_dropped: rate(now.syn_dropped.saturating_sub(before.syn_dropped)),
        shed: rates(Metric::Shed, METRICS[Metric::Shed as usize].series),
        log_lines_lost: rate(counts.of(Metric::LogLinesLost).iter().sum()),
    }
}

/// Close reasons that somebody caused, the most frequent of late first.
fn failures(counts: &Counts, lately: Option<(&Counts, f64)>) -> Vec<FailureRow> {
    let row = |(&reason, &count): (&CloseReason, &u64)| {
        let rate = lately.map_or(0.0, |(lately, seconds)| {
            float(lately.of(Metric::Connections)[reason as usize]) / seconds
        });
        FailureRow {
            reason: reason.name().to_owned(),
            cause: reason.cause().name().to_owned(),
            count,
            rate: rounded(rate),
        }
    };
    let counted = CloseReason::ALL.iter().zip(counts.of(Metric::Connections));
    let mut rows: Vec<_> =
        counted.filter(|(reason, count)| reason.cause() != Cause::None && **count > 0).map(row).collect();
    rows.sort_by(|a, b| b.rate.total_cmp(&a.rate).then(b.count.cmp(&a.count)));
    rows
}

#[expect(clippy::cast_precision_loss, reason = "rates are printed with three digits")]
fn float(count: u64) -> f64 {
    count as f64
}

/// To hundredths: what nobody reads need not be sent each second.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use courser_telemetry::Counters;

    use super::*;
    use crate::status::{ListenerRow, WorkerRow};

    fn status(busy_us: u64, syn_dropped: u64) -> Status {
        let worker = WorkerRow { busy_us, connections: 0, queue_length: 0, queue_limit: 0 };
        let (name, queue_length, queue_limit) = ("web".to_owned(), 0, 0);
        let listener = ListenerRow { name, open: 0, closed: 0, queue_length, queue_limit, syn_dropped };
        Status { workers: vec![worker], listeners: vec![listener], ..Status::default() }
    }

    #[test]
    fn rates_are_of_the_last_seconds_alone() {
        let (start, counters, mut history) = (Instant::now(), Counters::default(), History::default());
        let reset = CloseReason::ClientReset as usize;
        let mut at = |seconds: u64, busy, dropped, counts: &Counts| {
            let mut status = status(busy, dropped);
            history.add_recent(start + Duration::from_secs(seconds), counts, &mut status);
            status
        };
        counters.add(Metric::Connections, reset, 7);
        counters.add(Metric::Handshakes, Resumption::Full as usize, 1000);
        let first = at(0, 5_000_000, 3, &counters.read());
        assert!(first.recent.is_none(), "there is nothing to compare with");
        assert_eq!((first.failures[0].count, first.failures[0].rate), (7, 0.0));
        counters.add(Metric::Connections, reset, 20);
        counters.add(Metric::Connections, CloseReason::Done as usize, 10);
        counters.add(Metric::Handshakes, Resumption::Full as usize, 50);
        counters.add(Metric::Shed, 0, 20);
        counters.observe(Step::Hello, Duration::from_millis(3));
        let second = at(10, 10_000_000, 4, &counters.read());
        let recent = second.recent.unwrap();
        assert_eq!((recent.seconds, recent.closed, recent.syn_dropped), (10.0, 3.0, 0.1));
        assert_eq!(recent.shed, [(METRICS[Metric::Shed as usize].series[0].to_owned(), 2.0)].into());
        assert_eq!((recent.handshakes["full"], recent.busy[0]), (5.0, 0.5));
        assert!(recent.steps.len() == 1 && recent.steps["hello"].p50_us >= 3000, "{recent:?}");
        let FailureRow { reason, cause, count, rate } = &second.failures[0];
        assert_eq!((reason.as_str(), cause.as_str(), *count, *rate), ("client_reset", "client", 27, 2.0));
        assert_eq!(second.failures.len(), 1, "an orderly end is no failure");
        let third = at(20, 10_000_000, 4, &counters.read()).recent.unwrap();
        assert!(third.handshakes.is_empty() && third.closed == 0.0, "the first sample is too old: {third:?}");
    }

    #[test]
    fn each_close_reason_that_somebody_caused_is_a_failure_under_its_own_name() {
        let counters = Counters::default();
        (0..CloseReason::ALL.len()).for_each(|reason| counters.count(Metric::Connections, reason));
        let mut rows = failures(&counters.read(), None);
        for reason in CloseReason::ALL.iter().filter(|reason| reason.cause() != Cause::None) {
            let index = rows.iter().position(|row| row.reason == reason.name()).unwrap();
            assert_eq!(rows.remove(index).cause, reason.cause().name());
        }
        assert!(rows.is_empty(), "{rows:?}");
    }
}
