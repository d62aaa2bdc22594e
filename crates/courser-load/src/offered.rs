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

    /// Before TLS 1.3 a ClientHello names the highest version and means all below it (RFC 5246, appendix E.1).
    fn versions(&self, hello: &ClientHello<'_>) -> Result<(), String> {
        let highest = self.versions.iter().max();
        let (offered, is_asked) = match hello.supported_versions {
            Some(versions) => {
                let offered: Vec<u16> = versions.without_grease().collect();
                let same = same_set(&offered, &self.versions);
                (offered, same)
            }
            None => (vec![hello.legacy_version], highest == Some(&hello.legacy_version)),
        };
        if self.versions.is_empty() || is_asked {
            return Ok(());
        }
        Err(format!("versions {offered:04x?} offered, {:04x?} asked", self.versions))
    }

    fn lists(&self, hello: &ClientHello<'_>) -> Result<(), String> {
        self.versions(hello)?;
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

#[cfg(test)]
mod tests {
    use courser_tls_client::{
        ClientConnection, ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, ServerName,
    };

    use super::*;

    /// The ClientHello of a new client of the lean engine.
    fn hello(offer: &ClientTlsSpec) -> Vec<u8> {
        let terms = ClientTlsConfig::new(Engine::Lean, offer).expect("the engine has it");
        let name = ServerName::parse("server.example").expect("a name");
        let mut client = ClientConnection::new(&terms, &name, ClientSessions::default()).expect("a client");
        let mut hello = Vec::new();
        client.process(&mut [], &mut Vec::new(), &mut hello).expect("a ClientHello");
        hello
    }

    fn offer() -> ClientTlsSpec {
        ClientTlsSpec {
            versions: vec![0x0304],
            suites: vec![0x1301],
            groups: vec![0x0017],
            ..ClientTlsSpec::default()
        }
    }

    fn check() -> Check {
        let offer = offer();
        Check { versions: offer.versions, suites: offer.suites, groups: offer.groups, ..Check::default() }
    }

    #[test]
    fn what_is_offered_as_asked_passes() {
        assert_eq!(check().offer(&hello(&offer()), false), Ok(Session::None));
        let old = ClientTlsSpec { versions: vec![0x0303], suites: vec![0xc02b], ..offer() };
        let asked = Check { versions: vec![0x0303], ..Check::default() };
        assert_eq!(asked.offer(&hello(&old), false), Ok(Session::None));
    }

    #[test]
    fn each_list_is_held_to_what_was_asked() {
        let hello = hello(&offer());
        let wrong = [
            (Check { versions: vec![0x0303, 0x0304], ..check() }, "versions [0304]"),
            (Check { suites: vec![0x1302], ..check() }, "cipher suites [1301]"),
            (Check { groups: vec![0x001d, 0x0017], ..check() }, "groups [0017]"),
            (Check { schemes: vec![0x0403], ..check() }, "signature schemes"),
        ];
        for (asked, said) in wrong {
            let why = asked.offer(&hello, false).expect_err("it offers something else");
            assert!(why.starts_with(said), "{why}");
        }
    }

    #[test]
    fn a_session_that_is_kept_has_to_be_offered() {
        let asked = Check { may_resume: true, ..check() };
        assert!(asked.offer(&hello(&offer()), true).is_err());
        assert!(check().offer(b"GET / HTTP/1.1\r\n\r\n", false).is_err());
    }
}
