//! Certificates that are ordered, for people.

use courser_acme::plan::{Setback, Why};
use courser_acme::{DryRun, SetStatus, TxtRecord};
use serde::Deserialize;

use super::span;

/// One row for all: how many there are, the next order, and what fails. `now` is Unix seconds.
pub(crate) fn summary(sets: &[SetStatus], now: i64) -> String {
    let there = sets.iter().filter(|set| set.not_after.is_some()).count();
    let mut text = format!("ordered here: {there} of {} certificates are there", sets.len());
    if let Some(set) = sets.iter().min_by_key(|set| set.next) {
        text += &format!("; next order: {}, {}", first(set), when(set.next, now));
    }
    let failing: Vec<_> = sets.iter().filter(|set| set.failures > 0).map(first).collect();
    if let Some(name) = failing.first() {
        text += &format!("; {} fail, {name} for one (`courser acme status`)", failing.len());
    }
    text
}

/// What `courser acme status` prints of one.
pub(crate) fn rows(set: &SetStatus, now: i64) -> String {
    let SetStatus { names, challenge, directory, not_after, .. } = set;
    let state = match not_after {
        Some(end) if *end >= now => format!("valid for {}", length(end - now)),
        Some(end) => format!("expired {} ago", length(now - end)),
        None => "no certificate yet".to_owned(),
    };
    let next = match (set.is_ordering, set.why) {
        (true, _) => "it is being ordered".to_owned(),
        (false, Why::OpenOrder) => format!("its order goes on {}", when(set.next, now)),
        (false, why) => format!("next order {}: {}", when(set.next, now), why.words()),
    };
    let mut text = format!("{}: {state}; {next}\n  {challenge}, {directory}\n", names.join(", "));
    if let Some(order) = &set.order {
        text += &format!("  order: {order}\n");
    }
    if let Some(failure) = set.failure.as_ref().filter(|_| set.failures > 0) {
        let ago = length(now - failure.at);
        text += &format!("  failures in a row: {}; the last {ago} ago: {}\n", set.failures, failure.words);
        if let Setback::Limited { until } = failure.setback {
            let until = until.map(|until| format!(", which ends {}", when(until, now))).unwrap_or_default();
            text += &format!("  a limit of the CA is reached{until}\n");
        }
    }
    text
}

/// What `courser acme order --dry-run` prints of one.
pub(crate) fn tried(tried: &DryRun) -> String {
    let names = tried.names.join(", ");
    match &tried.failure {
        None => format!("ok: {names} ({}; nothing was kept)\n", tried.directory),
        Some(why) => format!("failed: {names} ({}): {why}\n", tried.directory),
    }
}

/// The line for a zone file (RFC 1035, section 5.1).
pub(crate) fn record(record: &TxtRecord) -> String {
    format!("{}. IN TXT \"{}\"\n", record.name, record.value)
}

/// Reads a line of an answer.
pub(crate) fn read<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    super::read(line)
}

fn first(set: &SetStatus) -> &str {
    set.names.first().map_or("", String::as_str)
}

fn when(at: i64, now: i64) -> String {
    if at <= now { "now".to_owned() } else { format!("in {}", length(at - now)) }
}

fn length(seconds: i64) -> String {
    span(u64::try_from(seconds).unwrap_or_default())
}
