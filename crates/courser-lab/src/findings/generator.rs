//! Whether the generator was the limit, or the experiment was not the one that was asked for: then there is no verdict.

use std::time::Duration;

use courser_load::failure::Class;
use courser_load::plan::Model;
use courser_record::{Finding, Severity};

use super::{Evidence, percent, share};
use crate::to_record;

/// Above this a core has no room for what comes next: its queue, not the server's, is measured.
const BUSIEST: f64 = 0.8;

/// A start that is later than this at the 99th percentile is part of what is measured.
const LATEST: Duration = Duration::from_millis(1);

/// A thread that sleeps for 10 ms and is not busy wakes within this, unless somebody else has its processor.
const WAKES_WITHIN: Duration = Duration::from_millis(15);

/// Less than this share of the arrivals that were planned is another experiment (RFC 9411, section 7.1: within 5 %).
const LEAST_OFFERED: f64 = 0.95;

pub(super) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(cut(evidence));
    found.extend(nothing_attempted(evidence));
    found.extend(wrong_offers(evidence));
    found.extend(busy_threads(evidence));
    found.extend(busy_cores(evidence));
    found.extend(late(evidence));
    found.extend(descheduled(evidence));
    found.extend(not_offered(evidence));
    found.extend(used_up(evidence));
    found.extend(unread_server(evidence));
    found
}

fn cut(evidence: &Evidence<'_>) -> Option<Finding> {
    evidence.cut.then(|| {
        Finding::new(
            "cut",
            Severity::Warning,
            "the run was cut short",
            "the figures are of the time that it had",
        )
    })
}

/// A window without a start says nothing about the server: every client was still busy with what came before.
fn nothing_attempted(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.counted.tally.attempted == 0 && !evidence.cut).then(|| {
        let text = "nothing was attempted: no connection or request began in the window";
        let advice = "give the window more time (--duration) or the load more clients: those that it has were waiting for the \
                      server";
        Finding::new("nothing-attempted", Severity::Invalid, text, advice)
    })
}

fn wrong_offers(evidence: &Evidence<'_>) -> Option<Finding> {
    let wrong = evidence.counted.tally.wrong_offers;
    (wrong > 0).then(|| {
        let text = format!("wrong experiment: {wrong} ClientHellos did not offer what was asked");
        Finding::new("wrong-offer", Severity::Invalid, text, "see the failures for what was offered instead")
    })
}

fn busy_threads(evidence: &Evidence<'_>) -> Option<Finding> {
    let threads = evidence.run.generators.iter().flat_map(|generator| &generator.threads);
    let busiest = threads.filter_map(|thread| thread.busy).fold(0.0, f64::max);
    (busiest > BUSIEST).then(|| {
        let text = format!("client-bound: a thread of the generator was {} busy", percent(busiest));
        let advice = "give it more cores (--cpus 2-3, or generators on several machines with --share), a lower rate, or \
                      --engine lean";
        Finding::new("client-bound-thread", Severity::Invalid, text, advice)
    })
}

/// Cores that generator and origin stay on; without --cpus any core may be the generator's.
fn busy_cores(evidence: &Evidence<'_>) -> Option<Finding> {
    let [before, after] = evidence.counted.samples.as_ref()?;
    let pinned = evidence.plan.threads.iter().flatten().copied();
    let ours: Vec<usize> = pinned.chain(evidence.watched.origin_cpus.iter().copied()).collect();
    if evidence.plan.threads.iter().any(Option::is_none) && is_local(evidence) {
        return unpinned(evidence);
    }
    let shares = to_record::cores(before, after, &ours);
    let (cpu, share) = shares.iter().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy))?;
    (!ours.is_empty() && share.busy > BUSIEST).then(|| {
        let text = format!(
            "client-bound: core {cpu}, the generator's or the origin's, was {} busy",
            percent(share.busy)
        );
        let advice =
            "nothing else may run there: keep the server on other cores (taskset), and the load lower";
        Finding::new("client-bound-core", Severity::Invalid, text, advice)
    })
}

/// A generator that moves over all cores of the machine that the server runs on takes from it what it measures.
fn unpinned(evidence: &Evidence<'_>) -> Option<Finding> {
    let [before, after] = evidence.counted.samples.as_ref()?;
    let shares = to_record::cores(before, after, &[]);
    let idle = shares.iter().any(|(_, share)| share.busy <= BUSIEST);
    (!idle).then(|| {
        let text = "client-bound: generator and server share cores, and none of them was under 80 % busy";
        let advice = "keep them apart: --cpus for the generator, taskset for the server";
        Finding::new("client-bound-core", Severity::Invalid, text, advice)
    })
}

fn is_local(evidence: &Evidence<'_>) -> bool {
    evidence.plan.target.addresses.iter().any(|address| address.ip().is_loopback())
}

fn late(evidence: &Evidence<'_>) -> Option<Finding> {
    let lag = &evidence.counted.tally.lag;
    let p99 = lag.quantile(0.99).filter(|p99| *p99 > LATEST)?;
    let text = format!("client-bound: connections started {p99:.1?} late (99th percentile)");
    let advice =
        "the generator did not get its processor when it was due: give it a core of its own (--cpus)";
    Some(Finding::new("schedule-lag", Severity::Invalid, text, advice))
}

/// In a closed loop nothing is due; a thread that has time to sleep and wakes late was kept from its processor.
fn descheduled(evidence: &Evidence<'_>) -> Option<Finding> {
    let beat = &evidence.counted.tally.beat;
    let p99 = beat.quantile(0.99).filter(|p99| *p99 > WAKES_WITHIN)?;
    let threads = evidence.run.generators.iter().flat_map(|generator| &generator.threads);
    let busiest = threads.filter_map(|thread| thread.busy).fold(0.0, f64::max);
    (busiest <= BUSIEST).then(|| {
        let text = format!("client-bound: the generator was descheduled, its threads woke {p99:.0?} late (99th percentile)");
        let advice = "it is held to a share of its core (a quota, a signal, a busy neighbour): lift that, or use another \
                      machine";
        Finding::new("descheduled", Severity::Invalid, text, advice)
    })
}

fn not_offered(evidence: &Evidence<'_>) -> Option<Finding> {
    let tally = &evidence.counted.tally;
    let window = evidence.counted.window;
    let planned =
        evidence.plan.share.of_rate(window.rate?) * (window.to.saturating_sub(window.from)).as_secs_f64();
    let arrived = match evidence.plan.model {
        Model::Sessions(_) => tally.sessions,
        _ => tally.connections,
    };
    let offered = arrived as f64 / planned.max(1.0);
    // One arrival more or less is rounding; a Poisson process varies by its root.
    let slack = 1.0 / planned.max(1.0) + 3.0 / planned.max(1.0).sqrt();
    (offered + slack < LEAST_OFFERED).then(|| {
        let text =
            format!("client-bound: only {} of the arrivals that were planned took place", percent(offered));
        Finding::new(
            "rate-not-offered",
            Severity::Invalid,
            text,
            "ask for a lower rate, or give the generator more cores",
        )
    })
}

fn used_up(evidence: &Evidence<'_>) -> Vec<Finding> {
    let tally = &evidence.counted.tally;
    let advice = |class: &Class| match class {
        Class::NoLocalPort => {
            "every local port towards this address is in use or waits out TIME_WAIT: add --source addresses (127.0.0.2, \
             127.0.0.3, …), widen net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse=1, or --close rst"
        }
        Class::NoDescriptor => "raise the limit of open files (ulimit -n), or lower --in-flight",
        Class::InFlightLimit => {
            "connections pile up faster than they end: the server is beyond its capacity, or --in-flight is too low"
        }
        Class::BadSource => "--source takes addresses of this machine",
        _ => "this is a fault of the generator: please report it with the record",
    };
    let ours = tally.failures.iter().filter(|(class, _)| class.is_ours() && **class != Class::WrongOffer);
    ours.map(|(class, count)| {
        let text = format!("{class}: {} of the attempts", percent(share(*count, tally.attempted)));
        // Connections that pile up are the server's doing as often as not.
        let severity = if *class == Class::InFlightLimit { Severity::Warning } else { Severity::Invalid };
        Finding::new(&class.to_string(), severity, text, advice(class))
    })
    .collect()
}

fn unread_server(evidence: &Evidence<'_>) -> Option<Finding> {
    let [before, after] = evidence.counted.samples.as_ref()?;
    let trouble = before.trouble.as_ref().or(after.trouble.as_ref())?;
    let text = format!("the server's processor time is missing: {trouble}");
    Some(Finding::new("server-unread", Severity::Warning, text, "look at --server-pid or --server-cgroup"))
}
