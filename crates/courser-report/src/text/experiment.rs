//! The experiment: target, load, phases, TLS.

use courser_record::{
    Arrivals, CloseMode, Experiment, LoadKind, LoadModel, Phases, Record, Resumption, Sockets, TlsOffer,
    Verification,
};

use crate::figure;
use crate::layout::{Page, Tone};

pub(super) fn show(page: &mut Page, record: &Record) {
    let experiment = &record.experiment;
    page.heading("experiment");
    let mut row = |name: &str, text: String| page.paragraph(Tone::Plain, &format!("  {name:<9}"), &text);
    row("target", target(experiment));
    row("load", load(&experiment.load));
    row("time", phases(&experiment.phases));
    match &experiment.tls {
        Some(offer) => {
            row("tls", tls(offer));
            row("client", client(offer));
        }
        None => row("tls", "none, in clear".to_owned()),
    }
    row("sockets", sockets(&experiment.sockets));
    row("by", by(record));
}

fn target(experiment: &Experiment) -> String {
    let request = experiment.request.as_ref().map(|request| format!("{} {}", request.method, request.path));
    let addresses = experiment.target.addresses.join(", ");
    let request = request.unwrap_or_else(|| "no request".to_owned());
    format!("{} ({addresses}), {request}", experiment.target.url)
}

fn load(load: &LoadModel) -> String {
    let arrivals = match load.arrivals {
        Arrivals::Even => "evenly",
        Arrivals::Poisson => "at random (Poisson)",
    };
    let connections = load.connections.map(figure::count);
    let parts = [
        Some(load.kind.to_string()),
        load.rate.map(|rate| format!("{} {arrivals}, seed {}", figure::rate(Some(rate)), load.seed)),
        load.rate_to.map(|rate| format!("up to {}", figure::rate(Some(rate)))),
        connections
            .map(|count| format!("{}{count} connections", if load.rate.is_some() { "at most " } else { "" })),
        load.keepalive.then(|| "keep-alive".to_owned()),
        load.requests_per_connection.and_then(|requests| requested(load.kind, requests)),
        load.abandon_after_us
            .filter(|_| load.kind == LoadKind::Abandon)
            .map(|us| format!("left alone after {}", figure::duration(us))),
        load.share.map(|share| format!("share {share} of it")),
    ];
    joined(parts)
}

fn requested(kind: LoadKind, requests: u64) -> Option<String> {
    match (requests, kind) {
        (0, LoadKind::Handshake | LoadKind::Abandon) => None,
        (0, _) => Some("handshake only".to_owned()),
        (1, _) => Some("1 request per connection".to_owned()),
        _ => Some(format!("{} requests per connection", figure::count(requests))),
    }
}

fn phases(phases: &Phases) -> String {
    let part = |name: &str, us: u64| (us > 0).then(|| format!("{name} {}", figure::duration(us)));
    joined([
        part("warm-up", phases.warm_up_us),
        part("ramp", phases.ramp_us),
        part("steady", phases.steady_us),
        part("drain at most", phases.drain_us),
    ])
}

fn tls(offer: &TlsOffer) -> String {
    let list = |names: &[String]| (!names.is_empty()).then(|| names.join(" "));
    let resumption = match (offer.resumption, offer.reuse) {
        (Resumption::Never, _) | (_, 1) => "no session resumed".to_owned(),
        (by, 0) => format!("every session resumed {}", means(by)),
        (by, reuse) => format!("{reuse} connections per session, resumed {}", means(by)),
    };
    joined([
        list(&offer.versions),
        list(&offer.suites),
        list(&offer.groups),
        list(&offer.schemes),
        list(&offer.alpn).map(|alpn| format!("ALPN {alpn}")),
        Some(resumption),
        offer.early_data.then(|| "early data".to_owned()),
    ])
}

fn means(by: Resumption) -> &'static str {
    match by {
        Resumption::Never => "by nothing",
        Resumption::SessionId => "by session ID",
        Resumption::Ticket => "by ticket or PSK",
    }
}

fn client(offer: &TlsOffer) -> String {
    let verified = match offer.verification {
        Verification::None => "certificates are not verified",
        Verification::Signature => "signatures are verified, chains and names are not",
        Verification::SignatureSample => "a sample of the signatures is verified, chains and names are not",
        Verification::Sample => "a sample of the certificates is verified",
        Verification::Full => "certificates are verified",
    };
    let names = offer.server_names.as_ref().map(|names| format!("server name {names}"));
    joined([
        Some(format!("{}: {verified}", offer.engine)),
        names.or_else(|| Some("no server name".to_owned())),
        offer.client_certificate.then(|| "with a client certificate".to_owned()),
    ])
}

fn sockets(sockets: &Sockets) -> String {
    let close = match sockets.close {
        CloseMode::CloseNotify => "closed by close_notify and FIN",
        CloseMode::Fin => "closed by FIN",
        CloseMode::Rst => "closed by RST",
    };
    joined([
        Some(close.to_owned()),
        sockets.nodelay.then(|| "TCP_NODELAY".to_owned()),
        (!sockets.sources.is_empty()).then(|| format!("from {}", sockets.sources.join(" "))),
        sockets.timeout_us.map(|us| format!("timeout {}", figure::duration(us))),
    ])
}

fn by(record: &Record) -> String {
    let (tool, machine) = (&record.envelope.tool, &record.envelope.machine);
    let commit = tool.commit.as_ref().map(|commit| format!(" ({commit})")).unwrap_or_default();
    let program = format!("{} {}{commit}, {}", tool.name, tool.version, record.envelope.created);
    if record.sources.is_empty() {
        return format!(
            "{program}, on {}: {}, {} cores, {}",
            machine.name, machine.cpu_model, machine.cores, machine.kernel
        );
    }
    let labels: Vec<_> = record.sources.iter().map(|source| source.label.as_str()).collect();
    format!("{program}, merged from {}", labels.join(", "))
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
