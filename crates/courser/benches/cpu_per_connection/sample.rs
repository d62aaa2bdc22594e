//! One sample: a fresh terminator, verified, warmed up, measured.

use std::time::Duration;

use courser_testkit::{
    OriginServer,
    client::{Client, Resume, Terms, Version},
    load::{Load, Outcome, Until, Workload, hold},
    usage::{CoreTime, core_time},
};

use crate::{
    case::{ANSWER, Case},
    stage::Stage,
    terminator::{Server, Terminator},
};

/// A full handshake brings so many tickets of TLS 1.3: connections that can be resumed at a time.
const TICKETS_OF_ONE: usize = 2;

/// A transfer stands for so many connections.
const TRANSFERS: usize = 100;

/// A measured figure and how busy the cores were meanwhile, as shares from 0 to 1; 0 in the memory case.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// In the case's unit, per connection.
    pub(crate) value: f64,
    /// Share of its core that the terminator used.
    pub(crate) server: f64,
    /// Share of that core that was used by anybody.
    pub(crate) server_core: f64,
    /// Share of their core that client and origin used.
    pub(crate) client: f64,
    /// Share of that core that was used by anybody.
    pub(crate) client_core: f64,
}

impl Sample {
    /// Measures `lane` in `case`; the error says why it cannot be.
    pub(crate) fn take(case: Case, lane: &Terminator, stage: &Stage) -> Result<Self, String> {
        let (server, _origin) =
            serve(case, lane, stage).map_err(|why| without_group(case, lane, stage, why))?;
        let mut client = Client::offering(server.address(), case.terms());
        if let Some(pause) = case.pause_in_hello() {
            client = client.with_hello_in_two(pause);
        }
        match case {
            Case::IdleMemory => memory(&server, &client, stage),
            _ => processor_time(case, &server, &client, stage),
        }
    }
}

/// Starts it, and has it prove that it does what the case says.
fn serve(case: Case, lane: &Terminator, stage: &Stage) -> Result<(Server, OriginServer), String> {
    let origin = OriginServer::http();
    let server = lane.start(case, &stage.setting(case, origin.address()))?;
    stage.verify(case, server.address())?;
    Ok((server, origin))
}

/// What fails with X25519MLKEM768 and goes well with X25519 has not got the group: some refuse to start, some every handshake.
fn without_group(case: Case, lane: &Terminator, stage: &Stage, why: String) -> String {
    let group = case.terms().profile.group();
    let is_asked_for = group != Case::Tls13EcdsaHandshake.terms().profile.group();
    match is_asked_for && serve(Case::Tls13EcdsaHandshake, lane, stage).is_ok() {
        true => format!("no {group} in this build of its TLS library"),
        false => why,
    }
}

fn processor_time(case: Case, server: &Server, client: &Client, stage: &Stage) -> Result<Sample, String> {
    let Terms { version, resume, .. } = case.terms();
    let resumed = resume != Resume::Never;
    // The client uses a ticket of TLS 1.3 once (RFC 8446, appendix C.4), and each connection brings the next one.
    let is_used_once = resumed && version == Version::Tls13;
    let concurrency = if is_used_once { TICKETS_OF_ONE } else { stage.scale.concurrency };
    if resumed {
        // One full connection fills the client's session store; from then on a full handshake is a failure.
        run(client, Workload::Request(ANSWER), false, 1, 1)?;
    }
    let connections = match case.mebibytes() {
        Some(_) => stage.scale.connections / TRANSFERS,
        None => stage.scale.connections,
    };
    run(client, case.exchange(), resumed, connections.div_ceil(8), concurrency)?;
    let cores = || (core(stage.cores.server), core(stage.cores.client));
    let (before, cores_before) = (server.process().cpu_time(), cores());
    let outcome = run(client, case.exchange(), resumed, connections, concurrency)?;
    let (after, cores_after) = (server.process().cpu_time(), cores());
    let used = after.saturating_sub(before);
    Ok(Sample {
        value: used.as_secs_f64() * 1e6 / as_f64(connections) / case.mebibytes().unwrap_or(1.0),
        server: share(used, outcome.elapsed),
        server_core: cores_after.0.since(cores_before.0).busy,
        client: share(outcome.own_cpu, outcome.elapsed),
        client_core: cores_after.1.since(cores_before.1).busy,
    })
}

fn memory(server: &Server, client: &Client, stage: &Stage) -> Result<Sample, String> {
    let before = server.process().memory().pss;
    let held = hold(client, stage.scale.idle, stage.scale.concurrency, ANSWER);
    let held = held.map_err(|error| format!("idle connections: {error}"))?;
    let grown = server.process().memory().pss.saturating_sub(before);
    let kibibytes = usize::try_from(grown / 1024).unwrap_or(usize::MAX);
    let value = as_f64(kibibytes) / as_f64(held.len());
    Ok(Sample { value, ..Sample::default() })
}

fn run(
    client: &Client,
    exchange: Workload,
    resumed: bool,
    connections: usize,
    concurrency: usize,
) -> Result<Outcome, String> {
    let until = Until::Connections(connections);
    Load { workload: exchange, resumed, concurrency, until }
        .run(client)
        .map_err(|failure| failure.to_string())
}

/// Without `/proc/stat` the cores' remarks are missing, no figure is.
fn core(core: usize) -> CoreTime {
    core_time(core).unwrap_or_default()
}

fn share(used: Duration, elapsed: Duration) -> f64 {
    used.as_secs_f64() / elapsed.as_secs_f64()
}

/// Counts here are far below 2^32.
fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
