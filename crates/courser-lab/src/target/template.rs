//! Templates of configuration files, and conditions on a specification.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::Serialize;

use super::fleet::FleetHost;
use super::{KeyKind, Preset, TargetSpec, Tls};

/// What every program that runs on OpenSSL can include: settings of the library that the program has no word for.
const OPENSSL: &str = "\
openssl_conf = main
[main]
ssl_conf = modules
[modules]
system_default = defaults
[defaults]
MinProtocol = {{ 'TLSv1' if tls.min == '1.0' else 'TLSv' ~ tls.min }}
CipherString = DEFAULT:@SECLEVEL={{ 0 if old else 2 }}
Options = {{ '' if tls.tickets else '-' }}SessionTicket
";

/// The names that templates and conditions know.
#[derive(Clone, Serialize)]
pub(super) struct Context {
    /// The folder that the program may write to; its files are in it.
    folder: String,
    /// Where it is to listen: `127.0.0.1:4433`.
    listen: String,
    /// The port of that.
    port: u16,
    /// TLS towards clients; none for clear text.
    tls: Option<TlsContext>,
    /// Whether it is the tuned preset.
    tuned: bool,
    /// Workers.
    workers: usize,
    /// The processors that it may use; empty for all.
    cpus: Vec<usize>,
    /// The same as masks in binary digits, the first processor last: `0010`.
    cpu_masks: Vec<String>,
    /// Addresses of backends.
    backends: Vec<String>,
    /// Whether backends speak TLS.
    backend_tls: bool,
    /// Whether what comes is HTTP/1.1.
    http: bool,
    /// Whether clients send several requests over a connection: backend connections are then to be kept too.
    keep_alive: bool,
    /// What it shares with other hosts; none for one by itself.
    fleet: Option<FleetContext>,
    /// Length of the listen queue.
    backlog: u32,
    /// Clients at a time: what the limit of descriptors allows, two for each.
    connections: u64,
    /// Whether something is asked for that OpenSSL takes for insecure: RSA under 2048 bits, TLS before 1.2.
    old: bool,
    /// Whether we are root.
    root: bool,
    /// The program's version, as it says.
    version: String,
    /// The program's TLS library, as it says.
    library: String,
    /// Which of the files that the program needs is there; empty when it needs none.
    needed: String,
}

/// TLS towards clients.
#[derive(Clone, Debug, Serialize)]
struct TlsContext {
    /// As they are asked for.
    versions: Vec<String>,
    /// The lowest version.
    min: String,
    /// The highest version.
    max: String,
    /// Suites, IANA names.
    suites: Vec<String>,
    /// Those of TLS 1.2 and before.
    suites12: Vec<String>,
    /// The same by OpenSSL's names.
    openssl12: Vec<String>,
    /// Those of TLS 1.3, of which IANA and OpenSSL have the same names.
    suites13: Vec<String>,
    groups: Vec<String>,
    /// Application protocols: `h2`, `http/1.1`; empty for the program's own.
    alpn: Vec<String>,
    certificates: Vec<CertificateContext>,
    tickets: bool,
    /// Sessions in the cache; 0 for no cache.
    cache: u32,
}

/// What hosts share, and what tells them apart.
#[derive(Clone, Serialize)]
struct FleetContext {
    /// 160 hexadecimal digits.
    secret: String,
    /// When it was made, seconds since 1970.
    made: u64,
    /// This host, counted from 1.
    host: usize,
    /// Where the others listen.
    peers: Vec<String>,
}

/// A certificate.
#[derive(Clone, Debug, Serialize)]
struct CertificateContext {
    kind: String,
    chain: String,
    key: String,
    combined: String,
}

/// What is only known when a target is about to start.
#[derive(Clone, Debug)]
pub(super) struct LaunchContext {
    /// The program's folder.
    pub(super) folder: String,
    /// Where it is to listen.
    pub(super) listen: std::net::SocketAddr,
    /// Which host of a fleet it is of, and its peers.
    pub(super) host: FleetHost,
    /// Its version.
    pub(super) version: String,
    /// Its TLS library.
    pub(super) library: String,
    /// The file that it needs.
    pub(super) needed: String,
    /// Length of its listen queue, where it has one of its own.
    pub(super) backlog: Option<u32>,
    /// Clients at a time, where it has a number of its own.
    pub(super) connections: Option<u64>,
}

impl Context {
    /// The specification, for a program at this place.
    pub(super) fn new(spec: &TargetSpec, place: LaunchContext) -> Self {
        Self {
            folder: place.folder,
            listen: place.listen.to_string(),
            port: place.listen.port(),
            old: spec.tls.as_ref().is_some_and(is_old),
            tls: spec.tls.as_ref().map(TlsContext::new),
            tuned: spec.preset == Preset::Tuned,
            workers: spec.workers,
            cpus: spec.cpus.clone(),
            cpu_masks: spec.cpus.iter().map(|cpu| format!("1{}", "0".repeat(*cpu))).collect(),
            backends: spec.backends.iter().map(ToString::to_string).collect(),
            backend_tls: spec.backend_tls,
            http: spec.http,
            keep_alive: spec.keep_alive,
            fleet: spec.fleet.as_ref().map(|fleet| FleetContext {
                secret: fleet.secret.clone(),
                made: fleet.made,
                host: place.host.number,
                peers: place.host.peers.iter().map(ToString::to_string).collect(),
            }),
            backlog: place.backlog.unwrap_or(spec.backlog),
            connections: place.connections.unwrap_or_else(connections),
            root: rustix::process::geteuid().is_root(),
            version: place.version,
            library: place.library,
            needed: place.needed,
        }
    }
}

impl TlsContext {
    fn new(tls: &Tls) -> Self {
        let (old, new): (Vec<&String>, Vec<&String>) =
            tls.suites.iter().partition(|name| name.contains("_WITH_"));
        let certificate = |one: &super::Certificate| CertificateContext {
            kind: one.kind.to_string(),
            chain: one.chain.display().to_string(),
            key: one.key.display().to_string(),
            combined: one.combined.display().to_string(),
        };
        Self {
            versions: tls.versions.clone(),
            min: tls.versions.iter().min().cloned().unwrap_or_default(),
            max: tls.versions.iter().max().cloned().unwrap_or_default(),
            suites: tls.suites.clone(),
            suites12: old.iter().copied().cloned().collect(),
            openssl12: old.into_iter().map(|name| openssl_name(name)).collect(),
            suites13: new.into_iter().cloned().collect(),
            groups: tls.groups.clone(),
            alpn: tls.alpn.clone(),
            certificates: tls.certificates.iter().map(certificate).collect(),
            tickets: tls.tickets,
            cache: tls.session_cache.unwrap_or(0),
        }
    }
}

/// Every target gets the same, also where its own default is lower: how many clients there are is the generator's say.
fn connections() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    (limit.unwrap_or(u64::MAX) / 2).saturating_sub(200).clamp(100, 65_535)
}

/// Level 1 of OpenSSL refuses SHA-1 signatures, which TLS 1.0 and 1.1 cannot do without; level 2, that of
/// distributions, refuses RSA under 2048 bits.
fn is_old(tls: &Tls) -> bool {
    let small = |kind| matches!(kind, KeyKind::Rsa(bits) if bits < 2048);
    let weak =
        |name: &String| ["_RC4_", "_3DES_", "_DES_", "_MD5", "_NULL_"].iter().any(|part| name.contains(part));
    tls.versions.iter().any(|version| version.as_str() < "1.2")
        || tls.certificates.iter().any(|one| small(one.kind))
        || tls.suites.iter().any(weak)
}

/// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256` to OpenSSL.
fn openssl_name(iana: &str) -> String {
    let name = iana.trim_start_matches("TLS_");
    let (exchange, rest) = name.split_once("_WITH_").unwrap_or(("RSA", name));
    let replaced = [
        ("3DES_EDE_CBC", "DES-CBC3"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
        ("AES_128", "AES128"),
        ("AES_256", "AES256"),
        ("CAMELLIA_128", "CAMELLIA128"),
        ("CAMELLIA_256", "CAMELLIA256"),
        ("RC4_128", "RC4"),
        ("_CBC_", "_"),
    ];
    let cipher =
        replaced.iter().fold(rest.to_owned(), |text, (from, to)| text.replace(from, to)).replace('_', "-");
    if exchange == "RSA" { cipher } else { format!("{}-{cipher}", exchange.replace('_', "-")) }
}

/// Whether a version, or a text with one of OpenSSL, is before another. Where there is no number, it is not.
fn older(text: &str, version: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> {
        text.split(['.', ' ', '-']).map_while(|part| part.parse().ok()).collect()
    };
    let found = numbers(text.split_once("OpenSSL ").map_or(text, |(_, rest)| rest));
    !found.is_empty() && found < numbers(version)
}

/// A template, filled in.
pub(super) fn render(name: &str, text: &str, context: &Context) -> Result<String, String> {
    let environment = environment();
    environment.render_named_str(name, text, Serde(context)).map_err(|why| template_error(name, &why))
}

/// Whether a condition holds.
pub(super) fn holds(condition: &str, context: &Context) -> Result<bool, String> {
    let environment = environment();
    let expression =
        environment.compile_expression(condition).map_err(|why| template_error(condition, &why))?;
    let value: Value = expression.eval(Serde(context)).map_err(|why| template_error(condition, &why))?;
    Ok(value.is_true())
}

/// Looks for mistakes in templates, each with its name, and conditions.
pub(super) fn check<'d>(
    templates: impl Iterator<Item = (&'d str, &'d String)>,
    conditions: impl Iterator<Item = &'d String>,
) -> Result<(), String> {
    let environment = environment();
    for (name, text) in templates {
        environment.template_from_named_str(name, text).map_err(|why| template_error(name, &why))?;
    }
    for condition in conditions {
        environment.compile_expression(condition).map_err(|why| template_error(condition, &why))?;
    }
    Ok(())
}

fn template_error(name: &str, why: &minijinja::Error) -> String {
    format!("{name}: {why}")
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // A name that is mistyped is a mistake, and no empty text.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    // A line that is a tag leaves nothing behind.
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("its delimiters are the usual ones"));
    environment.add_function("older", |library: &str, version: &str| older(library, version));
    environment.add_template("openssl.cnf", OPENSSL).expect("a test fills it in");
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_the_names_that_openssl_knows() {
        let pairs = [
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
            ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
            ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
            ("TLS_RSA_WITH_RC4_128_SHA", "RC4-SHA"),
            ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA"),
            ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ];
        for (iana, openssl) in pairs {
            assert_eq!(openssl_name(iana), openssl);
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(older("OpenSSL 3.0.19 27 Jan 2026", "3.5") && older("OpenSSL 1.1.1w", "3.0"));
        assert!(older("2.4.3-1", "2.5") && !older("2.6.12-1+deb12u4 2026/10/17", "2.5"));
        assert!(
            !older("OpenSSL 3.10.0", "3.5") && !older("OpenSSL 3.5.0", "3.5") && !older("BoringSSL", "3.5")
        );
    }
}
