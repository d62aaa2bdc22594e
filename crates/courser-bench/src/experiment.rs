//! What was asked, as the record keeps it.

use std::time::Duration;

use courser_load::http::{BodyCheck, ExpectedStatus};
use courser_load::plan::{Model, Plan, Workload};
use courser_load::schedule::Arrivals as Spacing;
use courser_record::{
    Arrivals, CloseMode, Expected, Experiment, LoadKind, LoadModel, Phases, Request, Resumption, Share,
    Sockets, Target, TlsOffer, Verification,
};

use crate::cli::{CloseArg, CommonArgs, EngineArg, RequestArgs, ResumeArg, TlsArgs};
use crate::to_record::{micros, unix_us};
use courser_load::url::Url;

/// What tells one verb's experiment from another's.
pub(crate) struct Asked<'a> {
    pub(crate) command: &'a str,
    pub(crate) kind: LoadKind,
    pub(crate) reuse: u32,
    pub(crate) rate_to: Option<f64>,
    pub(crate) rules: Vec<String>,
    pub(crate) request: Option<&'a RequestArgs>,
}

/// The experiment of a plan.
pub(crate) fn experiment(url: &Url, plan: &Plan, asked: Asked<'_>, common: &CommonArgs) -> Experiment {
    Experiment {
        command: asked.command.to_owned(),
        target: Target {
            url: url.to_string(),
            addresses: plan.target.addresses.iter().map(ToString::to_string).collect(),
        },
        tls: url.is_secure().then(|| tls(url, asked.reuse, &common.tls)),
        load: load(plan, &asked, common),
        phases: phases(plan),
        sockets: sockets(common),
        request: request(url, plan, asked.request),
        rules: asked.rules,
    }
}

fn tls(url: &Url, reuse: u32, args: &TlsArgs) -> TlsOffer {
    TlsOffer {
        engine: match args.engine {
            EngineArg::Lean => "lean",
            EngineArg::Real => "real",
            EngineArg::Openssl => "openssl",
        }
        .to_owned(),
        verification: match (args.engine, &args.ca) {
            (EngineArg::Lean, None) => Verification::None,
            (EngineArg::Lean, Some(_)) => Verification::Sample,
            (_, None) => Verification::Signature,
            (_, Some(_)) => Verification::Full,
        },
        versions: args.tls.clone(),
        suites: args.suites.clone(),
        groups: args.groups.clone(),
        schemes: args.schemes.clone(),
        alpn: args.alpn.clone(),
        resumption: match (reuse, args.resume) {
            (1, _) => Resumption::Never,
            (_, ResumeArg::Ticket) => Resumption::Ticket,
            (_, ResumeArg::Id) => Resumption::SessionId,
        },
        reuse,
        tickets_kept: u32::try_from(args.tickets).unwrap_or(u32::MAX),
        early_data: args.early_data,
        server_names: Some(server_names(url, args)),
        client_certificate: args.cert.is_some(),
    }
}

fn server_names(url: &Url, args: &TlsArgs) -> String {
    let picked = args
        .zipf
        .map_or_else(|| "in turn".to_owned(), |exponent| format!("by Zipf's law, exponent {exponent}"));
    match (&args.sni_file, args.sni.as_slice()) {
        (Some(path), _) => format!("those of {}, {picked}", path.display()),
        (None, []) => url.host.clone(),
        (None, [one]) => one.clone(),
        (None, many) => format!("{} names, {picked}", many.len()),
    }
}

fn load(plan: &Plan, asked: &Asked<'_>, common: &CommonArgs) -> LoadModel {
    let (rate, connections, arrivals) = match &plan.model {
        Model::Sessions(offered) | Model::Connections(offered) => {
            (offered.steps.first().map(|step| step.from), common.run.in_flight as u64, offered.arrivals)
        }
        Model::Closed(clients) => (None, *clients, Spacing::Even),
    };
    let per_connection = match &plan.exchange {
        Workload::Http { count, .. } => count.map(u64::from),
        Workload::Echo { count, .. } => Some(u64::from(*count)),
        Workload::Hold { first: Some(_) } => Some(1),
        Workload::Handshake | Workload::Abandon { .. } | Workload::Hold { first: None } => Some(0),
    };
    LoadModel {
        kind: asked.kind,
        rate,
        rate_to: asked.rate_to,
        connections: Some(connections),
        keepalive: asked.request.is_some_and(|request| request.keepalive || request.requests > 1),
        requests_per_connection: per_connection,
        arrivals: if arrivals == Spacing::Even { Arrivals::Even } else { Arrivals::Poisson },
        seed: plan.seed,
        share: common.run.share.map(|(k, n)| Share { k: small(k), n: small(n) }),
        start_at_unix_us: common.run.start_at.map(unix_us),
        abandon_after_us: match plan.exchange {
            Workload::Abandon { after } => Some(micros(after)),
            _ => None,
        },
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn phases(plan: &Plan) -> Phases {
    let steady: Duration = plan.windows().iter().map(|window| window.to - window.from).sum();
    Phases {
        warm_up_us: micros(plan.phases.warm_up),
        ramp_us: micros(plan.phases.ramp),
        steady_us: micros(steady),
        drain_us: micros(plan.phases.drain),
    }
}

fn sockets(common: &CommonArgs) -> Sockets {
    Sockets {
        sources: common.sockets.source.iter().map(ToString::to_string).collect(),
        close: match common.sockets.close {
            CloseArg::CloseNotify => CloseMode::CloseNotify,
            CloseArg::Fin => CloseMode::Fin,
            CloseArg::Rst => CloseMode::Rst,
        },
        nodelay: !common.sockets.nagle,
        connect_timeout_us: Some(micros(common.sockets.connect_timeout)),
        timeout_us: Some(micros(common.sockets.timeout)),
    }
}

fn request(url: &Url, plan: &Plan, args: Option<&RequestArgs>) -> Option<Request> {
    let (method, path, body, expected) = match &plan.exchange {
        Workload::Http { request, expect, .. } => {
            let expected = Expected {
                status: match expect.status {
                    ExpectedStatus::Exactly(status) => Some(status),
                    _ => None,
                },
                body_bytes: expect.length,
                sha256: match expect.body {
                    BodyCheck::Length => None,
                    _ => args.and_then(|args| args.expect_sha256.clone()),
                },
            };
            let body = args.and_then(|args| args.post).unwrap_or(0);
            (request.method().name(), url.path.clone(), body, expected)
        }
        Workload::Hold { first: Some((request, _)) } => {
            (request.method().name(), url.path.clone(), 0, Expected::default())
        }
        Workload::Echo { bytes, .. } => ("ECHO", String::new(), *bytes, Expected::default()),
        _ => return None,
    };
    Some(Request { method: method.to_owned(), path, body_bytes: body as u64, expected })
}
