//! What was asked, as the record keeps it.

use std::time::Duration;

use courser_load::http::{BodyCheck, ExpectedStatus};
use courser_load::plan::{Model, Plan, Workload};
use courser_load::schedule::Arrivals as Spacing;
use courser_load::spec::{LoadSpec, RequestSpec, Work};
use courser_load::tls_options::{EngineChoice, ResumeChoice};
use courser_record::{
    Arrivals, Expected, Experiment, LoadKind, LoadModel, Phases, Request, Resumption, Share, Sockets, Target,
    TlsOffer, Verification,
};

use courser_lab::to_record::{micros, unix_us};

/// What tells one verb's experiment from another's.
pub(crate) struct Asked<'a> {
    pub(crate) command: &'a str,
    pub(crate) kind: LoadKind,
    pub(crate) rate_to: Option<f64>,
    pub(crate) rules: Vec<String>,
}

/// The experiment of a plan.
pub(crate) fn experiment(spec: &LoadSpec, plan: &Plan, asked: Asked<'_>) -> Experiment {
    Experiment {
        command: asked.command.to_owned(),
        target: Target {
            url: spec.url.to_string(),
            addresses: plan.target.addresses.iter().map(ToString::to_string).collect(),
        },
        tls: spec.url.is_secure().then(|| tls(spec)),
        load: load(plan, &asked, spec),
        phases: phases(plan),
        sockets: sockets(spec),
        request: request(spec, plan),
        rules: asked.rules,
    }
}

fn tls(spec: &LoadSpec) -> TlsOffer {
    let (reuse, options) = (spec.reuse, &spec.tls);
    TlsOffer {
        engine: options.engine.name().to_owned(),
        verification: match (options.engine, &options.ca) {
            (EngineChoice::Lean, None) => Verification::SignatureSample,
            (EngineChoice::Lean, Some(_)) => Verification::Sample,
            (_, None) => Verification::Signature,
            (_, Some(_)) => Verification::Full,
        },
        versions: options.versions.clone(),
        suites: options.suites.clone(),
        groups: options.groups.clone(),
        schemes: options.schemes.clone(),
        alpn: options.alpn.clone(),
        resumption: match (reuse, options.resume) {
            (1, _) => Resumption::Never,
            (_, ResumeChoice::Never) => Resumption::Never,
            (_, ResumeChoice::Ticket) => Resumption::Ticket,
            (_, ResumeChoice::SessionId) => Resumption::SessionId,
        },
        reuse,
        tickets_kept: u32::try_from(options.tickets_kept).unwrap_or(u32::MAX),
        early_data: options.early_data,
        server_names: Some(server_names(spec)),
        client_certificate: options.identity.is_some(),
    }
}

fn server_names(spec: &LoadSpec) -> String {
    let options = &spec.tls;
    let picked = options
        .zipf
        .map_or_else(|| "in turn".to_owned(), |exponent| format!("by Zipf's law, exponent {exponent}"));
    match (&options.server_names_file, options.server_names.as_slice()) {
        (Some(path), _) => format!("those of {}, {picked}", path.display()),
        (None, []) => spec.url.host.clone(),
        (None, [one]) => one.clone(),
        (None, many) => format!("{} names, {picked}", many.len()),
    }
}

fn load(plan: &Plan, asked: &Asked<'_>, spec: &LoadSpec) -> LoadModel {
    let (rate, connections, arrivals) = match &plan.model {
        Model::Sessions(offered) | Model::Connections(offered) => {
            (offered.steps.first().map(|step| step.from), spec.phases.in_flight as u64, offered.arrivals)
        }
        Model::Closed(clients) => (None, *clients, Spacing::Even),
    };
    let per_connection = match &plan.exchange {
        Workload::Http { count, .. } => count.map(u64::from),
        Workload::Echo { count, .. } => Some(u64::from(*count)),
        Workload::Hold { first: Some(_), .. } => Some(1),
        Workload::Handshake | Workload::Abandon { .. } | Workload::Hold { first: None, .. } => Some(0),
    };
    LoadModel {
        kind: asked.kind,
        rate,
        rate_to: asked.rate_to,
        connections: Some(connections),
        keepalive: requests(spec).is_some_and(|request| request.keepalive || request.count > 1),
        requests_per_connection: per_connection,
        arrivals: if arrivals == Spacing::Even { Arrivals::Even } else { Arrivals::Poisson },
        seed: plan.seed,
        share: spec.share.map(|share| Share { k: small(share.index + 1), n: small(share.of) }),
        start_at_unix_us: spec.start_at.map(unix_us),
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

fn sockets(spec: &LoadSpec) -> Sockets {
    Sockets {
        sources: spec.sockets.sources.iter().map(ToString::to_string).collect(),
        close: spec.close,
        nodelay: !spec.sockets.nagle,
        hello_segments: Some(spec.sockets.hello_segments).filter(|segments| *segments > 0),
        hello_over_us: Some(spec.sockets.hello_over).filter(|time| !time.is_zero()).map(micros),
        connect_timeout_us: Some(micros(spec.phases.connect_timeout)),
        timeout_us: Some(micros(spec.phases.timeout)),
    }
}

fn requests(spec: &LoadSpec) -> Option<&RequestSpec> {
    if let Work::Requests(requests) = &spec.work { Some(requests) } else { None }
}

fn request(spec: &LoadSpec, plan: &Plan) -> Option<Request> {
    let asked = requests(spec);
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
                    _ => asked.and_then(|asked| asked.expect_sha256.clone()),
                },
            };
            let body = asked.and_then(|asked| asked.post).unwrap_or(0);
            (request.method().name(), spec.url.path.clone(), body, expected)
        }
        Workload::Hold { first: Some((request, _)), .. } => {
            (request.method().name(), spec.url.path.clone(), 0, Expected::default())
        }
        Workload::Echo { bytes, .. } => ("ECHO", String::new(), *bytes, Expected::default()),
        _ => return None,
    };
    Some(Request { method: method.to_owned(), path, body_bytes: body as u64, expected })
}
