//! What a connection reads: one immutable generation of settings that it holds until it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use courser_net::Liveness;
use courser_session::PolicyHash;
use courser_telemetry::metrics::{HostCounters, ListenerCounters};
use courser_tls::{Identity, KeyKind, ServerTlsConfig};

use crate::pool::Pool;

mod accept_proxy;
mod rule;

pub use accept_proxy::AcceptProxy;
pub use rule::{Action, Conditions, Rule, ServerNames};

/// The settings of one listener.
#[derive(Debug)]
pub struct Listener {
    /// Configured name.
    pub name: String,
    /// Total for the ClientHello and the handshake.
    pub handshake_timeout: Duration,
    /// The sources that have to send a PROXY header, where there are any.
    pub accept_proxy: Option<AcceptProxy>,
    /// The first that fits a client decides; where none does, the server name.
    pub rules: Vec<Rule>,
    /// Whether a client that names no known host, or none, is refused.
    pub refuse_unknown: bool,
    /// Serves clients whose name belongs to no host.
    pub default: Arc<VirtualHost>,
    /// Virtual hosts by the names they serve.
    pub hosts: Names<Arc<VirtualHost>>,
    /// What is counted of its connections.
    pub counters: Arc<ListenerCounters>,
    /// What is counted of handshakes that fail before the host is known.
    pub unknown_host: Arc<HostCounters>,
}

impl Listener {
    /// The same with other hosts, which take the place of those that it has, also in its rules.
    #[must_use]
    pub fn with_hosts(
        &self,
        default: Arc<VirtualHost>,
        hosts: Names<Arc<VirtualHost>>,
        in_place_of: impl Fn(&Arc<VirtualHost>) -> Arc<VirtualHost>,
    ) -> Self {
        let rule = |rule: &Rule| {
            let action = match &rule.action {
                Action::Terminate(host) => Action::Terminate(in_place_of(host)),
                other => other.clone(),
            };
            Rule { when: rule.when.clone(), action }
        };
        Self {
            name: self.name.clone(),
            handshake_timeout: self.handshake_timeout,
            accept_proxy: self.accept_proxy.clone(),
            rules: self.rules.iter().map(rule).collect(),
            refuse_unknown: self.refuse_unknown,
            default,
            hosts,
            counters: Arc::clone(&self.counters),
            unknown_host: Arc::clone(&self.unknown_host),
        }
    }

    /// The host that serves `name`; `None` when it is unknown and unknown names are refused.
    pub fn host(&self, name: Option<&str>) -> Option<&Arc<VirtualHost>> {
        let known = name.and_then(|name| self.hosts.get(name));
        let covered = |name| self.default.certificates.covers(name);
        known.or_else(|| (!self.refuse_unknown || name.is_some_and(covered)).then_some(&self.default))
    }
}

/// How one group of server names is served.
#[derive(Debug)]
pub struct VirtualHost {
    /// Configured name.
    pub name: String,
    /// What TLS negotiates.
    pub tls: Arc<ServerTlsConfig>,
    /// Binds sessions to this host.
    pub policy: PolicyHash,
    /// Certificates to choose from.
    pub certificates: Certificates,
    /// Where its plaintext goes.
    pub forwarding: Arc<Forwarding>,
    /// What is counted of its handshakes.
    pub counters: Arc<HostCounters>,
}

impl VirtualHost {
    /// The same with other certificates.
    #[must_use]
    pub fn with_certificates(&self, certificates: Certificates) -> Self {
        Self {
            name: self.name.clone(),
            tls: Arc::clone(&self.tls),
            policy: self.policy,
            certificates,
            forwarding: Arc::clone(&self.forwarding),
            counters: Arc::clone(&self.counters),
        }
    }
}

/// How connections go on to backends, and how long they may take for what.
#[derive(Debug)]
pub struct Forwarding {
    /// The servers that they go to.
    pub pool: Arc<Pool>,
    /// The PROXY header that a backend gets.
    pub send_proxy: SendProxy,
    /// How long connecting to one backend may take.
    pub connect_timeout: Duration,
    /// How long a connection may stay without a byte in either direction.
    pub idle_timeout: Duration,
    /// How long the backend may go on without a byte that is delivered, once the client has ended.
    pub client_fin_timeout: Duration,
    /// How long the client may go on without a byte that is delivered, once the backend has ended.
    pub backend_fin_timeout: Duration,
    /// How old a connection may become.
    pub max_connection_age: Option<Duration>,
    /// When the kernel finds out that the other machine is gone.
    pub liveness: Liveness,
    /// Whether the backend is reset when the client's stream ends without close_notify.
    pub reset_truncated: bool,
}

/// Which PROXY header a backend gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendProxy {
    /// None.
    Off,
    /// Version 1.
    V1,
    /// Version 2 with the addresses alone.
    V2Addresses,
    /// Version 2 with what TLS agreed on.
    V2,
    /// The same with the client's certificate.
    V2ClientCert,
}

/// The certificates of a host, by name and by kind of key.
#[derive(Debug, Default)]
pub struct Certificates {
    by_name: Names<KeySet>,
    default: KeySet,
}

/// Certificates for the same name, the cheapest to sign with first.
type KeySet = Vec<Arc<Identity>>;

impl Certificates {
    /// Sorts certificates, those that are valid now in front, by the names in them. The first of each kind also serves clients
    /// whose name none has.
    pub fn new(identities: &[Arc<Identity>]) -> Self {
        let mut certificates = Self::default();
        for identity in identities {
            for name in &identity.names {
                add(certificates.by_name.entry(name), identity);
            }
            add(&mut certificates.default, identity);
        }
        certificates
    }

    /// For people: the certificates of clients whose name none has, and how many names there are.
    pub fn describe(&self) -> String {
        let describe = |identity: &Arc<Identity>| {
            let name = identity.names.first().map_or("(no name)", String::as_str);
            format!("{} for {name}", identity.key_algorithm)
        };
        let mut default: Vec<&Arc<Identity>> = self.default.iter().collect();
        default.dedup_by_key(|identity| identity.kind);
        let default: Vec<String> = default.into_iter().map(describe).collect();
        format!("certificates: {}; names: {}", default.join(", "), self.by_name.len())
    }

    pub(crate) fn covers(&self, name: &str) -> bool {
        self.by_name.get(name).is_some()
    }

    pub(crate) fn for_name(&self, name: Option<&str>) -> &KeySet {
        name.and_then(|name| self.by_name.get(name)).unwrap_or(&self.default)
    }
}

/// Adds the first certificate of its kind, and behind it of those that are configured later for the same name and kind the one
/// that ends last: it is served once the first has expired. One for each name and kind is all that there mostly is.
fn add(set: &mut KeySet, identity: &Arc<Identity>) {
    let of_kind = |known: &Arc<Identity>| known.kind == identity.kind;
    match set.iter().rposition(of_kind) {
        Some(last) if set[last].not_after >= identity.not_after => {}
        Some(last) if last > 0 && of_kind(&set[last - 1]) => set[last] = Arc::clone(identity),
        _ => {
            // There will hardly be a second one.
            set.reserve_exact(1);
            set.push(Arc::clone(identity));
            // Stable: what has come first stays in front.
            set.sort_by_key(|identity| rank(identity.kind));
        }
    }
}

/// ECDSA on P-256 first: it signs fastest and every client of the last ten years verifies it; RSA last.
fn rank(kind: KeyKind) -> u8 {
    match kind {
        KeyKind::EcdsaP256 => 0,
        KeyKind::Ed25519 => 1,
        KeyKind::EcdsaP384 => 2,
        KeyKind::EcdsaP521 => 3,
        KeyKind::Rsa => 4,
    }
}

/// Values by server name: exact, then with a wildcard in place of the first label (RFC 9525, section 6.3). Both are
/// one hash look-up, whatever the number of names.
#[derive(Clone, Debug)]
pub struct Names<T> {
    exact: HashMap<Box<str>, T>,
    /// By what follows `*.`.
    wildcard: HashMap<Box<str>, T>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), wildcard: HashMap::new() }
    }
}

impl<T: Default> Names<T> {
    /// The value of a pattern, `name` or `*.name`, made if there is none.
    pub fn entry(&mut self, pattern: &str) -> &mut T {
        match pattern.strip_prefix("*.") {
            Some(parent) => self.wildcard.entry(parent.into()).or_default(),
            None => self.exact.entry(pattern.into()).or_default(),
        }
    }
}

impl<T> Names<T> {
    /// Sets the value of a pattern.
    pub fn insert(&mut self, pattern: &str, value: T) {
        match pattern.strip_prefix("*.") {
            Some(parent) => self.wildcard.insert(parent.into(), value),
            None => self.exact.insert(pattern.into(), value),
        };
    }

    /// How many patterns there are.
    pub fn len(&self) -> usize {
        self.exact.len() + self.wildcard.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value for `name`, which has to be in lower case.
    pub fn get(&self, name: &str) -> Option<&T> {
        let parent = || name.split_once('.').map(|(_, parent)| parent);
        self.exact.get(name).or_else(|| self.wildcard.get(parent()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_comes_before_wildcard_and_a_wildcard_is_one_label() {
        let mut names = Names::default();
        names.insert("*.example", 1);
        names.insert("a.example", 2);
        assert_eq!(names.get("a.example"), Some(&2));
        assert_eq!(names.get("b.example"), Some(&1));
        assert_eq!(names.get("c.b.example"), None);
        assert_eq!(names.get("example"), None);
    }
}
