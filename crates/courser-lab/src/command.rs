//! The load of a case, and the command by which anyone can repeat it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use courser_load::origin::OriginSockets;
use courser_load::plan::Plan;
use courser_load::spec::{Load, LoadSpec, RequestSpec, ServerSpec, Work};
use courser_load::tls_options::ResumeChoice;
use courser_record::lab::{Era, Measure};

use super::cores::CoreMap;
use crate::error::Error;
use crate::files;
use crate::suite::{Backend, CaseSpec, Crowd, Requests, Resume, Transport};
use crate::target::KeyKind;

/// The name that clients ask for, and that certificates are for.
pub const SERVER_NAME: &str = "localhost";

/// Warm-up of a closed loop: it has stopped climbing, caches are warm and clients have their sessions.
const WARM_UP: Duration = Duration::from_millis(300);

/// What is added to it for each connection that stays: all are open before requests are counted, also where handshakes give way
/// to the requests of who is connected.
const OPENING: Duration = Duration::from_millis(8);

/// Warm-up of a schedule, and the length of its ramp.
const RAMP: Duration = Duration::from_millis(500);

/// How much longer the ramp of a load is that is more than the target can serve, or that a crowd comes beside. Overload is seen
/// and met before the window begins, so that it shows what stays; and of clients that are to be known, each has come by then.
const CLIMB: Duration = Duration::from_millis(3500);

/// How a target is reached, and which processes are its own.
#[derive(Clone, Debug)]
pub struct TargetAddress {
    /// Where clients connect.
    pub address: Option<SocketAddr>,
    /// The other hosts of its fleet.
    pub others: Vec<SocketAddr>,
    /// The URL of an external target.
    pub url: Option<String>,
    /// The root of its processes.
    pub pid: Option<u32>,
    /// The origin server's.
    pub origin_pid: Option<u32>,
    /// File of its certificates, PEM, where the engines can verify those.
    pub roots: Option<PathBuf>,
    /// The origin that the generator's own loop serves.
    pub origin: Option<OriginSockets>,
}

impl TargetAddress {
    /// The plan of a load on it, with the origin that the generator serves.
    ///
    /// # Errors
    /// The first thing that is not available.
    pub fn plan(&self, spec: &LoadSpec) -> Result<Plan, Error> {
        Ok(Plan { origin: self.origin.clone(), ..spec.plan(files::READ)? })
    }
}

/// The load that a case asks of every target; where it depends on what a target can serve, the closed loop that finds out.
pub fn load(case: &CaseSpec) -> Load {
    match (case.measure, case.capacity) {
        (Measure::Rate, None) => Load::Sessions(case.rate.unwrap_or(100.0)),
        _ => Load::Closed(case.clients),
    }
}

/// How much longer than in other cases a load climbs before anything is counted.
pub fn climb(case: &CaseSpec) -> Duration {
    let is_too_much = case.beside.is_some() || case.capacity.is_some_and(|part| part > 1.0);
    if case.patience.is_some() && is_too_much { CLIMB } else { Duration::ZERO }
}

/// The load of a case on a target.
///
/// # Errors
/// When the target's URL is wrong, or the engine has no such name.
pub fn spec(
    case: &CaseSpec,
    target: &TargetAddress,
    load: Load,
    length: Duration,
    cores: &CoreMap,
    seed: u64,
) -> Result<LoadSpec, Error> {
    let work = match case.object {
        None => Work::Handshake,
        Some(object) => Work::Requests(RequestSpec {
            keepalive: case.requests == Requests::AsManyAsFit,
            count: if let Requests::Exactly(count) = case.requests { count } else { 1 },
            expect_length: Some(object),
            ..RequestSpec::default()
        }),
    };
    let mut spec = LoadSpec::new(url(case, target).parse().map_err(Error::input)?, load, work);
    spec.also.clone_from(&target.others);
    spec.reuse = case.reuse;
    let closed = matches!(load, Load::Closed(_));
    let phases = &mut spec.phases;
    (phases.warm_up, phases.ramp) = if closed { (WARM_UP, Duration::ZERO) } else { (RAMP, RAMP) };
    if case.requests == Requests::AsManyAsFit {
        phases.warm_up += OPENING * u32::try_from(case.clients).unwrap_or(u32::MAX);
    }
    phases.steady = length;
    limit(&mut spec);
    if let Some(patience) = case.patience {
        (spec.phases.connect_timeout, spec.phases.timeout) = (patience, patience);
        spec.phases.in_flight = 20_000;
        if !closed {
            spec.phases.ramp += climb(case);
        }
    }
    spec.sockets.sources =
        (1..=case.sources.unwrap_or(0)).map(|network| address(network, MEASURED)).collect();
    spec.sockets.hello_segments = case.segments.unwrap_or(0);
    spec.cpus.clone_from(&cores.generator);
    spec.seed = seed;
    spec.server = ServerSpec {
        pid: target.pid,
        cgroup: None,
        cpus: target.pid.map(|_| cores.target.clone()),
        origin_pid: target.origin_pid,
    };
    spec.origin = target.origin.as_ref().map(OriginSockets::addresses).unwrap_or_default();
    if let Transport::Tls(version) = &case.transport {
        spec.tls.versions = vec![version.clone()];
        spec.tls.server_names = vec![SERVER_NAME.into()];
        spec.tls.suites.clone_from(&case.suites);
        if case.era == Era::Modern {
            spec.tls.schemes = case.keys.iter().filter_map(|key| scheme(key)).map(str::to_owned).collect();
        }
        spec.tls.groups = case.exchange.as_ref().map(|group| groups(group, &case.keys)).unwrap_or_default();
        spec.tls.alpn = case.alpn.iter().cloned().collect();
        spec.tls.ca.clone_from(&target.roots);
        spec.tls.engine = case.engine.parse().map_err(Error::System)?;
        if case.resume == Resume::Id {
            spec.tls.resume = ResumeChoice::SessionId;
        }
    }
    Ok(spec)
}

/// The crowd that comes beside the load of a case whose target serves `capacity` clients a second, for `length`.
pub fn crowd(crowd: Crowd, of: &LoadSpec, capacity: f64, length: Duration) -> LoadSpec {
    let (factor, work) = match crowd {
        Crowd::Handshakes | Crowd::Passing | Crowd::SlowHellos => (5.0, Work::Handshake),
        Crowd::Hellos => (5.0, Work::Abandon(HELLO)),
        Crowd::Network => (20.0, Work::Handshake),
    };
    let mut spec = LoadSpec { load: Load::Connections(factor * capacity), work, reuse: 1, ..of.clone() };
    spec.sockets.sources = match crowd {
        Crowd::Network => (1..=250).map(|host| address(NOISY, host)).collect(),
        // Each in a network of its own.
        _ => (1..=250).map(|network| address(network, 9)).collect(),
    };
    let length = if crowd == Crowd::Passing { length / 2 } else { length };
    (spec.phases.warm_up, spec.phases.ramp, spec.phases.steady) = (Duration::ZERO, Duration::ZERO, length);
    if crowd == Crowd::SlowHellos {
        spec.sockets.hello_over = SLOW_HELLO;
        spec.phases.timeout += SLOW_HELLO;
    }
    (spec.server, spec.origin) = (ServerSpec::default(), Vec::new());
    spec.seed = of.seed.wrapping_add(1);
    spec
}

/// How long a client that sends a hello and no more stays.
const HELLO: Duration = Duration::from_secs(1);

/// Over how long a slow client sends its hello: longer than any hello takes, shorter than usual timeouts of handshakes.
const SLOW_HELLO: Duration = Duration::from_secs(3);

/// The hosts that are measured, each in a network of its own: of one network they would be limited as one.
const MEASURED: u8 = 10;

/// A noisy network.
const NOISY: u8 = 252;

/// An address of loopback (RFC 1122, section 3.2.1.3: all of 127/8).
fn address(network: u8, host: u8) -> IpAddr {
    Ipv4Addr::new(127, 16, network, host).into()
}

/// The time limits of all loads of the lab.
pub fn limit(spec: &mut LoadSpec) {
    spec.phases.drain = Duration::from_secs(2);
    spec.phases.timeout = Duration::from_secs(4);
    spec.phases.in_flight = 6000;
}

/// The group of the case, with the key share; after it those of the certificates' curves, without which an ECDSA
/// certificate cannot be chosen in TLS 1.2 (RFC 8422, section 5.1). The targets take the first alone.
fn groups(group: &str, keys: &[String]) -> Vec<String> {
    let curves = keys.iter().map(String::as_str).filter(|key| key.starts_with("P-") && *key != group);
    std::iter::once(group).chain(curves).map(str::to_owned).collect()
}

/// The signature scheme that is offered for a key: with several, programs choose different ones (RSA with SHA-256 or with
/// SHA-512). None for keys that it is too long for.
fn scheme(key: &str) -> Option<&'static str> {
    match key.parse().ok()? {
        KeyKind::Rsa(bits) => (bits >= 1024).then_some("rsa_pss_rsae_sha256"),
        KeyKind::P256 => Some("ecdsa_secp256r1_sha256"),
        KeyKind::P384 => Some("ecdsa_secp384r1_sha384"),
        KeyKind::Ed25519 => Some("ed25519"),
    }
}

fn url(case: &CaseSpec, target: &TargetAddress) -> String {
    // Each of several origins has a page of its own, so that the distribution shows.
    let page = if case.backend == Backend::Several { "&page" } else { "" };
    let path = case.object.map_or(String::new(), |size| format!("/?s={size}{page}"));
    if let Some(url) = &target.url {
        return format!("{}{path}", url.trim_end_matches('/'));
    }
    let scheme = if case.transport == Transport::Clear { "http" } else { "https" };
    let address = target.address.map(|address| address.to_string()).unwrap_or_default();
    format!("{scheme}://{address}{path}")
}

/// The command of a load, quoted for a shell.
pub fn line(spec: &LoadSpec) -> String {
    let args = spec.to_args().into_iter();
    let quoted = args.map(|word| if word.contains(['?', '&', ' ']) { format!("'{word}'") } else { word });
    format!("courser-bench {}", quoted.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;

    #[test]
    fn who_is_known_has_come_before_the_crowd() {
        let text = "name = 'x'\n[[group]]\nid = 'a'\nmeasure = 'rate'\n[group.case]\nkey = 'RSA-4096'\ncapacity = 30\n\
                    sources = 64\npatience = 1\nbeside = 'handshakes'\n";
        let case = &Suite::read(text, false).unwrap().cases[0];
        // Of the slowest machine that RSA-4096 was measured on: 130 a second.
        let load = Load::Sessions(0.3 * 130.0);
        let spec = spec(case, &nowhere(), load, Duration::from_secs(1), &cores(), 1).unwrap();
        let before: f64 = [(spec.phases.warm_up, 0.1), (spec.phases.ramp, 0.55)]
            .map(|(length, part)| length.as_secs_f64() * 0.3 * 130.0 * part)
            .iter()
            .sum();
        assert!(before > 64.0, "{before} clients of 64 addresses");
        let networks: std::collections::HashSet<_> = spec.sockets.sources.iter().map(network).collect();
        assert_eq!(networks.len(), 64);
    }

    #[test]
    fn connections_that_stay_are_open_before_the_window() {
        let warm_up = |fields: &str| {
            let text =
                format!("name = 'x'\n[[group]]\nid = 'a'\nmeasure = 'keep_alive'\n[group.case]\n{fields}");
            let case = &Suite::read(&text, false).unwrap().cases[0];
            spec(case, &nowhere(), load(case), Duration::from_secs(1), &cores(), 1).unwrap().phases.warm_up
        };
        assert_eq!(warm_up("object = '8 B'\nclients = 500\nrequests = 1"), WARM_UP);
        // Half a core of the slowest that was measured makes 540 full handshakes a second with P-256.
        assert!(warm_up("object = '8 B'\nclients = 500\nrequests = 0") > Duration::from_secs(2));
    }

    fn nowhere() -> TargetAddress {
        TargetAddress {
            address: Some(SocketAddr::from(([127, 0, 0, 1], 443))),
            others: Vec::new(),
            url: None,
            pid: None,
            origin_pid: None,
            roots: None,
            origin: None,
        }
    }

    fn cores() -> CoreMap {
        CoreMap { target: vec![1], generator: vec![0], origin: vec![0] }
    }

    #[test]
    fn a_case_with_a_rate_asks_for_that_rate() {
        let of = |fields: &str| {
            let text = format!("name = 'x'\n[[group]]\nid = 'a'\nmeasure = 'rate'\n[group.case]\n{fields}");
            load(&Suite::read(&text, false).unwrap().cases[0])
        };
        assert!(matches!(of("rate = 20.0"), Load::Sessions(20.0)));
        assert!(matches!(of("capacity = 50\nclients = 8"), Load::Closed(8)));
    }

    fn network(source: &IpAddr) -> [u8; 3] {
        let IpAddr::V4(source) = source else { panic!("an address of 127/8") };
        let [a, b, c, _] = source.octets();
        [a, b, c]
    }
}
