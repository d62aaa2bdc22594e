//! Rules that route connections by their ClientHello, as a valid configuration has them.

use crate::named::named;
use crate::near::list;
use crate::proxy_protocol::SendProxy;
use crate::tls::TlsVersion;

/// A rule: the first one that fits a client decides what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRule {
    /// All of it has to hold.
    pub when: RouteConditions,
    /// What becomes of the client.
    pub action: RouteAction,
}

/// What becomes of a client that a rule fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteAction {
    /// Its bytes go to a server of a pool as they come.
    Relay {
        /// Name of the pool.
        pool: String,
        /// Which PROXY protocol header the server gets.
        send_proxy: SendProxy,
    },
    /// TLS is terminated as the host of this name; `default` is the listener's own.
    Terminate(String),
    /// It gets the alert `access_denied`.
    Refuse,
}

/// Conditions on a ClientHello. What is absent holds for every client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteConditions {
    /// It asks for one of these names, which are as those of hosts; an empty one stands for no name at all. `None`: whatever
    /// it asks for.
    pub server_names: Option<Vec<String>>,
    /// It offers one of these protocols (ALPN). Empty: whatever it offers.
    pub alpn: Vec<String>,
    /// The kind of key that it can use.
    pub key: Option<KeyCondition>,
    /// The highest version that it offers.
    pub version: Option<TlsVersion>,
    /// Whether it offers a session.
    pub session: Option<SessionCondition>,
}

named! {
    /// The kind of key that a client can use.
    KeyCondition {
        /// No ECDSA.
        RsaOnly = "rsa-only" | "rsa",
    }
}

named! {
    /// Whether a client offers a session to resume.
    SessionCondition {
        /// A ticket, a PSK, or below TLS 1.3 a session ID.
        Offered = "offered",
        /// None of them.
        None = "none",
    }
}

impl RouteRule {
    /// Whether it is for every client.
    pub fn is_for_all(&self) -> bool {
        self.when == RouteConditions::default()
    }
}

/// Says in a line what a rule does, for the log.
impl std::fmt::Display for RouteRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RouteConditions { server_names, alpn, key, version, session } = &self.when;
        let name = |name: &String| if name.is_empty() { "none".to_owned() } else { format!("`{name}`") };
        let names = |names: &Vec<String>| {
            format!("server_name {}", names.iter().map(name).collect::<Vec<_>>().join(", "))
        };
        let conditions = [
            server_names.as_ref().map(names),
            (!alpn.is_empty()).then(|| format!("alpn {}", list(alpn.iter().map(String::as_str)))),
            key.map(|key| format!("key {}", crate::named::Named::name(key))),
            version.map(|version| format!("version {version}")),
            session.map(|session| format!("session {}", crate::named::Named::name(session))),
        ];
        let conditions: Vec<String> = conditions.into_iter().flatten().collect();
        let conditions =
            if conditions.is_empty() { "every client".to_owned() } else { conditions.join(", ") };
        match &self.action {
            RouteAction::Relay { pool, .. } => write!(f, "{conditions}: relay to pool {pool}"),
            RouteAction::Terminate(host) => write!(f, "{conditions}: terminate as host {host}"),
            RouteAction::Refuse => write!(f, "{conditions}: refuse"),
        }
    }
}
