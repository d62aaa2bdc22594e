//! From what the engine counted to what a record says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use courser_load::offered::Session;
use courser_load::plan::{Model, Plan};
use courser_load::run::{Counted, Outcome, thread_name};
use courser_load::tally::{Negotiated, Tally, Times};
use courser_machine::machine;
use courser_machine::usage::{CoreShare, UsageSample};
use courser_record::times::{self, Moment};
use courser_record::{
    CoreUsage, CpuLimit, Envelope, FAILURE_SAMPLES, FailureSample, GeneratorThread, GeneratorUsage,
    Handshake, Machine, Outcomes, Run, RunTimes, Second, ServerThread, ServerUsage, Tool, Totals, Verdict,
};

use crate::files;
use crate::reading::{Reading, Watched};

/// What stands around a measurement that begins now, by this program on this machine.
pub fn envelope(cut: Option<&str>) -> Envelope {
    Envelope {
        tool: tool(),
        created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command_line: std::env::args().collect(),
        cut: cut.map(Into::into),
        machine: machine(),
    }
}

/// This program.
pub fn tool() -> Tool {
    Tool {
        name: "courser-bench".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: option_env!("COURSER_COMMIT").filter(|commit| !commit.is_empty()).map(Into::into),
        sha256: files::sha256(Path::new("/proc/self/exe")),
    }
}

/// This machine.
pub fn machine() -> Machine {
    let crypto = BTreeMap::from([("aws-lc-rs".to_owned(), crate::primitives::library_version())]);
    Machine { crypto, ..machine::read() }
}

/// One run for each window of the steady phase; each has all seconds of its own, the first also those before it and
/// the last those after it.
pub fn runs(label: &str, plan: &Plan, outcome: &Outcome<Reading>, watched: &Watched) -> Vec<Run> {
    let several = outcome.windows.len() > 1;
    let last = outcome.windows.len() - 1;
    let mut runs = Vec::new();
    for (number, counted) in outcome.windows.iter().enumerate() {
        let from = if number == 0 { Duration::ZERO } else { counted.window.from };
        let to = if number == last { Duration::MAX } else { counted.window.to };
        let step = counted.window.rate.filter(|_| several).map(|rate| format!("{label} at {rate:.0}/s"));
        let mut run = run(&step.unwrap_or_else(|| label.to_owned()), plan, outcome, counted, watched);
        let ours = |second: &&Second| (from..to).contains(&Duration::from_secs(second.second));
        run.seconds = outcome.seconds.iter().filter(ours).cloned().collect();
        runs.push(run);
    }
    runs
}

fn run(
    label: &str,
    plan: &Plan,
    outcome: &Outcome<Reading>,
    counted: &Counted<Reading>,
    watched: &Watched,
) -> Run {
    let window = counted.window;
    let end = Duration::from_secs(outcome.seconds.len() as u64).max(window.to);
    let at = |offset: Duration| unix_us(outcome.started + offset);
    let wire = &counted.tally.wire;
    Run {
        label: label.to_owned(),
        offered_rate: window.rate.map(|rate| plan.share.of_rate(rate)),
        window: RunTimes {
            start_unix_us: unix_us(outcome.started),
            steady_start_unix_us: at(window.from),
            steady_end_unix_us: at(window.to),
            end_unix_us: at(end),
        },
        totals: totals(plan, counted, at(window.from)),
        seconds: Vec::new(),
        server: server(counted, watched, [at(window.from), at(window.to)]),
        generators: vec![generator(plan, outcome, counted)],
        wire: (wire.full.handshakes + wire.resumed.handshakes > 0).then(|| wire.clone()),
        findings: Vec::new(),
        verdict: Verdict::valid(),
    }
}

fn totals(plan: &Plan, counted: &Counted<Reading>, since_us: u64) -> Totals {
    let tally = &counted.tally;
    let window = counted.window.to.saturating_sub(counted.window.from);
    let succeeded = tally.connections_succeeded;
    Totals {
        window_us: micros(window),
        sessions: tally.sessions,
        connections: Outcomes {
            attempted: tally.connections,
            succeeded,
            failed: tally.connections.saturating_sub(succeeded),
        },
        requests: requests(plan, tally),
        completed: Some(tally.completed),
        received_bytes: tally.payload_in,
        sent_bytes: tally.payload_out,
        failures: tally.failures.iter().map(|(class, count)| (class.to_string(), *count)).collect(),
        failure_samples: failure_samples(tally, since_us),
        negotiated: negotiated(tally),
        offered: tally.offered.iter().map(|(session, count)| (session.to_string(), *count)).collect(),
        tickets_received: tally.tickets.clone(),
        pages: tally.pages.iter().map(|(page, count)| (char::from(*page).to_string(), *count)).collect(),
        early_data_accepted: counts(tally, |negotiated| negotiated.early_data == Some(true)),
        alpn: tally.negotiated.iter().map(|(negotiated, count)| (alpn(negotiated), *count)).collect(),
        times: histograms(tally, matches!(plan.model, Model::Closed(_))),
    }
}

/// Transactions where they are requests.
fn requests(plan: &Plan, tally: &Tally) -> Outcomes {
    if !plan.has_requests() {
        return Outcomes::default();
    }
    Outcomes { attempted: tally.attempted, succeeded: tally.succeeded, failed: tally.failed() }
}

fn alpn(negotiated: &Negotiated) -> String {
    negotiated.alpn.as_deref().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
}

/// Handshakes of a kind.
pub fn counts(tally: &Tally, of: impl Fn(&Negotiated) -> bool) -> u64 {
    tally.negotiated.iter().filter(|(negotiated, _)| of(negotiated)).map(|(_, count)| count).sum()
}

fn failure_samples(tally: &Tally, since_us: u64) -> Vec<FailureSample> {
    let split = |text: &String| {
        let (class, detail) = text.split_once(": ").unwrap_or((text, ""));
        FailureSample { at_unix_us: since_us, class: class.to_owned(), detail: detail.to_owned() }
    };
    tally.failure_samples.iter().take(FAILURE_SAMPLES).map(split).collect()
}

fn negotiated(tally: &Tally) -> Vec<courser_record::Negotiated> {
    let one = |(negotiated, count): (&Negotiated, &u64)| courser_record::Negotiated {
        handshake: match negotiated.resumed {
            Session::None => Handshake::Full,
            Session::Id => Handshake::SessionId,
            Session::Ticket => Handshake::Ticket,
            Session::Psk => Handshake::Psk,
        },
        version: negotiated.version_name(),
        suite: negotiated.suite_name(),
        group: negotiated.group_name(),
        scheme: negotiated.scheme_name(),
        retried: negotiated.retried,
        count: *count,
    };
    tally.negotiated.iter().map(one).collect()
}

fn histograms(tally: &Tally, closed: bool) -> BTreeMap<String, courser_stats::Histogram> {
    let mut all = BTreeMap::new();
    if !closed {
        all.insert(times::RESPONSE_INTENDED.to_owned(), tally.response_intended.clone());
        all.insert(times::SCHEDULE_LAG.to_owned(), tally.lag.clone());
    }
    all.insert(times::RESPONSE_ACTUAL.to_owned(), tally.response_actual.clone());
    all.insert(times::LINGERING.to_owned(), tally.lingering.clone());
    for (times, resumed) in [(&tally.full, false), (&tally.resumed, true)] {
        all.extend(
            steps(times).map(|(moment, times)| (times::name(moment, resumed).to_owned(), times.clone())),
        );
    }
    all.retain(|_, histogram| histogram.count() > 0);
    all
}

fn steps(times: &Times) -> impl Iterator<Item = (Moment, &courser_stats::Histogram)> {
    [
        (Moment::Connect, &times.connect),
        (Moment::ServerHello, &times.server_hello),
        (Moment::Handshake, &times.handshake),
        (Moment::Confirmed, &times.confirmed),
        (Moment::FirstByte, &times.first_byte),
        (Moment::LastByte, &times.last_byte),
    ]
    .into_iter()
}

fn server(counted: &Counted<Reading>, watched: &Watched, ends_us: [u64; 2]) -> Option<ServerUsage> {
    let [before, after] = counted.samples.as_ref()?;
    let (first, last) = (before.server.as_ref()?, after.server.as_ref()?);
    let usage = last.since(first);
    let idle = cores(before, after, &watched.cpus);
    let mut server = ServerUsage {
        pids: first.pids.clone(),
        cgroup: watched.cgroup.clone(),
        user_us: micros(usage.user),
        system_us: micros(usage.system),
        idle: mean(idle.iter().map(|(_, share)| 1.0 - share.busy)),
        threads: usage.threads.iter().map(server_thread).collect(),
        memory_bytes: last.held.map(courser_machine::usage::Held::bytes),
        alignment_error_us: micros(usage.error) + off(first, ends_us[0]) + off(last, ends_us[1]),
        cpu_limit: cpu_limit(before, after, watched),
        ..ServerUsage::default()
    };
    server.divide(counted.tally.completed.connections);
    Some(server)
}

fn cpu_limit(before: &Reading, after: &Reading, watched: &Watched) -> Option<CpuLimit> {
    let (limit, counted) = (watched.limit?, after.throttling?.since(before.throttling?));
    Some(CpuLimit {
        quota_us: micros(limit.quota),
        period_us: micros(limit.period),
        periods: counted.periods,
        throttled_periods: counted.throttled_periods,
        throttled_us: micros(counted.throttled),
    })
}

/// How far a reading was from the moment that it was meant for, microseconds: the sampler sleeps until then, and wakes
/// when it is given a processor.
fn off(sample: &UsageSample, meant_us: u64) -> u64 {
    micros(sample.at.unix).abs_diff(meant_us)
}

fn server_thread(thread: &courser_machine::usage::ThreadUsage) -> ServerThread {
    ServerThread {
        tid: thread.tid,
        name: thread.name.clone(),
        user_us: micros(thread.user),
        system_us: micros(thread.system),
    }
}

fn generator(plan: &Plan, outcome: &Outcome<Reading>, counted: &Counted<Reading>) -> GeneratorUsage {
    let mut generator = GeneratorUsage { max_in_flight: outcome.most_in_flight, ..GeneratorUsage::default() };
    let Some([before, after]) = &counted.samples else { return generator };
    let pinned: Vec<usize> = plan.threads.iter().flatten().copied().collect();
    generator.cores = cores(before, after, &pinned).iter().map(core_usage).collect();
    if let (Some(first), Some(last)) = (&before.own, &after.own) {
        let usage = last.since(first);
        generator.cpu_us = micros(usage.user + usage.system);
        generator.handshakes = counted.tally.negotiated.total();
        generator.threads = threads(plan, first, last, counted);
    }
    generator
}

fn threads(
    plan: &Plan,
    first: &UsageSample,
    last: &UsageSample,
    counted: &Counted<Reading>,
) -> Vec<GeneratorThread> {
    let usage = last.since(first);
    let lag = counted.tally.lag.supports(0.99).then(|| counted.tally.lag.quantile(0.99)).flatten();
    let one = |(index, cpu): (usize, &Option<usize>)| {
        let used = usage.threads.iter().find(|thread| thread.name == thread_name(index))?;
        Some(GeneratorThread {
            cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            busy: Some(used.cpu().as_secs_f64() / usage.wall.as_secs_f64().max(1e-9)),
            run_queue_wait_us: used.run_queue_wait.map_or(0, micros),
            schedule_lag_p99_us: lag.map(|lag| lag.as_secs_f64() * 1e6),
        })
    };
    plan.threads.iter().enumerate().filter_map(one).collect()
}

/// Shares of these cores, or of all if none is named.
pub fn cores(before: &Reading, after: &Reading, which: &[usize]) -> Vec<(usize, CoreShare)> {
    let (Some(before), Some(after)) = (&before.cores, &after.cores) else { return Vec::new() };
    let shares = after.since(before).into_iter();
    shares.filter(|(cpu, _)| which.is_empty() || which.contains(cpu)).collect()
}

fn core_usage((cpu, share): &(usize, CoreShare)) -> CoreUsage {
    CoreUsage {
        cpu: u32::try_from(*cpu).unwrap_or(u32::MAX),
        busy: Some(share.busy),
        steal: Some(share.stolen),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let count = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
}

/// Microseconds, at most `u64::MAX`.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Microseconds since 1970; 0 for a time before.
pub fn unix_us(time: SystemTime) -> u64 {
    micros(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// The script is compiled and run as cargo does it, and git is the judge.
    #[test]
    fn a_release_has_the_commit_that_git_describes() {
        let (folder, here) = (courser_testkit::Folder::new(), env!("CARGO_MANIFEST_DIR"));
        let script = folder.join("build");
        let compiled = Command::new("rustc")
            .args(["--edition", "2024", "-o"])
            .arg(&script)
            .arg("build.rs")
            .current_dir(here)
            .status();
        assert!(compiled.unwrap().success());
        let printed = |profile: &str| {
            let mut command = Command::new(&script);
            let output =
                command.current_dir(here).env("PROFILE", profile).env_remove("COURSER_COMMIT").output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        assert!(!printed("debug").contains("rustc-env"));
        let git = Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(here).output();
        let Some(described) = git.ok().filter(|output| output.status.success()) else {
            return courser_testkit::skip("this is no git repository");
        };
        let line = format!(
            "cargo::rustc-env=COURSER_COMMIT={}",
            String::from_utf8(described.stdout).unwrap().trim()
        );
        assert!(printed("release").lines().any(|printed| printed == line), "{line}");
    }
}
