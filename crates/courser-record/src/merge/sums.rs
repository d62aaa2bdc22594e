//! What adds up, added up.

use std::collections::BTreeMap;

use courser_stats::{Counts, Histogram};

use super::Part;
use crate::encode::{MOST, Packed};
use crate::run::{Finding, Severity};
use crate::second::{Second, add, add_histogram};
use crate::totals::{FAILURE_SAMPLES, Negotiated, Outcomes, Totals};
use crate::usage::{HandshakeBytes, RequestBytes, ServerUsage, WireCost};

/// The sum over all generators; the window is the caller's to say.
pub(super) fn totals(parts: &[Part<'_>]) -> Totals {
    let mut sum = Totals::default();
    for (_, run) in parts {
        add_totals(&mut sum, &run.totals);
    }
    sum.failure_samples.sort();
    sum.failure_samples.truncate(FAILURE_SAMPLES);
    sum
}

fn add_totals(sum: &mut Totals, more: &Totals) {
    add(&mut sum.sessions, more.sessions);
    add_outcomes(&mut sum.connections, &more.connections);
    add_outcomes(&mut sum.requests, &more.requests);
    add(&mut sum.received_bytes, more.received_bytes);
    add(&mut sum.sent_bytes, more.sent_bytes);
    add_counts(&mut sum.failures, &more.failures);
    sum.failure_samples.extend(more.failure_samples.iter().cloned());
    more.negotiated.iter().for_each(|kind| add_negotiated(&mut sum.negotiated, kind));
    add_counts(&mut sum.offered, &more.offered);
    add_counts(&mut sum.tickets_received, &more.tickets_received);
    add(&mut sum.early_data_accepted, more.early_data_accepted);
    add_counts(&mut sum.alpn, &more.alpn);
    for (name, histogram) in &more.times {
        add_histogram(sum.times.entry(name.clone()).or_default(), histogram);
    }
}

fn add_outcomes(sum: &mut Outcomes, more: &Outcomes) {
    add(&mut sum.attempted, more.attempted);
    add(&mut sum.succeeded, more.succeeded);
    add(&mut sum.failed, more.failed);
}

fn add_counts<K: Ord + Clone>(sum: &mut Counts<K>, more: &Counts<K>) {
    for (kind, times) in more {
        let room = MOST.saturating_sub(sum.total());
        sum.add(kind.clone(), room.min(*times));
    }
}

fn add_negotiated(sum: &mut Vec<Negotiated>, more: &Negotiated) {
    let alike = |kind: &&mut Negotiated| Negotiated { count: more.count, ..(**kind).clone() } == *more;
    match sum.iter_mut().find(alike) {
        Some(kind) => add(&mut kind.count, more.count),
        None => sum.push(more.clone()),
    }
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
    for cost in costs {
        add_handshakes(&mut sum.full, &cost.full);
        add_handshakes(&mut sum.resumed, &cost.resumed);
        add_requests(&mut sum.requests, &cost.requests);
    }
    Some(sum)
}

fn add_handshakes(sum: &mut HandshakeBytes, more: &HandshakeBytes) {
    add(&mut sum.handshakes, more.handshakes);
    add(&mut sum.out_bytes, more.out_bytes);
    add(&mut sum.in_bytes, more.in_bytes);
    add(&mut sum.out_segments, more.out_segments);
    add(&mut sum.in_segments, more.in_segments);
}

fn add_requests(sum: &mut RequestBytes, more: &RequestBytes) {
    add(&mut sum.requests, more.requests);
    add(&mut sum.out_payload_bytes, more.out_payload_bytes);
    add(&mut sum.in_payload_bytes, more.in_payload_bytes);
    add(&mut sum.out_wire_bytes, more.out_wire_bytes);
    add(&mut sum.in_wire_bytes, more.in_wire_bytes);
}
