//! `idle`: connections that stay open and silent, and what the server holds for each.

use std::time::Duration;

use courser_load::plan::{Model, Phases, Plan, Workload};
use courser_load::run::Outcome;
use courser_machine::usage::{Held, UsageSample};
use courser_record::{Finding, IdleMemory, LoadKind, Run, Severity};

use crate::cli::{CommonArgs, IdleArgs};
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::reading::{Reader, Reading};
use crate::session::Session;
use crate::setup::{self, Intent};
use courser_load::url::Scheme;

pub(crate) fn idle(args: &IdleArgs) -> Result<Ended, Failure> {
    let plan = plan(args)?;
    let mut session = Session::open(&args.url, &args.common, 1, &plan)?;
    let before = Reader::new(&args.common.server)?.0.read();
    let (outcome, mut runs) = session.run("idle", &plan)?;
    if let Some(run) = runs.first_mut() {
        note(run, &before, &outcome);
    }
    let asked = Asked {
        command: "idle",
        kind: LoadKind::Closed,
        reuse: 1,
        rate_to: None,
        rules: Vec::new(),
        request: None,
    };
    crate::deliver::deliver(&session.record(&plan, asked, runs), &args.common.output)
}

/// All connections are opened at once, at the start of the steady phase; they are looked at when it ends.
fn plan(args: &IdleArgs) -> Result<Plan, Failure> {
    let first = match args.url.scheme {
        Scheme::Https | Scheme::Http => Some(setup::plain_request(&args.url)?),
        Scheme::Tls | Scheme::Tcp => None,
    };
    let intent =
        Intent { model: Model::Closed(args.connections), reuse: 1, exchange: Workload::Hold { first } };
    let plan = setup::plan(&args.url, intent, &at_once(&args.common))?;
    let in_flight = usize::try_from(args.connections).unwrap_or(usize::MAX);
    Ok(Plan { phases: Phases { in_flight, ..plan.phases }, ..plan })
}

fn at_once(common: &CommonArgs) -> CommonArgs {
    let mut common = common.clone();
    (common.run.warm_up, common.run.ramp_up) = (Duration::ZERO, Duration::ZERO);
    common
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
