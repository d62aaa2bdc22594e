//! What a ClientHello offers, read from its bytes: the experiment is held to what was asked, whatever the TLS library
//! makes of its settings.

use std::fmt;

use courser_wire::hello::ClientHello;
use courser_wire::record::{Assembly, assemble};

/// Longest ClientHello that is looked at: a post-quantum key share and a ticket fit in a fraction of it.
const LIMIT: usize = 64 * 1024;

/// What a client offers to resume with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Session {
    /// Nothing.
    #[default]
    None,
    /// A session ID (RFC 5246, section 7.3).
    Id,
    /// A session ticket (RFC 5077).
    Ticket,
    /// A pre-shared key (RFC 8446, section 4.2.11).
    Psk,
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Id => "session_id",
            Self::Ticket => "ticket",
            Self::Psk => "psk",
        })
    }
}

/// What every ClientHello of a run must offer. An empty list demands nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Versions, no more and no fewer.
    pub versions: Vec<u16>,
    /// Suites, in this order.
    pub suites: Vec<u16>,
    /// Groups, in this order.
    pub groups: Vec<u16>,
    /// Signature schemes, in this order.
    pub schemes: Vec<u16>,
    /// Whether the client kept a session that it could resume is known per connection; this says whether it ever may.
    pub may_resume: bool,
}

impl Check {
    /// Reads the records of a ClientHello. `has_session`: the client has one to resume. Fails with what is offered
    /// instead of what was asked.
    pub fn offer(&self, records: &[u8], has_session: bool) -> Result<Session, String> {
        let Ok(Assembly::Complete(body)) = assemble(records, LIMIT) else {
            return Err("no whole ClientHello was sent".into());
        };
        let hello = ClientHello::parse(&body).map_err(|why| format!("our ClientHello: {why}"))?;
        self.lists(&hello)?;
        let session = session(&hello);
        match (session, has_session && self.may_resume) {
            (Session::None, true) => Err("a session was there and was not offered".into()),
            (session, false) if session != Session::None => {
                Err(format!("{session} offered without being asked"))
            }
            _ => Ok(session),
        }
    }

    fn lists(&self, hello: &ClientHello<'_>) -> Result<(), String> {
        let versions = versions(hello);
        if !self.versions.is_empty() && !same_set(&versions, &self.versions) {
            return Err(format!("versions {versions:04x?} offered, {:04x?} asked", self.versions));
        }
        let schemes = hello.signature_schemes.map(|schemes| schemes.without_grease().collect::<Vec<_>>());
        let lists = [
            ("cipher suites", suites(hello), &self.suites),
            ("groups", hello.groups.without_grease().collect(), &self.groups),
            ("signature schemes", schemes.unwrap_or_default(), &self.schemes),
        ];
        for (name, offered, asked) in lists {
            if !asked.is_empty() && offered != *asked {
                return Err(format!("{name} {offered:04x?} offered, {asked:04x?} asked"));
            }
        }
        Ok(())
    }
}

fn versions(hello: &ClientHello<'_>) -> Vec<u16> {
    hello
        .supported_versions
        .map_or(vec![hello.legacy_version], |versions| versions.without_grease().collect())
}

/// Without the signalling values, which are no suites (RFC 5746, RFC 7507).
fn suites(hello: &ClientHello<'_>) -> Vec<u16> {
    hello.cipher_suites.without_grease().filter(|suite| !matches!(suite, 0x00ff | 0x5600)).collect()
}

fn same_set(left: &[u16], right: &[u16]) -> bool {
    left.iter().all(|value| right.contains(value)) && right.iter().all(|value| left.contains(value))
}

/// A session ID beside a ticket, or in TLS 1.3, is random and names nothing (RFC 5077, section 3.4; RFC 8446, D.4).
fn session(hello: &ClientHello<'_>) -> Session {
    if !hello.psk_identities.is_empty() {
        Session::Psk
    } else if hello.session_ticket.is_some_and(|ticket| !ticket.is_empty()) {
        Session::Ticket
    } else if !hello.session_id.is_empty() && !hello.offers_tls13() {
        Session::Id
    } else {
        Session::None
    }
}
