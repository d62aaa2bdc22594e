//! What adds up, added up.

use std::collections::BTreeMap;

use courser_stats::Histogram;

use super::Part;
use crate::encode::Packed;
use crate::run::{Finding, Severity};
use crate::second::Second;
use crate::totals::{FAILURE_SAMPLES, Totals};
use crate::usage::{ServerUsage, WireCost};

/// The sum over all generators; the window is the caller's to say.
pub(super) fn totals(parts: &[Part<'_>]) -> Totals {
    let mut all = parts.iter().map(|(_, run)| &run.totals);
    let mut sum = all.next().cloned().unwrap_or_default();
    all.for_each(|totals| sum.add(totals));
    sum.failure_samples.sort();
    sum.failure_samples.truncate(FAILURE_SAMPLES);
    sum
}

/// Intervals laid over each other by the wall clock: one belongs to the second that it began nearest to, counted from
/// the first one of all. Nothing is lost when a clock was set meanwhile; the second has two then.
pub(super) fn seconds(parts: &[Part<'_>]) -> Vec<Second> {
    let all = || parts.iter().flat_map(|(_, run)| &run.seconds);
    let Some(zero) = all().map(|interval| interval.start_unix_us).min() else { return Vec::new() };
    let mut seconds = BTreeMap::<u64, Second<Histogram>>::new();
    for interval in all() {
        let second = (interval.start_unix_us - zero).saturating_add(500_000) / 1_000_000;
        let start_unix_us = zero.saturating_add(second.saturating_mul(1_000_000));
        let placed = Second { second, start_unix_us, ..interval.with(Packed::unpack) };
        seconds.entry(second).and_modify(|sum| sum.add(&placed)).or_insert(placed);
    }
    seconds.into_values().map(|sum| sum.with(|response| response.into())).collect()
}

/// The server as the first generator saw it that watched it, its time divided by the connections of all; and a word if
/// there were several.
pub(super) fn server(parts: &[Part<'_>], connections: u64) -> (Option<ServerUsage>, Option<Finding>) {
    let mut watchers = parts.iter().filter_map(|(source, run)| Some((source, run.server.as_ref()?)));
    let Some((first, usage)) = watchers.next() else { return (None, None) };
    let mut usage = usage.clone();
    usage.divide(connections);
    let twice = watchers.next().map(|_| {
        Finding::new(
            "server-watched-twice",
            Severity::Note,
            format!("several generators watched the server; the figures are those of {}", first.label),
            "name the server's processes to one generator only",
        )
    });
    (Some(usage), twice)
}

/// What went over the wire where it was counted.
pub(super) fn wire(parts: &[Part<'_>]) -> Option<WireCost> {
    let mut costs = parts.iter().filter_map(|(_, run)| run.wire.as_ref());
    let mut sum = costs.next()?.clone();
    costs.for_each(|cost| sum.add(cost));
    Some(sum)
}
