//! A group of a suite spelled out: one case for each combination of its values.

use std::collections::BTreeMap;
use std::time::Duration;

use courser_load::spec::LoadSpec;
use courser_record::lab::{Era, Measure};

use super::field::{self, OneOrMany};
use super::file::{Dimensions, Group};
use super::values::{self, Swept};

/// Everything that is asked in a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseSpec {
    /// Unique in its suite: the group's id, then the values that vary.
    pub id: String,
    /// The same in words.
    pub title: String,
    /// Whether the protocol is of today or of the time of the published figures.
    pub era: Era,
    /// What a block measures, and with which load.
    pub measure: Measure,
    /// Values by the names that tables and charts select rows and columns with.
    pub dimensions: BTreeMap<String, String>,
    /// Protocol towards clients.
    pub transport: Transport,
    /// Names of keys: one, or two on one address.
    pub keys: Vec<String>,
    /// Cipher suites, of two certificates one for each; the program's own without.
    pub suites: Vec<String>,
    /// Key exchange group; the program's own without.
    pub exchange: Option<String>,
    /// Segments that clients send a hello in; one without.
    pub segments: Option<u32>,
    /// The application protocol that clients ask for and targets have to agree on (ALPN); none where nothing is asked.
    pub alpn: Option<String>,
    /// How clients resume.
    pub resume: Resume,
    /// Whether the server remembers sessions.
    pub cache: bool,
    /// Connections per TLS session; 0 for ever.
    pub reuse: u32,
    /// Bytes of an answer; `None` asks nothing.
    pub object: Option<usize>,
    /// Requests per connection.
    pub requests: Requests,
    /// Connections at a time, of closed loops.
    pub clients: u64,
    /// Cores of the target.
    pub cores: usize,
    /// Copies of the target that share sessions, all on its cores.
    pub hosts: usize,
    /// Backends behind the target.
    pub backend: Backend,
    /// Connections a second, of constant rates.
    pub rate: Option<f64>,
    /// Instead of it, the part of what a closed loop reached: 0.8 is 80 %.
    pub capacity: Option<f64>,
    /// How long clients wait.
    pub patience: Option<Duration>,
    /// Addresses that clients come from; one without.
    pub sources: Option<u8>,
    /// Who comes beside the clients that are measured.
    pub beside: Option<Crowd>,
    /// The client's engine, as `--engine` names it.
    pub engine: String,
    /// Blocks per target.
    pub rounds: u32,
    /// Length of a block, or of a step.
    pub length: Duration,
    /// Steps of a staircase.
    pub steps: u32,
    /// Whether each target has one block more, by clients of the engine `real`.
    pub control: bool,
    /// Other targets than the suite's.
    pub targets: Option<Vec<String>>,
    /// Why nobody can do it here.
    pub cannot: Option<String>,
}

/// What is spoken towards clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// No TLS.
    Clear,
    /// TLS of this version: `1.3`.
    Tls(String),
}

/// By what sessions come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Session tickets; in TLS 1.3, PSKs.
    Ticket,
    /// Session IDs of TLS 1.2 and before.
    Id,
}

/// Requests of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// This many, then it closes.
    Exactly(u32),
    /// One after another until the block ends.
    AsManyAsFit,
}

/// What is behind the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// One origin, without TLS.
    Plain,
    /// TLS to the backend too.
    Tls,
    /// Several origins.
    Several,
}

/// Strangers that come beside the clients that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// Handshakes and no more, from many addresses.
    Handshakes,
    /// The same, and gone after half of the block.
    Passing,
    /// Hellos and no more, from many addresses.
    Hellos,
    /// Handshakes whose hellos come in pieces over seconds, from many addresses.
    SlowHellos,
    /// Handshakes and no more, from one network.
    Network,
}

/// Every case of a group, in the order of its values.
pub(super) fn expand(group: &Group, quick: bool) -> Result<Vec<CaseSpec>, String> {
    if quick && !group.quick {
        return Ok(Vec::new());
    }
    let swept = values::swept(&group.case);
    let chosen = if quick { less(&group.case, &group.quick_case) } else { group.case.clone() };
    combinations(&chosen).iter().map(|one| case(group, one, &swept, quick)).collect()
}

/// The fields of `all`, those that `fewer` has from there.
fn less(all: &Dimensions, fewer: &Dimensions) -> Dimensions {
    fn pick<T: Clone>(all: &Option<OneOrMany<T>>, fewer: &Option<OneOrMany<T>>) -> Option<OneOrMany<T>> {
        fewer.clone().or_else(|| all.clone())
    }
    Dimensions {
        version: pick(&all.version, &fewer.version),
        key: pick(&all.key, &fewer.key),
        suite: pick(&all.suite, &fewer.suite),
        exchange: pick(&all.exchange, &fewer.exchange),
        segments: pick(&all.segments, &fewer.segments),
        alpn: pick(&all.alpn, &fewer.alpn),
        resumption: pick(&all.resumption, &fewer.resumption),
        cache: pick(&all.cache, &fewer.cache),
        reuse: pick(&all.reuse, &fewer.reuse),
        object: pick(&all.object, &fewer.object),
        requests: pick(&all.requests, &fewer.requests),
        clients: pick(&all.clients, &fewer.clients),
        cores: pick(&all.cores, &fewer.cores),
        hosts: pick(&all.hosts, &fewer.hosts),
        backend: pick(&all.backend, &fewer.backend),
        rate: pick(&all.rate, &fewer.rate),
        capacity: pick(&all.capacity, &fewer.capacity),
        patience: pick(&all.patience, &fewer.patience),
        sources: pick(&all.sources, &fewer.sources),
        beside: pick(&all.beside, &fewer.beside),
        engine: pick(&all.engine, &fewer.engine),
    }
}

/// Every combination, each with one value in each field that has any.
fn combinations(of: &Dimensions) -> Vec<Dimensions> {
    let mut all = vec![Dimensions::default()];
    macro_rules! sweep {
        ($($field:ident),*) => {$(
            if let Some(values) = &of.$field {
                let each = |one: &Dimensions| {
                    let one = one.clone();
                    values.values().into_iter().map(move |value| {
                        Dimensions { $field: Some(OneOrMany::One(value)), ..one.clone() }
                    })
                };
                all = all.iter().flat_map(each).collect();
            }
        )*};
    }
    sweep!(
        version, key, suite, exchange, segments, alpn, resumption, cache, cores, hosts, backend, object,
        requests, clients, rate, capacity, patience, sources, beside, engine, reuse
    );
    all
}

fn case(group: &Group, one: &Dimensions, swept: &Swept, quick: bool) -> Result<CaseSpec, String> {
    fn the<T: Clone>(field: &Option<OneOrMany<T>>) -> Option<T> {
        field.as_ref().and_then(|values| values.values().into_iter().next())
    }
    let mut dimensions = values::labels(one)?;
    let (id, title) = (values::id(&group.id, &dimensions, swept), values::title(&dimensions));
    let title = match group.measure {
        Measure::Staircase => format!("staircase, {title}"),
        _ => title,
    };
    dimensions.extend(group.context.clone().map(|context| ("context".to_owned(), context)));
    let (rounds, seconds, steps) = lengths(group, quick);
    let version = the(&one.version).unwrap_or_else(|| "1.3".into());
    let alpn = the(&one.alpn).filter(|protocol| protocol != NO_PROTOCOL);
    if let (Some(alpn), "clear") = (&alpn, version.as_str()) {
        return Err(format!("{}: {alpn} is agreed on within TLS, and the version is `clear`", group.id));
    }
    let keys = the(&one.key).unwrap_or_else(|| "P-256".into());
    Ok(CaseSpec {
        id,
        title,
        era: group.era,
        measure: group.measure,
        keys: keys.split('+').map(|key| key.trim().to_owned()).collect(),
        suites: suites(group.era, &version, &keys, the(&one.suite)),
        exchange: the(&one.exchange),
        segments: the(&one.segments),
        alpn,
        transport: if version == "clear" { Transport::Clear } else { Transport::Tls(version) },
        resume: match the(&one.resumption).as_deref() {
            None | Some("ticket") => Resume::Ticket,
            Some("id") => Resume::Id,
            Some(other) => {
                return Err(format!("{}: resumption is `ticket` or `id`, not {other:?}", group.id));
            }
        },
        cache: the(&one.cache).unwrap_or(true),
        reuse: the(&one.reuse).unwrap_or(1),
        object: the(&one.object).map(|size| field::size(&size)).transpose()?,
        requests: match the(&one.requests) {
            Some(0) => Requests::AsManyAsFit,
            count => Requests::Exactly(count.unwrap_or(1)),
        },
        clients: the(&one.clients).unwrap_or(64),
        cores: the(&one.cores).unwrap_or(1),
        hosts: the(&one.hosts).unwrap_or(1),
        backend: match the(&one.backend).as_deref() {
            None | Some("plain") => Backend::Plain,
            Some("tls") => Backend::Tls,
            Some("balanced") => Backend::Several,
            Some(other) => {
                return Err(format!(
                    "{}: a backend is `plain`, `tls` or `balanced`, not {other:?}",
                    group.id
                ));
            }
        },
        rate: the(&one.rate),
        capacity: the(&one.capacity).map(|percent| percent / 100.0),
        patience: the(&one.patience).map(Duration::from_secs_f64),
        sources: the(&one.sources),
        beside: the(&one.beside).map(|crowd| match crowd.as_str() {
            "passing" => Crowd::Passing,
            "hellos" => Crowd::Hellos,
            "slow hellos" => Crowd::SlowHellos,
            "network" => Crowd::Network,
            _ => Crowd::Handshakes,
        }),
        engine: the(&one.engine).unwrap_or_else(|| "lean".into()),
        rounds: rounds.max(1),
        length: Duration::try_from_secs_f64(seconds)
            .map_err(|why| format!("{}: seconds: {why}", group.id))?,
        steps: steps.max(1),
        targets: group.targets.clone(),
        control: false,
        cannot: group.cannot.clone(),
        dimensions,
    })
}

/// The application protocol that stands for a client that asks for none.
const NO_PROTOCOL: &str = "none";

/// The cipher suite that stands for each program's own choice.
const OWN_SUITE: &str = "default";

/// The suites of a case. Programs prefer different ones (HAProxy AES-256, others AES-128), so that the modern cases,
/// which have none by name, all have AES-128-GCM; those of the past have what was published.
fn suites(era: Era, version: &str, keys: &str, named: Option<String>) -> Vec<String> {
    let of_key = |key: &str| {
        let signer = if key.trim().starts_with("RSA") { "RSA" } else { "ECDSA" };
        format!("TLS_ECDHE_{signer}_WITH_AES_128_GCM_SHA256")
    };
    match named {
        Some(name) if name == OWN_SUITE => Vec::new(),
        Some(name) => vec![name],
        None if era == Era::Historic => Vec::new(),
        None => match version {
            "1.3" => vec![MODERN_SUITE.to_owned()],
            "1.2" => keys.split('+').map(of_key).collect(),
            _ => Vec::new(),
        },
    }
}

/// Of TLS 1.3.
const MODERN_SUITE: &str = "TLS_AES_128_GCM_SHA256";

/// Rounds, seconds of a block or step, steps.
fn lengths(group: &Group, quick: bool) -> (u32, f64, u32) {
    let full = (group.rounds, group.seconds, group.steps);
    if !quick {
        return full;
    }
    (
        group.quick_rounds.unwrap_or(full.0),
        group.quick_seconds.unwrap_or(full.1),
        group.quick_steps.unwrap_or(full.2),
    )
}

/// Clients of a case that tells them apart by what they can verify.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientKind {
    /// What it can do; empty where a case has one kind.
    pub name: &'static str,
    /// Signature schemes that it offers.
    schemes: &'static [&'static str],
    /// Its cipher suite of TLS 1.2.
    suite: &'static str,
}

impl ClientKind {
    /// Makes the clients of a load of this kind: they offer TLS 1.2 and 1.3 with suites of both, as real clients do.
    /// HAProxy takes a client for one that can verify ECDSA by its suites of TLS 1.2.
    pub fn apply(&self, spec: &mut LoadSpec) {
        if self.name.is_empty() {
            return;
        }
        spec.tls.versions = ["1.2", "1.3"].map(str::to_owned).to_vec();
        spec.tls.suites = [MODERN_SUITE, self.suite].map(str::to_owned).to_vec();
        spec.tls.schemes = self.schemes.iter().map(ToString::to_string).collect();
    }

    /// Whether this scheme, of the server's signature, is one that it can verify.
    pub fn verifies(&self, scheme: &str) -> bool {
        self.schemes.is_empty() || self.schemes.contains(&scheme)
    }
}

/// Kinds of clients of a case that tells them apart.
pub fn clients() -> [ClientKind; 2] {
    [
        ClientKind {
            name: "can verify ECDSA alone",
            schemes: &["ecdsa_secp256r1_sha256"],
            suite: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        },
        ClientKind {
            name: "can verify RSA alone",
            // As real clients do, with PKCS #1 beside PSS: HAProxy 2.6 tells RSA by the former alone.
            schemes: &["rsa_pss_rsae_sha256", "rsa_pkcs1_sha256"],
            suite: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modern_cases_have_one_suite_for_all_programs() {
        let of = |era, version, keys, named: Option<&str>| suites(era, version, keys, named.map(Into::into));
        assert_eq!(of(Era::Modern, "1.3", "P-256", None), ["TLS_AES_128_GCM_SHA256"]);
        let both = ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"];
        assert_eq!(of(Era::Modern, "1.2", "P-256 + RSA-2048", None), both);
        assert_eq!(of(Era::Modern, "1.3", "P-256", Some("A")), ["A"]);
        assert!(of(Era::Modern, "1.3", "P-256", Some("default")).is_empty());
        assert!(of(Era::Historic, "1.0", "RSA-1024", None).is_empty());
        for name in crate::suite::names() {
            for case in crate::suite::Suite::find(name, false).unwrap().cases {
                let is_tls = matches!(&case.transport, Transport::Tls(_));
                let is_network = case.measure != Measure::InProcess;
                assert!(
                    !is_tls || !is_network || !case.suites.is_empty(),
                    "{name}: {} names no suite",
                    case.id
                );
            }
        }
    }
}
