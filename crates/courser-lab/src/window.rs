//! From a run of the engine to a window of a block: what a suite's record keeps of it.

use courser_record::lab::{Figure, WindowResult};
use courser_record::times::{self, Moment};
use courser_record::{Handshake, Phase, Run, Totals};
use courser_stats::Histogram;

/// Findings that hold for every block of every suite, and are said once of all of them.
const SAID: [&str; 3] = ["closed-loop", "loopback", "cpu-limit"];

/// What a run comes to. `per_arrival`: transactions that each arrival of its schedule stands for.
pub(crate) fn window_result(label: &str, run: &Run, per_arrival: f64) -> WindowResult {
    let totals = &run.totals;
    let asks = totals.requests.attempted > 0;
    let transactions = if asks { &totals.requests } else { &totals.connections };
    let server = run.server.as_ref();
    let generator = run.generators.first();
    let busiest =
        generator.map(|generator| generator.cores.iter().filter_map(|core| core.busy).fold(0.0, f64::max));
    let lag = generator.and_then(|generator| {
        generator.threads.iter().filter_map(|thread| thread.schedule_lag_p99_us).reduce(f64::max)
    });
    let steady = run.seconds.iter().filter(|second| second.phase == Phase::Steady);
    WindowResult {
        label: label.to_owned(),
        window_us: totals.window_us,
        offered_tps: run.offered_rate.map(|rate| rate * per_arrival),
        attempted: transactions.attempted,
        succeeded: transactions.succeeded,
        failed: transactions.failed,
        connections: totals.connections.succeeded,
        completed: totals.completed,
        full: handshakes(totals, true),
        resumed: handshakes(totals, false),
        offered: Some(offered(totals)),
        failures: totals.failures.iter().map(|(class, count)| (class.clone(), *count)).collect(),
        response: (&response(totals)).into(),
        full_handshake: (&handshake(totals, false)).into(),
        resumed_handshake: (&handshake(totals, true)).into(),
        user_us: server.map(|server| server.user_us),
        system_us: server.map(|server| server.system_us),
        memory_bytes: server.and_then(|server| server.memory_bytes),
        target_idle: server.and_then(|server| server.idle),
        throttled_us: server.and_then(|server| server.cpu_limit).map(|limit| limit.throttled_us),
        generator_busy: busiest,
        lag_p99_us: lag,
        inconclusive: run.verdict.inconclusive.clone(),
        findings: run
            .findings
            .iter()
            .filter(|finding| !SAID.contains(&finding.id.as_str()))
            .cloned()
            .collect(),
        seconds: steady.map(|second| second.with(|response| *response.summary())).collect(),
        figures: distribution(totals),
    }
}

/// Each server's share of the answers, where they say whose they are.
fn distribution(totals: &Totals) -> Vec<Figure> {
    let all: u64 = totals.pages.iter().map(|(_, count)| count).sum();
    let share = |(page, count): (&String, &u64)| Figure {
        name: format!("server {page}"),
        unit: "% of answers".into(),
        value: 100.0 * *count as f64 / all as f64,
        low: None,
        high: None,
    };
    totals.pages.iter().map(share).collect()
}

fn handshakes(totals: &Totals, full: bool) -> u64 {
    let ours = totals.negotiated.iter().filter(|kind| (kind.handshake == Handshake::Full) == full);
    ours.map(|kind| kind.count).sum()
}

fn offered(totals: &Totals) -> u64 {
    totals.offered.iter().filter(|(by, _)| by.as_str() != "none").map(|(_, count)| count).sum()
}

/// From the intended start where there is one; the whole handshake where nothing is asked.
fn response(totals: &Totals) -> Histogram {
    let known = [times::RESPONSE_INTENDED, times::RESPONSE_ACTUAL];
    known.iter().find_map(|name| totals.times.get(*name)).cloned().unwrap_or_default()
}

fn handshake(totals: &Totals, resumed: bool) -> Histogram {
    totals.times.get(times::name(Moment::Handshake, resumed)).cloned().unwrap_or_default()
}
