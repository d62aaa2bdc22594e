//! Rules of a listener: which clients go where, before anything is decrypted.

use std::net::IpAddr;
use std::sync::Arc;

use courser_tls::Version;

use super::{Forwarding, Names, VirtualHost};

/// A rule: what becomes of the clients that it fits.
#[derive(Debug)]
pub struct Rule {
    /// Which these are: all conditions have to hold.
    pub when: Conditions,
    /// What becomes of them.
    pub action: Action,
}

/// What becomes of a connection.
#[derive(Clone, Debug)]
pub enum Action {
    /// TLS ends here, as this host.
    Terminate(Arc<VirtualHost>),
    /// It goes on as it came.
    Relay(Arc<Forwarding>),
    /// It is refused.
    Refuse,
}

/// Conditions on a ClientHello. What is absent holds for every client.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// It asks for one of these.
    pub server_names: Option<ServerNames>,
    /// It offers one of these application protocols; empty: whatever it offers.
    pub alpn: Vec<Vec<u8>>,
    /// Its client can use no ECDSA certificate.
    pub rsa_only: bool,
    /// The highest version that it offers.
    pub version: Option<Version>,
    /// Whether it offers a session.
    pub session: Option<bool>,
}

/// Server names that a rule is for.
#[derive(Clone, Debug, Default)]
pub struct ServerNames {
    /// Exact ones and wildcards.
    pub names: Names<()>,
    /// Clients that ask for no name, or for an IP address, which is none (RFC 6066, section 3).
    pub none: bool,
}

impl ServerNames {
    /// Whether a client that asks for `name`, which has to be in lower case, is among them.
    pub fn contain(&self, name: Option<&str>) -> bool {
        match name.filter(|name| name.parse::<IpAddr>().is_err()) {
            Some(name) => self.names.get(name).is_some(),
            None => self.none,
        }
    }
}
