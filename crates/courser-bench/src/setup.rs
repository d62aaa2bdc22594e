//! From flags to the plan of a run: looks names up, reads files, refuses what cannot be had.

use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use courser_load::http::{BodyCheck, Expect, ExpectedStatus, Method, Rendered, Request};
use courser_load::plan::{
    CloseMode, LoadTarget, Model, Offered, Phases, Plan, Reuse, Security, Sockets, Workload,
};
use courser_load::schedule::{Arrivals, Piece, Share};
use courser_load::tls_options::{ClientTlsOptions, EngineChoice, ResumeChoice};

use crate::cli::{CloseArg, CommonArgs, EngineArg, RequestArgs, ResumeArg, RunArgs, SocketArgs, TlsArgs};
use crate::exit::Failure;
use courser_load::url::{Scheme, Url};

/// Requests a client that asks for as many as fit makes of one connection.
const AS_MANY_AS_FIT: Option<u32> = None;

/// What kind of load a verb makes, before the flags that all share.
pub(crate) struct Intent {
    pub(crate) model: Model,
    pub(crate) reuse: u32,
    pub(crate) exchange: Workload,
}

/// The plan of a run.
pub(crate) fn plan(url: &Url, intent: Intent, common: &CommonArgs) -> Result<Plan, Failure> {
    let mut addresses = url.addresses().map_err(Failure::Unreachable)?;
    addresses.extend(&common.sockets.also);
    let reuse = match intent.reuse {
        0 => Reuse::Always,
        times => Reuse::Times(times),
    };
    let security = match url.is_secure() {
        true => Some(security(url, &common.tls, reuse)?),
        false => None,
    };
    Ok(Plan {
        target: LoadTarget { addresses, security },
        model: intent.model,
        reuse,
        exchange: intent.exchange,
        close: close(common.sockets.close),
        sockets: Sockets { sources: common.sockets.source.clone(), nagle: common.sockets.nagle },
        phases: phases(&common.run, &common.sockets),
        threads: threads(&common.run),
        share: common.run.share.map_or(Share::WHOLE, |(k, n)| Share { index: k - 1, of: n }),
        seed: common.run.seed,
    })
}

/// Sessions or connections at a steady rate.
pub(crate) fn steady(rate: f64, run: &RunArgs) -> Offered {
    offered(vec![Piece::even(rate, run.duration)], run)
}

/// A staircase over the whole duration.
pub(crate) fn staircase(from: f64, to: f64, steps: u32, run: &RunArgs) -> Offered {
    let rise = if steps > 1 { (to - from) / f64::from(steps - 1) } else { 0.0 };
    let step = |number: u32| Piece::even(from + rise * f64::from(number), run.duration / steps);
    offered((0..steps).map(step).collect(), run)
}

fn offered(steps: Vec<Piece>, run: &RunArgs) -> Offered {
    let arrivals = if run.poisson { Arrivals::Poisson(run.seed) } else { Arrivals::Even };
    Offered { steps, arrivals }
}

/// What each connection does, as the request flags say.
pub(crate) fn exchange(url: &Url, args: &RequestArgs) -> Result<Workload, Failure> {
    if let Some(bytes) = args.echo {
        return Ok(Workload::Echo { bytes, count: args.requests });
    }
    if matches!(url.scheme, Scheme::Tls | Scheme::Tcp) {
        let why = "an endpoint without http:// or https:// has no requests; give a URL, or --echo SIZE";
        return Err(Failure::usage(why));
    }
    let (request, expect) = (Arc::new(request(url, args)?), Arc::new(expect(args)?));
    let count = if args.keepalive { AS_MANY_AS_FIT } else { Some(args.requests) };
    Ok(Workload::Http { request, expect, count })
}

/// The plain request for a URL.
pub(crate) fn plain_request(url: &Url) -> Result<(Arc<Rendered>, Arc<Expect>), Failure> {
    let request = Request { target: url.path.clone(), host: url.host_field(), ..Request::default() };
    Ok((Arc::new(request.render().map_err(Failure::usage)?), Arc::default()))
}

fn request(url: &Url, args: &RequestArgs) -> Result<Rendered, Failure> {
    let header = |text: &String| {
        let (name, value) = text.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let headers: Option<Vec<_>> = args.headers.iter().map(header).collect();
    let headers = headers.ok_or_else(|| Failure::usage("a header field is written `Name: value`"))?;
    let method = if args.post.is_some() { Method::Post } else { Method::Get };
    let body = args.post.unwrap_or(0);
    let request = Request { method, target: url.path.clone(), host: url.host_field(), headers, body };
    request.render().map_err(Failure::usage)
}

fn expect(args: &RequestArgs) -> Result<Expect, Failure> {
    let body = match args.expect_sha256.as_deref() {
        None => BodyCheck::Length,
        Some("first") => BodyCheck::LikeTheFirst(Arc::new(OnceLock::new())),
        Some(hex) => BodyCheck::Sha256(hash(hex)?),
    };
    let status = args.expect_status.map_or(ExpectedStatus::Success, ExpectedStatus::Exactly);
    Ok(Expect { status, length: args.expect_length.map(|length| length as u64), body })
}

fn hash(hex: &str) -> Result<[u8; 32], Failure> {
    let byte = |at: usize| hex.get(2 * at..2 * at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    let bytes = bytes.filter(|_| hex.len() == 64).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| Failure::usage("--expect-sha256 takes 64 hexadecimal digits, or `first`"))
}

fn security(url: &Url, tls: &TlsArgs, reuse: Reuse) -> Result<Security, Failure> {
    let choice = ClientTlsOptions {
        engine: engine(tls.engine),
        versions: tls.tls.clone(),
        suites: tls.suites.clone(),
        groups: tls.groups.clone(),
        schemes: tls.schemes.clone(),
        alpn: tls.alpn.clone(),
        resume: if reuse == Reuse::Times(1) { ResumeChoice::Never } else { resume(tls.resume) },
        tickets_kept: tls.tickets,
        early_data: tls.early_data,
        server_names: server_names(url, tls)?,
        zipf: tls.zipf,
        ca: tls.ca.clone(),
        identity: tls.cert.clone().zip(tls.key.clone()),
    };
    choice.security().map_err(Failure::usage)
}

fn server_names(url: &Url, tls: &TlsArgs) -> Result<Vec<String>, Failure> {
    let Some(path) = &tls.sni_file else {
        return Ok(if tls.sni.is_empty() { vec![url.host.clone()] } else { tls.sni.clone() });
    };
    let text =
        fs::read_to_string(path).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?;
    let names: Vec<String> =
        text.lines().map(str::trim).filter(|name| !name.is_empty()).map(Into::into).collect();
    if names.is_empty() {
        return Err(Failure::usage(format!("{}: no name in it", path.display())));
    }
    Ok(names)
}

fn engine(engine: EngineArg) -> EngineChoice {
    match engine {
        EngineArg::Lean => EngineChoice::Lean,
        EngineArg::Real => EngineChoice::Real,
        EngineArg::Openssl => EngineChoice::Openssl,
    }
}

fn resume(resume: ResumeArg) -> ResumeChoice {
    match resume {
        ResumeArg::Ticket => ResumeChoice::Ticket,
        ResumeArg::Id => ResumeChoice::SessionId,
    }
}

fn close(close: CloseArg) -> CloseMode {
    match close {
        CloseArg::CloseNotify => CloseMode::CloseNotify,
        CloseArg::Fin => CloseMode::Fin,
        CloseArg::Rst => CloseMode::Reset,
    }
}

fn phases(run: &RunArgs, sockets: &SocketArgs) -> Phases {
    Phases {
        warm_up: run.warm_up,
        ramp: run.ramp_up,
        steady: run.duration,
        drain: run.drain,
        connect_timeout: sockets.connect_timeout,
        timeout: sockets.timeout,
        in_flight: run.in_flight,
    }
}

/// One thread per CPU that is named, or as many as are asked for; one if nobody says.
fn threads(run: &RunArgs) -> Vec<Option<usize>> {
    let cpus: Vec<Option<usize>> = run.cpus.iter().flat_map(|cpus| &cpus.0).map(|cpu| Some(*cpu)).collect();
    let count = run.threads.map_or(cpus.len().max(1), usize::from);
    (0..count).map(|index| cpus.get(index % cpus.len().max(1)).copied().flatten()).collect()
}

/// A plan of one connection: what `plan` does once, to see that it can be done.
pub(crate) fn probe(plan: &Plan) -> Plan {
    const MOMENT: Duration = Duration::from_millis(99);
    let once = Offered { steps: vec![Piece::even(10.0, MOMENT)], arrivals: Arrivals::Even };
    let exchange = match &plan.exchange {
        Workload::Http { request, expect, .. } => {
            Workload::Http { request: Arc::clone(request), expect: Arc::clone(expect), count: Some(1) }
        }
        Workload::Echo { bytes, .. } => Workload::Echo { bytes: *bytes, count: 1 },
        _ => Workload::Handshake,
    };
    let phases = Phases {
        warm_up: Duration::ZERO,
        ramp: Duration::ZERO,
        drain: plan.phases.timeout + plan.phases.connect_timeout,
        ..plan.phases
    };
    Plan {
        model: Model::Connections(once),
        reuse: Reuse::Times(1),
        exchange,
        phases,
        threads: vec![None],
        share: Share::WHOLE,
        ..plan.clone()
    }
}
