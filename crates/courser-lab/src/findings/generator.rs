//! Whether the generator was the limit, or the experiment was not the one that was asked for: then there is no verdict.

use std::time::Duration;

use courser_load::failure::Class;
use courser_load::plan::Model;
use courser_machine::usage::CoreShare;
use courser_record::{Finding, GeneratorThread, Severity};
use courser_stats::Histogram;

use super::{Evidence, percent, share};
use crate::to_record;

/// Above this a core has no room for what comes next: its queue, not the server's, is measured.
const BUSIEST: f64 = 0.8;

/// Starts that are late by no more than this at the 99th percentile are on time.
const LATEST: Duration = Duration::from_millis(1);

/// A lag of no more than this share of the response time does not spoil it.
const MOST_OF_RESPONSE: f64 = 0.1;

/// Above this share of the window spent waiting for a processor it is part of what is measured.
const MOST_WAITED: f64 = 0.1;

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
    let tally = &evidence.counted.tally;
    let window = evidence.counted.window.to.saturating_sub(evidence.counted.window.from);
    let threads: Vec<GeneratorThread> =
        evidence.run.generators.iter().flat_map(|generator| generator.threads.clone()).collect();
    found.extend(late(&tally.lag, &tally.response_intended, gave_up(evidence)));
    found.extend(descheduled(&tally.beat, window, &threads));
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
    let found = shares.iter().filter(|_| !ours.is_empty());
    let found = found.filter_map(|(cpu, share)| busy_core(*cpu, share, own_use(evidence, *cpu)));
    found.max_by_key(|finding| finding.severity)
}

/// What generator and origin themselves had of a core, and how long they waited for it, as shares of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OwnUse {
    busy: f64,
    waited: f64,
}

/// `None` where it is not known.
fn own_use(evidence: &Evidence<'_>, cpu: usize) -> Option<OwnUse> {
    let [before, after] = evidence.counted.samples.as_ref()?;
    let window = (evidence.counted.window.to.saturating_sub(evidence.counted.window.from)).as_secs_f64();
    let number = u32::try_from(cpu).ok();
    let threads = evidence.run.generators.iter().flat_map(|generator| &generator.threads);
    let mut own = OwnUse { busy: 0.0, waited: 0.0 };
    for thread in threads.filter(|thread| thread.cpu == number) {
        own.busy += thread.busy?;
        own.waited += thread.run_queue_wait_us as f64 / 1e6 / window.max(1e-9);
    }
    // The process may have more threads there than make load: all that it had is shared out over its cores.
    let process: u64 = evidence.run.generators.iter().map(|generator| generator.cpu_us).sum();
    let pinned = evidence.plan.threads.iter().flatten();
    let (here, all) = (pinned.clone().filter(|one| **one == cpu).count(), pinned.count());
    let each = process as f64 / 1e6 / window.max(1e-9) / all.max(1) as f64;
    own.busy = own.busy.max(each * here as f64);
    let cpus = &evidence.watched.origin_cpus;
    if cpus.contains(&cpu) {
        let usage = after.origin.as_ref()?.since(before.origin.as_ref()?);
        // Which of its cores it was on is not known: it is taken to use them alike.
        let each = 1.0 / (cpus.len() as f64 * usage.wall.as_secs_f64().max(1e-9));
        own.busy += (usage.user + usage.system).as_secs_f64() * each;
        own.waited += usage.run_queue_wait.unwrap_or_default().as_secs_f64() * each;
    }
    Some(own)
}

/// A core that is busy with generator and origin has no room for them; where others have it, what counts is whether they
/// waited. Softirqs on it are of the connections that they have.
fn busy_core(cpu: usize, share: &CoreShare, own: Option<OwnUse>) -> Option<Finding> {
    if share.busy <= BUSIEST {
        return None;
    }
    let advice = "nothing else may run there: keep the server on other cores (taskset), and the load lower";
    let network = share.interrupts + share.soft_interrupts;
    match own.map(|own| (own.busy + network, own.waited)) {
        Some((busy, waited)) if busy <= BUSIEST => {
            let (others, took) = (percent((share.busy - busy).max(0.0)), percent(waited));
            let named =
                format!("other processes had {others} of core {cpu}, the generator's or the origin's");
            if waited <= MOST_WAITED {
                let text = format!("{named}, which waited for it {took} of the time");
                return Some(Finding::new("core-shared", Severity::Warning, text, advice));
            }
            let text = format!("client-bound: {named}, which waited for it {took} of the time");
            Some(Finding::new("core-shared", Severity::Invalid, text, advice))
        }
        _ => {
            let busy = own.map_or(share.busy, |own| (own.busy + network).min(share.busy));
            let text = format!(
                "client-bound: core {cpu}, the generator's or the origin's, was {} busy with them",
                percent(busy)
            );
            Some(Finding::new("client-bound-core", Severity::Invalid, text, advice))
        }
    }
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

/// The share of attempts that gave up, and for how long each of them had waited at least.
fn gave_up(evidence: &Evidence<'_>) -> (f64, Duration) {
    let tally = &evidence.counted.tally;
    let timeouts = tally.failures.iter().filter(|(class, _)| matches!(class, Class::Timeout(_)));
    let phases = &evidence.plan.phases;
    let waited = phases.connect_timeout.min(phases.timeout);
    (share(timeouts.map(|(_, count)| *count).sum(), tally.attempted), waited)
}

/// Starts that were late, against what is measured: a response time is counted from the intended start, so that lag is
/// part of it. Judged by the highest percentile that the starts support, and that is what is printed. Clients that gave up are
/// the slowest: where the percentile is theirs, lag is held against what they have waited.
fn late(lag: &Histogram, response: &Histogram, gave_up: (f64, Duration)) -> Option<Finding> {
    let (fraction, late) = lag.estimable(0.99).filter(|(_, late)| *late > LATEST)?;
    let (gave_up, waited) = gave_up;
    let of_served = response.quantile(fraction).unwrap_or_default();
    let measured = if gave_up > 1.0 - fraction { of_served.max(waited) } else { of_served };
    let which = percentile(fraction, lag);
    if late.as_secs_f64() <= MOST_OF_RESPONSE * measured.as_secs_f64() {
        let text = format!(
            "connections started {late:.1?} late ({which}), which is {} of the response time there",
            percent(late.as_secs_f64() / measured.as_secs_f64())
        );
        return Some(Finding::new(
            "schedule-lag",
            Severity::Note,
            text,
            "it is part of the response time from the intended start",
        ));
    }
    let text = format!("client-bound: connections started {late:.1?} late ({which})");
    let advice =
        "the generator did not get its processor when it was due: give it a core of its own (--cpus)";
    Some(Finding::new("schedule-lag", Severity::Invalid, text, advice))
}

/// A percentile, and of how many samples where they are few.
fn percentile(fraction: f64, of: &Histogram) -> String {
    let name =
        if fraction > 0.5 { format!("{:.0}th percentile", fraction * 100.0) } else { "median".to_owned() };
    if of.supports(0.99) { name } else { format!("{name} of {}", of.count()) }
}

/// In a closed loop nothing is due; a thread that has time to sleep and wakes late was kept from its processor. By the highest
/// percentile that its waking supports, or by the time that it lost altogether, which takes no number of samples.
fn descheduled(beat: &Histogram, window: Duration, threads: &[GeneratorThread]) -> Option<Finding> {
    let busiest = threads.iter().filter_map(|thread| thread.busy).fold(0.0, f64::max);
    let all = window.as_secs_f64() * threads.len().max(1) as f64;
    let lost = beat.beyond(WAKES_WITHIN).as_secs_f64() / all.max(1e-9);
    let often = beat.estimable(0.99).filter(|(_, late)| *late > WAKES_WITHIN);
    let how = match often {
        Some((fraction, late)) => {
            format!("its threads woke {late:.0?} late ({})", percentile(fraction, beat))
        }
        None if lost > MOST_WAITED => {
            format!("its threads were kept from their processors for {} of the time", percent(lost))
        }
        None => return None,
    };
    (busiest <= BUSIEST).then(|| {
        let text = format!("client-bound: the generator was descheduled, {how}");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(milliseconds: &[(f64, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        for (ms, times) in milliseconds {
            histogram.record_many(Duration::from_secs_f64(ms / 1e3), *times);
        }
        histogram
    }

    fn thread(busy: f64) -> [GeneratorThread; 1] {
        [GeneratorThread { cpu: Some(0), busy: Some(busy), ..GeneratorThread::default() }]
    }

    fn severity(finding: Option<&Finding>) -> Option<Severity> {
        finding.map(|finding| finding.severity)
    }

    #[test]
    fn five_of_five_hundred_starts_do_not_judge_a_run() {
        // 50/s for ten seconds: a p99 would rest on five of them.
        let lag = of(&[(0.05, 494), (2.0, 6)]);
        assert_eq!(late(&lag, &of(&[(1.5, 500)]), NO_ONE), None);
        let found = late(&of(&[(0.05, 400), (2.0, 100)]), &of(&[(1.5, 500)]), NO_ONE).unwrap();
        assert_eq!(found.severity, Severity::Invalid);
        assert!(found.text.ends_with("started 2.0ms late (90th percentile of 500)"), "{}", found.text);
    }

    #[test]
    fn a_lag_is_judged_against_the_response_time() {
        let lag = of(&[(0.05, 1900), (2.0, 100)]);
        let found = |ms: f64| late(&lag, &of(&[(ms, 2000)]), NO_ONE);
        assert_eq!(severity(found(5.0).as_ref()), Some(Severity::Invalid));
        assert_eq!(severity(found(400.0).as_ref()), Some(Severity::Note));
    }

    #[test]
    fn where_clients_give_up_a_lag_is_judged_against_what_they_have_waited() {
        let lag = of(&[(0.05, 1900), (20.0, 100)]);
        let found = |response: &[(f64, u64)], share: f64| {
            severity(late(&lag, &of(response), (share, Duration::from_secs(1))).as_ref())
        };
        assert_eq!(found(&[], 1.0), Some(Severity::Note), "no one is served");
        assert_eq!(found(&[(25.0, 200)], 0.9), Some(Severity::Note), "hardly anyone is");
        assert_eq!(found(&[(25.0, 1990)], 0.005), Some(Severity::Invalid), "nearly all are");
        assert_eq!(found(&[], 0.0), Some(Severity::Invalid), "all were refused at once");
    }

    const NO_ONE: (f64, Duration) = (0.0, Duration::from_secs(1));

    #[test]
    fn one_late_waking_of_twenty_is_no_verdict_and_half_of_the_time_is() {
        let two_seconds = Duration::from_secs(2);
        assert_eq!(descheduled(&of(&[(0.1, 19), (60.0, 1)]), two_seconds, &thread(0.3)), None);
        // Held to a tenth by a signal: few wakings, each late.
        let held = of(&[(0.1, 3), (90.0, 12)]);
        let found = descheduled(&held, two_seconds, &thread(0.1)).unwrap();
        assert!(found.text.contains("for 45 % of the time"), "{}", found.text);
        assert_eq!(descheduled(&held, two_seconds, &thread(0.95)), None, "it was busy itself");
    }

    #[test]
    fn a_core_that_others_use_is_not_the_generators_load() {
        let full =
            CoreShare { busy: 1.0, user: 0.7, system: 0.2, soft_interrupts: 0.1, ..CoreShare::default() };
        let found = |busy, waited| busy_core(0, &full, Some(OwnUse { busy, waited })).unwrap();
        let (ours, theirs, fight) = (found(0.85, 0.0), found(0.3, 0.02), found(0.3, 0.4));
        assert_eq!((ours.id.as_str(), ours.severity), ("client-bound-core", Severity::Invalid));
        assert_eq!((theirs.id.as_str(), theirs.severity), ("core-shared", Severity::Warning));
        assert!(theirs.text.starts_with("other processes had 60 % of core 0"), "{}", theirs.text);
        assert_eq!((fight.id.as_str(), fight.severity), ("core-shared", Severity::Invalid));
        assert!(fight.text.contains("waited for it 40 % of the time"), "{}", fight.text);
        assert_eq!(busy_core(0, &CoreShare { busy: 0.7, ..full }, None), None);
        assert_eq!(
            busy_core(0, &full, None).unwrap().id,
            "client-bound-core",
            "what is not known is not excused"
        );
    }
}
