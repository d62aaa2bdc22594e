//! The places of the grid: five rules, each as a listener of its own and as a virtual host of a common one.

use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, SessionThief, Version};
use courser_testkit::{Courser, Leaf};

use super::{Card, quoted};
use crate::support::Site;

/// What a place asks of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) mode: &'static str,
    /// The authority that it believes, by its index.
    pub(super) authority: Option<usize>,
}

const RULES: [Rule; 5] = [
    Rule { mode: "none", authority: None },
    Rule { mode: "optional", authority: Some(0) },
    Rule { mode: "optional", authority: Some(1) },
    Rule { mode: "required", authority: Some(0) },
    Rule { mode: "required", authority: Some(1) },
];

/// One for each rule, one for all virtual hosts.
pub(super) const SOCKETS: usize = RULES.len() + 1;

impl Rule {
    /// The alert that a full handshake with this card ends in, if it does.
    pub(super) fn refuses(self, card: Card, version: Version) -> Option<&'static str> {
        match (self.mode, card) {
            ("none", _) | ("optional", None) => None,
            ("required", None) if version == Version::Tls13 => Some("CertificateRequired"),
            ("required", None) => Some("HandshakeFailure"),
            _ if card == self.authority => None,
            _ => Some("UnknownCA"),
        }
    }

    fn name(self) -> String {
        let authority = self.authority.map_or_else(|| "nobody".to_owned(), |index| format!("ca-{index}"));
        format!("{}-{authority}", self.mode)
    }

    fn settings(self, files: &[PathBuf; 2]) -> String {
        let ca = self.authority.map(|index| format!("client_ca = {}\n", quoted(&files[index])));
        format!("client_auth = \"{}\"\n{}", self.mode, ca.unwrap_or_default())
    }
}

/// Where a session can be made or offered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rule: Rule,
    number: usize,
    virtual_host: bool,
}

pub(super) fn places() -> impl Iterator<Item = Place> {
    let at = |virtual_host| {
        RULES.into_iter().enumerate().map(move |(number, rule)| Place { rule, number, virtual_host })
    };
    at(false).chain(at(true))
}

impl Place {
    /// The client that visits this place on a host.
    pub(super) fn client(self, intruder: &SessionThief, host: &Courser) -> Client {
        intruder.at(self.address(host), &self.server_name())
    }

    /// Where the place is on a host.
    pub(super) fn address(self, host: &Courser) -> SocketAddr {
        let socket = if self.virtual_host { RULES.len() } else { self.number };
        host.addresses()[socket].parse().expect("the listeners are on TCP")
    }

    /// The listener's name in the log.
    pub(super) fn listener(self) -> String {
        if self.virtual_host { "common".to_owned() } else { self.rule.name() }
    }

    /// The host's name in the log.
    pub(super) fn host(self) -> String {
        if self.virtual_host { self.rule.name() } else { "default".to_owned() }
    }

    /// The name that clients ask for.
    pub(super) fn server_name(self) -> String {
        if self.virtual_host { format!("{}.example", self.rule.name()) } else { "localhost".to_owned() }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.listener(), self.host())
    }
}

/// A host with all places; `BACKEND` stands for the origin.
pub(super) fn configuration(site: &Site, files: &[PathBuf; 2]) -> String {
    let names = places().filter(|place| place.virtual_host).map(Place::server_name);
    let leaf = Leaf::new(EcdsaP256).names(std::iter::once("localhost".to_owned()).chain(names));
    let cert = quoted(&site.ca.issue(&leaf).write_combined(&site.folder, "site"));
    let listener = |name: &str| {
        format!(
            "[[listener]]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\nbackend = \"BACKEND\"\ncert = {cert}\n"
        )
    };
    let mut text = "[sessions]\ntickets_per_handshake = 16\n".to_owned();
    for rule in RULES {
        let _ = write!(text, "{}{}", listener(&rule.name()), rule.settings(files));
    }
    text.push_str(&listener("common"));
    for place in places().filter(|place| place.virtual_host) {
        let (name, server_name) = (place.host(), place.server_name());
        let _ = write!(
            text,
            "[[listener.host]]\nname = \"{name}\"\nnames = \"{server_name}\"\n{}",
            place.rule.settings(files)
        );
    }
    text
}
