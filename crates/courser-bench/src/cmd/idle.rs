//! `idle`: connections that stay open and silent, and what the server holds for each.
//!
//! Measured twice: opened slowly, where a handshake's memory is free again before the next one, and then all at once, where
//! the peak of all handshakes stays with the server.

use std::time::Duration;

use courser_lab::files;
use courser_lab::reading::{Reader, Reading};
use courser_load::run::Outcome;
use courser_machine::usage::{Held, UsageSample};
use courser_record::{Finding, IdleMemory, LoadKind, Run, Severity};

use crate::cli::IdleArgs;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::Session;

pub(crate) fn idle(args: &IdleArgs) -> Result<Ended, Failure> {
    let slowly = Duration::from_secs_f64(args.connections as f64 / args.open_rate);
    let spec = args.spec(slowly);
    let plan = spec.plan(files::READ)?;
    let mut session = Session::open(&spec, &args.common.output, &plan)?;
    let mut runs = Vec::new();
    // What the peak has taken of a server's memory may stay with it: slowly first.
    for (over, how) in [(slowly, format!("{}/s", args.open_rate)), (Duration::ZERO, "once".into())] {
        if session.runner.interrupt.came() {
            break;
        }
        let before = Reader::new(&spec.server)?.0.read();
        let plan = args.spec(over).plan(files::READ)?;
        let (outcome, run) = session.runner.run(&format!("idle, opened at {how}"), &plan)?;
        runs.extend(run.into_iter().map(|run| with_memory(run, &before, &outcome)));
    }
    let asked = Asked { command: "idle", kind: LoadKind::Closed, rate_to: None, rules: Vec::new() };
    crate::deliver::deliver(&session.record(&plan, asked, runs), &args.common.output)
}

/// Adds the memory of the server with the connections and without, and that of the generator.
fn with_memory(mut run: Run, before: &Reading, outcome: &Outcome<Reading>) -> Run {
    let Some(counted) = outcome.windows.first() else { return run };
    let Some([_, after]) = &counted.samples else { return run };
    let connections = counted.tally.succeeded.saturating_sub(counted.tally.failed());
    let between = |first: &Option<UsageSample>, last: &Option<UsageSample>| {
        let bytes =
            |sample: &Option<UsageSample>| sample.as_ref().and_then(|sample| sample.held).map(Held::bytes);
        Some(IdleMemory { connections, before_bytes: bytes(first)?, with_bytes: bytes(last)? })
    };
    if let Some(server) = &mut run.server {
        server.idle_memory = between(&before.server, &after.server);
    }
    if let Some(each) = between(&before.own, &after.own).and_then(|memory| memory.bytes_per_connection()) {
        let text =
            format!("{connections} connections held; the generator has {:.1} KiB for each", each / 1024.0);
        run.findings.push(Finding::new("held", Severity::Note, text, "memory is the proportional set size"));
    }
    run
}
