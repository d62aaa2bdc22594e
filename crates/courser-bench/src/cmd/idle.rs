//! `idle`: connections that stay open and silent, and what the server holds for each.

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
    let spec = args.spec();
    let plan = spec.plan(files::READ)?;
    let mut session = Session::open(&spec, &args.common.output, &plan)?;
    let before = Reader::new(&spec.server)?.0.read();
    let (outcome, mut runs) = session.runner.run("idle", &plan)?;
    if let Some(run) = runs.first_mut() {
        note(run, &before, &outcome);
    }
    let asked = Asked { command: "idle", kind: LoadKind::Closed, rate_to: None, rules: Vec::new() };
    crate::deliver::deliver(&session.record(&plan, asked, runs), &args.common.output)
}

/// Memory of the server with the connections and without; that of the generator goes with it.
fn note(run: &mut Run, before: &Reading, outcome: &Outcome<Reading>) {
    let Some(counted) = outcome.windows.first() else { return };
    let Some([_, after]) = &counted.samples else { return };
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
}
