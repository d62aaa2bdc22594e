//! What is wrong, whose fault it is and what to do about it, in words: a pure function of the status. It is computed where
//! the status is, so that all who show it say the same. May not know who shows it.

use std::collections::BTreeMap;

use courser_session::ResumptionFailure;
use courser_telemetry::{Cause, CloseReason};

use crate::status::recent::{Finding, FindingLevel, Recent};
use crate::status::{Generation, RefusedStaple, Status};

/// Above it clients notice that nobody accepts them, in microseconds.
const LONG_WAIT: u64 = 20_000;

/// Clients that wait to be accepted, from which on it is no burst of a moment.
const LONG_QUEUE: u64 = 100;

/// A worker that waits for events less than a tenth of its time is full: bursts find no room.
const FULL: f64 = 0.9;

/// Share of connections that fail, from which on somebody should look: what courser or a backend causes, and what clients do.
/// `packaging/prometheus/courser.rules.yml` has the same.
const OURS: f64 = 0.05;
const CLIENTS: f64 = 0.2;

/// Fewer in all the time that is looked at are chance.
const FEW: f64 = 3.0;

/// What is wrong, the worst first.
pub(crate) fn findings(status: &Status) -> Vec<Finding> {
    let mut found = Findings::default();
    found.state(&status.state);
    found.generation(status);
    found.backends(status);
    if let Some(recent) = &status.recent {
        found.waiting(status, recent);
        found.shed(recent);
        found.failures(status, recent);
        found.resumption(recent);
        found.losses(recent);
    }
    found.limit(status);
    found.fleet(status);
    // Stable: within a level the order stays.
    found.0.sort_by_key(|finding| finding.level);
    found.0
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn problem(&mut self, cause: Cause, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(FindingLevel::Problem, cause, what.into(), remedy.into());
    }

    fn warning(&mut self, cause: Cause, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(FindingLevel::Warning, cause, what.into(), remedy.into());
    }

    fn add(&mut self, level: FindingLevel, cause: Cause, what: String, remedy: String) {
        self.0.push(Finding { level, cause: cause.name().to_owned(), what, remedy });
    }

    fn state(&mut self, state: &str) {
        match state {
            "ready" | "" => {}
            "starting" => {
                self.warning(Cause::None, "No connection is accepted yet: the program starts.", "Wait.");
            }
            "draining" => self.warning(
                Cause::None,
                "The program drains: it accepts no connection, and ends when the open ones have ended.",
                "Wait, or send a second SIGTERM to end at once.",
            ),
            stuck => self.problem(
                Cause::Courser,
                format!("A part of the program is stuck: {stuck}. Its connections wait."),
                "Restart the program, and report it with a stack of the thread.",
            ),
        }
    }

    fn generation(&mut self, status: &Status) {
        let Some(generation) = &status.generation else { return };
        if let Some(why) = generation.last_reload.as_ref().and_then(|last| last.refused.as_ref()) {
            let (number, why) = (generation.number, why.lines().next().unwrap_or_default());
            let what = format!("The last reload was refused, and generation {number} serves on: {why}");
            self.problem(Cause::Courser, what, "Run `courser check`, mend the file, then `courser reload`.");
        }
        for certificate in &generation.ending {
            let (name, key, left) = (&certificate.name, &certificate.key, certificate.days_left);
            // Whole days of it, so that one of six days is not warned of on its first.
            let lifetime = certificate.lifetime_s / 86_400;
            let mend = "Renew it: a changed file is served within seconds (`reload_on_change`).";
            let stuck = "Its renewal does not work: look at the client of the authority.";
            if left < 0 {
                let what = format!("The certificate of {name} ({key}) has expired: clients refuse it.");
                self.problem(Cause::Courser, what, mend);
            } else if left * 10 < lifetime {
                let what = format!(
                    "The certificate of {name} ({key}) has {left} days left, less than a tenth of its lifetime."
                );
                self.problem(Cause::Courser, what, stuck);
            } else if left * 3 < lifetime {
                let what = format!(
                    "The certificate of {name} ({key}) has {left} days left, less than a third of its lifetime."
                );
                self.warning(Cause::Courser, what, mend);
            }
        }
        self.staples(generation);
    }

    fn staples(&mut self, generation: &Generation) {
        let mend = "Get a new one from the authority: a changed file is taken over within seconds.";
        for row in &generation.staples {
            let of = format!("{} ({})", row.name, row.key);
            match (row.state.as_str(), row.is_demanded) {
                ("sent", _) if row.left_s * 3 >= row.lifetime_s => {}
                ("sent", _) => {
                    let hours = row.left_s / 3600;
                    let what =
                        format!("The staple of {of} has {hours} h left, less than a third of its time.");
                    self.warning(Cause::Courser, what, mend);
                }
                (_, true) => {
                    let what = format!(
                        "The certificate of {of} demands a staple, and none is sent: clients that know it refuse it."
                    );
                    self.problem(Cause::Courser, what, mend);
                }
                ("not_yet", false) => {
                    let what = format!("The staple of {of} counts in the future only, and is not sent.");
                    self.warning(Cause::Courser, what, "Look at the clock.");
                }
                (_, false) => {
                    let what = format!("The staple of {of} has expired, and is not sent.");
                    self.warning(Cause::Courser, what, mend);
                }
            }
        }
        for RefusedStaple { file, why } in &generation.refused_staples {
            self.warning(Cause::Courser, format!("The staple {file} is not sent: {why}."), mend);
        }
    }

    fn backends(&mut self, status: &Status) {
        let mut pools: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for server in &status.backends.servers {
            let (up, all) = pools.entry(&server.pool).or_default();
            *up += usize::from(server.gets_connections());
            *all += 1;
        }
        for (pool, (up, all)) in pools {
            let away = all - up;
            if up == 0 {
                let what = format!("No server of pool {pool} is up: its clients get no answer.");
                self.problem(Cause::Backend, what, "Section 7 and `courser backend list` say why.");
            } else if away > 0 {
                let what = format!("{away} of {all} servers of pool {pool} get no new connections.");
                self.warning(Cause::Backend, what, "Section 7 and `courser backend list` say why.");
            }
        }
    }

    /// Whether clients wait for a worker, and what keeps it.
    fn waiting(&mut self, status: &Status, recent: &Recent) {
        let wait = recent.steps.get("queue").map_or(0, |step| step.p50_us);
        let queued: u64 = status.listeners.iter().map(|listener| listener.queue_length).sum();
        let fullest = status.listeners.iter().max_by_key(|listener| listener.queue_length);
        if wait >= LONG_WAIT || queued >= LONG_QUEUE {
            let name = fullest.map_or("", |listener| listener.name.as_str());
            let (ms, why) = (wait / 1000, busy_with(recent));
            let what =
                format!("Clients of listener {name} wait {ms} ms for a worker, {queued} wait now: {why}.");
            self.problem(Cause::Courser, what, relief(recent));
        } else if !recent.busy.is_empty() && recent.busy.iter().all(|busy| *busy > FULL) {
            let what = format!("No worker has time left: {}.", busy_with(recent));
            self.warning(Cause::Courser, what, relief(recent));
        }
        if recent.syn_dropped > 0.0 {
            let rate = recent.syn_dropped;
            let what =
                format!("The kernel drops {rate:.1} connection requests a second before they are accepted.");
            let remedy =
                "Clients try again after a second. Add processors; for short bursts, raise `backlog`.";
            self.problem(Cause::Courser, what, remedy);
        }
    }

    /// What is not served in overload. Who has gone meanwhile would have gone without it too, now and then.
    fn shed(&mut self, recent: &Recent) {
        let shed = || recent.shed.iter().filter(|(name, _)| !name.ends_with("/gone"));
        let Some((worst, _)) = shed().max_by(|a, b| a.1.total_cmp(b.1)) else { return };
        let rate: f64 = shed().map(|(_, rate)| rate).sum();
        let what = format!(
            "{rate:.1} clients a second are not served, as there are more than can be: mostly {worst}."
        );
        self.problem(Cause::Courser, what, format!("Section 6 has all stages. {}", relief(recent)));
    }

    fn limit(&mut self, status: &Status) {
        let (open, limit) = (status.connections.open.values().sum::<u64>(), status.connections.limit);
        if limit > 0 && open >= limit {
            let what = format!(
                "All {limit} connections that `max_connections` allows are open: further clients wait."
            );
            let remedy = "Raise `max_connections` and the limit of open files, or shorten `idle_timeout`.";
            self.problem(Cause::Courser, what, remedy);
        }
    }

    fn failures(&mut self, status: &Status, recent: &Recent) {
        for (cause, limit) in [(Cause::Courser, OURS), (Cause::Backend, OURS), (Cause::Client, CLIENTS)] {
            // Probes are the health checks of others, mostly.
            let is_counted = |reason: &str| reason != CloseReason::Probe.name();
            let rows = status.failures.iter();
            let rows = || rows.clone().filter(|row| row.cause == cause.name() && is_counted(&row.reason));
            let sum: f64 = rows().map(|row| row.rate).sum();
            let Some(worst) = rows().max_by(|a, b| a.rate.total_cmp(&b.rate)) else { continue };
            if sum < limit * recent.closed || sum * recent.seconds < FEW {
                continue;
            }
            let percent = 100.0 * (sum / recent.closed).min(1.0);
            let whose = match cause {
                Cause::Client => "clients",
                Cause::Backend => "backends",
                Cause::Courser | Cause::None => "this program or its limits",
            };
            let reason = &worst.reason;
            let meaning =
                CloseReason::ALL.iter().find(|known| known.name() == reason).map(|known| known.meaning());
            let meaning = meaning.unwrap_or_default();
            let what =
                format!("{percent:.0} % of connections fail because of {whose}, mostly {reason}: {meaning}");
            let remedy = format!("Look at the log for close_reason={reason}: `detail` says more.");
            match cause {
                Cause::Client => self.warning(cause, what, remedy),
                _ => self.problem(cause, what, remedy),
            }
        }
    }

    fn resumption(&mut self, recent: &Recent) {
        let Some(missed) = Missed::of(recent) else { return };
        if missed.rate * recent.seconds < FEW || missed.share < 0.2 {
            return;
        }
        self.warning(Cause::Courser, format!("{}.", missed.sentence()), missed.remedy());
    }

    fn losses(&mut self, recent: &Recent) {
        if recent.log_lines_lost > 0.0 {
            let rate = recent.log_lines_lost;
            let what = format!(
                "{rate:.1} log lines a second are lost: what reads them is too slow, or the disk is full."
            );
            let remedy =
                "Look at what reads standard output and standard error, or at the disk of `log_file`.";
            self.problem(Cause::Courser, what, remedy);
        }
    }

    fn fleet(&mut self, status: &Status) {
        for key in status.keys.iter().filter(|key| key.clock != "agrees") {
            let what = format!("The clock of this host does not agree with the keys of fleet {}.", key.fleet);
            self.problem(Cause::Courser, what, "Set the clock (NTP).");
        }
        for peer in status.messages.iter().flat_map(|messages| &messages.peers) {
            let (name, seconds) = (&peer.name, peer.last_seen_ms / 1000);
            if peer.is_silent {
                let what = format!("Host {name} of the fleet was not heard for {seconds} s.");
                let remedy = "Look whether it runs, and whether its messages arrive: `courser fleet watch`.";
                self.warning(Cause::None, what, remedy);
            } else if peer.is_clock_off {
                let what = format!("The clock of host {name} differs by {} ms.", peer.clock_ahead_ms);
                self.warning(Cause::None, what, "Set the clocks (NTP).");
            }
        }
    }
}

/// What keeps workers, as far as handshakes do.
fn busy_with(recent: &Recent) -> String {
    let busy: f64 = recent.busy.iter().sum();
    let full = recent.busy.iter().filter(|busy| **busy > FULL).count();
    let who = match full {
        0 => return "workers have time; look whether something stops them".to_owned(),
        _ if full == recent.busy.len() => "all workers are busy".to_owned(),
        _ => format!("{full} of {} workers are busy", recent.busy.len()),
    };
    let dearest = recent.handshake_cpu.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let Some((kind, time)) = dearest.filter(|(_, time)| **time > 0.3 * busy) else { return who };
    let percent = 100.0 * (time / busy).min(1.0);
    let (kind, key) = kind.split_once('/').unwrap_or((kind, ""));
    match kind {
        "none" => format!("{who}, {percent:.0} % of it with {key} handshakes that fail"),
        "full" => format!("{who}, {percent:.0} % of it with full {key} handshakes"),
        by => format!("{who}, {percent:.0} % of it with handshakes resumed by {by}"),
    }
}

/// What would help most, the cheapest first.
fn relief(recent: &Recent) -> String {
    let busy: f64 = recent.busy.iter().sum();
    let mut advice = Vec::new();
    if let Some(missed) = Missed::of(recent).filter(|missed| missed.share >= 0.1) {
        advice.push(format!("{}. {}", missed.sentence(), missed.remedy()));
    }
    if recent.handshake_cpu.get("full/RSA").is_some_and(|time| *time > 0.3 * busy) {
        advice.push("Serve an ECDSA certificate beside the RSA one: its signature costs a tenth.".to_owned());
    }
    if advice.is_empty() {
        advice.push("Add processors or hosts.".to_owned());
    }
    advice.join(" ")
}

/// Sessions that were offered and not resumed.
struct Missed {
    rate: f64,
    /// Of all handshakes.
    share: f64,
    /// The most frequent.
    why: ResumptionFailure,
}

impl Missed {
    fn of(recent: &Recent) -> Option<Self> {
        let (rate, done) =
            (recent.not_resumed.values().sum::<f64>(), recent.handshakes.values().sum::<f64>());
        let (worst, _) = recent.not_resumed.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        let why = ResumptionFailure::ALL.into_iter().find(|why| why.name() == worst)?;
        Some(Self { rate, share: if done > 0.0 { (rate / done).min(1.0) } else { 0.0 }, why })
    }

    fn sentence(&self) -> String {
        let (percent, why, name) = (100.0 * self.share, self.why, self.why.name());
        format!("{percent:.0} % of handshakes offer a session that is not resumed, mostly {name}: {why}")
    }

    fn remedy(&self) -> &'static str {
        use ResumptionFailure as Why;
        match self.why {
            Why::UnknownKey | Why::Forged | Why::UnknownFormat | Why::Malformed => {
                "It is a ticket of another fleet, or from before a restart: give all hosts that these clients reach one \
                 fleet key (`fleet.key`), a lone host a `state_folder`."
            }
            Why::NotFound => "Share sessions with the other hosts (`fleet.listen`, or `sessions.store`).",
            Why::Evicted => "Raise `sessions.cache_size`.",
            Why::NotFoundRemotely => "Another host of the same name may be in no fleet with this one.",
            Why::PullTimeout => "Look at the fleet's peers: they are slow to answer, or gone.",
            Why::StoreTimeout => "Look at the session store: it is slow to answer, or gone.",
            Why::Expired => "Clients come back later than `sessions.lifetime`: raise it, if you may.",
            Why::NotYetValid => "Set the clocks of all hosts (NTP).",
            Why::OtherPolicy | Why::OtherParameters => {
                "It was made under other settings: after a change this passes; else give all hosts the same ones."
            }
            Why::Deleted => {
                "Handshakes from these sessions end badly: look at the log for what follows `session`."
            }
            Why::NotOffered => "Nothing is to be done.",
        }
    }
}

#[cfg(test)]
mod tests {
    use courser_tls::StapleError;

    use super::*;
    use crate::status::recent::{FailureRow, RecentStep};
    use crate::status::{Connections, EndingCertificate, LastReload, ListenerRow, StapleRow};

    fn listener(name: &str, queue_length: u64) -> ListenerRow {
        let name = name.to_owned();
        ListenerRow { name, open: 0, closed: 0, queue_length, queue_limit: 4096, syn_dropped: 0 }
    }

    fn rates<const N: usize>(rates: [(&str, f64); N]) -> BTreeMap<String, f64> {
        rates.map(|(name, rate)| (name.to_owned(), rate)).into()
    }

    fn failure(reason: CloseReason, rate: f64) -> FailureRow {
        let cause = reason.cause().name().to_owned();
        FailureRow { reason: reason.name().to_owned(), cause, count: 100, rate }
    }

    /// One that has work, and nothing wrong.
    fn well() -> Status {
        let recent = Recent {
            seconds: 10.0,
            closed: 100.0,
            handshakes: rates([("full", 50.0), ("ticket", 50.0)]),
            not_resumed: rates([("expired", 2.0)]),
            steps: [("queue".to_owned(), RecentStep { rate: 6.0, p50_us: 90, p99_us: 900 })].into(),
            busy: vec![0.5, 0.4],
            handshake_cpu: rates([("full/EC256", 0.3)]),
            ..Recent::default()
        };
        Status {
            state: "ready".to_owned(),
            failures: vec![failure(CloseReason::ClientReset, 3.0), failure(CloseReason::Probe, 90.0)],
            listeners: vec![listener("web", 3), listener("api", 1)],
            recent: Some(recent),
            ..Status::default()
        }
    }

    fn recent(status: &mut Status) -> &mut Recent {
        status.recent.as_mut().unwrap()
    }

    #[track_caller]
    fn only(status: &Status) -> (FindingLevel, String, String) {
        let mut all = findings(status);
        assert_eq!(all.len(), 1, "{all:#?}");
        let Finding { level, cause, what, remedy } = all.remove(0);
        (level, cause, format!("{what} -> {remedy}"))
    }

    #[test]
    fn where_nothing_is_wrong_nothing_is_said() {
        assert_eq!(findings(&well()), []);
        assert_eq!(findings(&Status::default()), []);
    }

    #[test]
    fn who_waits_for_full_handshakes_with_foreign_tickets_reads_just_that() {
        let mut status = well();
        status.listeners[0].queue_length = 80;
        let busy = recent(&mut status);
        busy.steps.get_mut("queue").unwrap().p50_us = 140_000;
        (busy.busy, busy.handshake_cpu) = (vec![0.99, 0.98], rates([("full/RSA", 1.8), ("ticket/RSA", 0.1)]));
        (busy.handshakes, busy.not_resumed) = (rates([("full", 800.0)]), rates([("unknown_key", 496.0)]));
        let found = findings(&status);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert_eq!((found[0].level, found[0].cause.as_str()), (FindingLevel::Problem, "courser"));
        assert_eq!(
            found[0].what,
            "Clients of listener web wait 140 ms for a worker, 81 wait now: all workers are busy, 91 % of it with full \
             RSA handshakes."
        );
        let begin = "62 % of handshakes offer a session that is not resumed, mostly unknown_key: the ticket's key is \
            unknown. It is a ticket of another fleet";
        assert!(found[0].remedy.starts_with(begin), "{}", found[0].remedy);
        assert!(found[0].remedy.contains("Serve an ECDSA certificate"), "{}", found[0].remedy);
        assert!(
            found[1].level == FindingLevel::Warning && found[1].what.starts_with("62 %"),
            "{:?}",
            found[1]
        );
    }

    #[test]
    fn a_long_queue_before_workers_that_have_time_is_told_as_that() {
        let mut status = well();
        status.listeners[1].queue_length = 100;
        let (level, _, text) = only(&status);
        assert_eq!(level, FindingLevel::Problem);
        assert!(
            text.starts_with("Clients of listener api wait 0 ms") && text.contains("workers have time"),
            "{text}"
        );
        recent(&mut status).busy = vec![1.0, 0.1];
        assert!(
            only(&status).2.contains("1 of 2 workers are busy. -> Add processors"),
            "{:?}",
            only(&status)
        );
    }

    #[test]
    fn who_is_not_served_is_counted_by_the_stage() {
        let mut status = well();
        recent(&mut status).shed = rates([("syn/dropped", 12.0), ("line/deadline", 0.5), ("line/gone", 7.0)]);
        let (level, cause, text) = only(&status);
        assert_eq!((level, cause.as_str()), (FindingLevel::Problem, "courser"));
        assert!(text.starts_with("12.5 clients a second are not served"), "{text}");
        assert!(text.contains("mostly syn/dropped"), "{text}");
    }

    #[test]
    fn failures_are_laid_at_the_door_of_who_caused_them() {
        for (reason, rate, level, begin) in [
            (
                CloseReason::NoBackend,
                6.0,
                FindingLevel::Problem,
                "6 % of connections fail because of backends, mostly no_backend",
            ),
            (
                CloseReason::NoLocalPort,
                6.0,
                FindingLevel::Problem,
                "6 % of connections fail because of this program",
            ),
            (
                CloseReason::NotTls,
                30.0,
                FindingLevel::Warning,
                "30 % of connections fail because of clients, mostly not_tls",
            ),
        ] {
            let mut status = well();
            status.failures = vec![failure(reason, rate)];
            let (found, cause, text) = only(&status);
            assert_eq!((found, cause.as_str()), (level, reason.cause().name()));
            assert!(text.starts_with(begin) && text.contains(reason.meaning()), "{text}");
            status.failures[0].rate = 0.2;
            assert_eq!(findings(&status), [], "two in ten seconds are chance");
        }
    }

    #[test]
    fn certificates_are_judged_by_their_own_lifetime() {
        let mut status = well();
        let mut at = |days_left, lifetime: i64| {
            let (name, key) = ("a.example".to_owned(), "EC256".to_owned());
            let ending = vec![EndingCertificate { name, key, days_left, lifetime_s: lifetime * 86_400 }];
            let (listeners, certificates) = (Vec::new(), 1);
            let generation =
                Generation { number: 1, age_s: 1, listeners, certificates, ending, ..Generation::default() };
            status.generation = Some(generation);
            findings(&status).pop().map(|finding| (finding.level, finding.what))
        };
        assert!(at(31, 90).is_none() && at(3, 6).is_none() && at(122, 365).is_none());
        assert!(matches!(at(29, 90), Some((FindingLevel::Warning, what)) if what.contains("29 days left")));
        assert!(
            matches!(at(8, 90), Some((FindingLevel::Problem, what)) if what.contains("less than a tenth"))
        );
        assert!(matches!(at(-1, 90), Some((FindingLevel::Problem, what)) if what.contains("has expired")));
    }

    #[test]
    fn a_staple_that_is_not_sent_is_a_problem_where_clients_expect_it() {
        let mut status = well();
        let mut at = |state: &str, left_s, is_demanded| {
            let (name, key, state) = ("a.example".to_owned(), "EC256".to_owned(), state.to_owned());
            let staples = vec![StapleRow { name, key, state, left_s, lifetime_s: 7 * 86_400, is_demanded }];
            status.generation = Some(Generation { number: 1, staples, ..Generation::default() });
            findings(&status).pop().map(|finding| (finding.level, finding.what))
        };
        assert!(at("sent", 3 * 86_400, true).is_none());
        assert!(
            matches!(at("sent", 86_400, true), Some((FindingLevel::Warning, what)) if what.contains("24 h left"))
        );
        assert!(
            matches!(at("expired", -1, false), Some((FindingLevel::Warning, what)) if what.contains("has expired"))
        );
        for state in ["missing", "expired", "not_yet"] {
            let found = at(state, -1, true);
            assert!(
                matches!(found, Some((FindingLevel::Problem, what)) if what.contains("demands a staple"))
            );
        }
        let (file, why) = ("site.ocsp".to_owned(), StapleError::Revoked.to_string());
        let refused_staples = vec![RefusedStaple { file, why }];
        status.generation = Some(Generation { number: 1, refused_staples, ..Generation::default() });
        let found = findings(&status).pop().unwrap();
        assert_eq!(found.level, FindingLevel::Warning);
        assert_eq!(found.what, "The staple site.ocsp is not sent: it says that the certificate is revoked.");
    }

    #[test]
    fn the_worst_stands_first() {
        let mut status = well();
        status.state = "draining".to_owned();
        let last_reload = Some(LastReload {
            age_s: 3,
            refused: Some("a.toml:3:1: unknown key `listne`\n  help".to_owned()),
            needs_restart: Vec::new(),
        });
        let (listeners, ending) = (Vec::new(), Vec::new());
        status.generation =
            Some(Generation { number: 4, age_s: 1, listeners, ending, last_reload, ..Generation::default() });
        status.connections =
            Connections { limit: 10, open: [("relay".to_owned(), 10)].into(), ..Connections::default() };
        recent(&mut status).syn_dropped = 0.5;
        let found = findings(&status);
        let levels: Vec<_> = found.iter().map(|finding| finding.level).collect();
        use FindingLevel::{Problem, Warning};
        assert_eq!(levels, [Problem, Problem, Problem, Warning], "{found:#?}");
        assert!(
            found[0].what.ends_with("generation 4 serves on: a.toml:3:1: unknown key `listne`"),
            "{found:#?}"
        );
    }
}
