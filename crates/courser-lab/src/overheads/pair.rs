//! Both ends set up for one suite and one key, and the connections between them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser_session::{EpochLength, FleetKeys, PolicyHash, Ticketer, UnixSeconds};
use courser_tls::{
    Failure, HandshakePlan, Identity, ServerConnection, ServerTlsConfig, ServerTlsSpec, SessionOffer,
    Sessions, SuiteOrder, TlsConfigError, Version,
};
use courser_tls_client::{
    ClientConnection, ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, Resume, ServerName, Trust,
};
#[cfg(feature = "openssl")]
use courser_tls_client::{OpensslKey, OpensslServer, OpensslServerConfig};

use super::batch::{Batch, Spent};
use super::server::Server;
use super::{Error, Key, Library, Trouble};

/// X25519.
const GROUP: u16 = 0x001d;

/// The curve of [`Key::EcdsaP256`].
const P256: u16 = 0x0017;

/// TLS 1.3 tickets after a handshake, as the terminator's default and OpenSSL's.
const TICKETS: usize = 2;

/// Connections that take their turns together. So many that reading the clock does not show, so few that what they
/// touch stays in the processor's second-level cache.
const BATCH: u32 = 8;

/// Who both ends think the server is.
const NAME: &str = "server.example";

/// Code point of the version whose tickets serve once.
const TLS13: u16 = 0x0304;

/// What servers are made from.
enum Opposite {
    Own(ServerTlsConfig, Arc<Identity>),
    #[cfg(feature = "openssl")]
    Openssl(OpensslServerConfig),
}

pub(super) struct InProcessPair {
    suite: u16,
    opposite: Opposite,
    /// That never resumes, and that does.
    clients: [ClientTlsConfig; 2],
    name: ServerName,
}

impl InProcessPair {
    pub(super) fn new(library: Library, version: u16, suite: u16, key: Key) -> Result<Self, Error> {
        let (engine, opposite) = match library {
            Library::Own => (Engine::Real, own(version, suite, key)?),
            Library::OpenSsl => (Engine::Openssl, openssl(version, suite, key)?),
        };
        let client = |resume| {
            ClientTlsConfig::new(engine, &offer(engine, version, suite, resume)).map_err(Error::Terms)
        };
        Ok(Self {
            suite,
            opposite,
            clients: [client(Resume::Never)?, client(Resume::Ticket)?],
            name: ServerName::parse(NAME).expect("it is a name"),
        })
    }

    /// What `number` connections cost, in batches; before them, as many as a batch has make full handshakes that do not
    /// count. `bytes` go there and back on each.
    pub(super) fn run(&self, resume: bool, bytes: usize, number: u32) -> Result<Vec<Spent>, Trouble> {
        let content: Vec<u8> = (0..bytes).map(|index| (index % 251).to_le_bytes()[0]).collect();
        let mut sessions: Vec<ClientSessions> =
            (0..BATCH.min(number)).map(|_| ClientSessions::default()).collect();
        self.batch(&mut sessions, resume, false, &content)?;
        let mut batches = Vec::new();
        let mut left = number;
        while left > 0 {
            sessions.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            let spent = self.batch(&mut sessions, resume, resume, &content)?;
            left -= spent.connections;
            batches.push(spent);
        }
        Ok(batches)
    }

    /// One connection for each set of sessions. `resume`: whether clients would; `resumes`: whether they have to.
    fn batch(
        &self,
        sessions: &mut Vec<ClientSessions>,
        resume: bool,
        resumes: bool,
        content: &[u8],
    ) -> Result<Spent, Trouble> {
        let terms = &self.clients[usize::from(resume)];
        let client = |sessions| ClientConnection::new(terms, &self.name, sessions);
        let mut batch =
            Batch::new(std::mem::take(sessions), client, || self.accept()).map_err(Trouble::Failed)?;
        batch.handshake().and_then(|()| batch.echo(content)).map_err(Trouble::Failed)?;
        batch.check(self.suite, resumes, content)?;
        let (spent, next) = batch.end();
        *sessions = next;
        Ok(spent)
    }

    fn accept(&self) -> Result<Server, Failure> {
        let (terms, identity) = match &self.opposite {
            Opposite::Own(terms, identity) => (terms, identity),
            #[cfg(feature = "openssl")]
            Opposite::Openssl(terms) => return OpensslServer::new(terms).map(Server::Openssl),
        };
        let policy = PolicyHash::builder("overheads", NAME).finish();
        let plan = HandshakePlan::new(Arc::clone(identity), policy, SessionOffer::Tickets);
        let server = ServerConnection::new(terms, GROUP, SuiteOrder::Configured, plan);
        server.map(|server| Server::Own(Box::new(server)))
    }
}

fn own(version: u16, suite: u16, key: Key) -> Result<Opposite, Error> {
    let names = [NAME.to_owned()];
    let identity = match key {
        Key::EcdsaP256 => courser_tls::self_signed(&names),
        Key::Rsa2048 => courser_tls::self_signed_rsa(&names),
        Key::Rsa512 | Key::Rsa1024 => {
            return Err(Error::Terms(TlsConfigError::Unable("the library takes no RSA key under 2048 bits")));
        }
    };
    let version = if version == TLS13 { Version::Tls13 } else { Version::Tls12 };
    let offer = ServerTlsSpec {
        versions: vec![version],
        suites: vec![suite],
        groups: vec![GROUP],
        tickets: TICKETS,
        ..ServerTlsSpec::default()
    };
    let terms = ServerTlsConfig::new(offer, &sessions()).map_err(Error::Terms)?;
    Ok(Opposite::Own(terms, Arc::new(identity.map_err(Error::Key)?)))
}

#[cfg(feature = "openssl")]
fn openssl(version: u16, suite: u16, key: Key) -> Result<Opposite, Error> {
    let key = match key {
        Key::EcdsaP256 => OpensslKey::P256,
        Key::Rsa512 => OpensslKey::Rsa(512),
        Key::Rsa1024 => OpensslKey::Rsa(1024),
        Key::Rsa2048 => OpensslKey::Rsa(2048),
    };
    OpensslServerConfig::new(version, suite, key).map(Opposite::Openssl).map_err(Error::Terms)
}

#[cfg(not(feature = "openssl"))]
fn openssl(_: u16, _: u16, _: Key) -> Result<Opposite, Error> {
    Err(Error::Terms(TlsConfigError::Unable("this build has no OpenSSL (the feature openssl)")))
}

/// OpenSSL takes an ECDSA key only on a curve that was offered (RFC 8422, section 5.1).
fn offer(engine: Engine, version: u16, suite: u16, resume: Resume) -> ClientTlsSpec {
    ClientTlsSpec {
        versions: vec![version],
        suites: vec![suite],
        groups: if engine == Engine::Openssl { vec![GROUP, P256] } else { vec![GROUP] },
        resume,
        max_tickets: TICKETS,
        trust: Trust::Any,
        ..ClientTlsSpec::default()
    }
}

/// Tickets under keys of this process alone.
fn sessions() -> Sessions {
    let lifetime = Duration::from_secs(2 * 3600);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let keys = FleetKeys::alone(EpochLength::DEFAULT, lifetime, UnixSeconds(now));
    let ticketer =
        Ticketer::new(Arc::new(keys.expect("the lifetime is in range, and the system has random bytes")));
    Sessions { cache: None, ticketer: Some(Arc::new(ticketer)), lifetime }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_does_the_other_thing_fails_the_figure() {
        for suite in [0x1301, 0xc02b] {
            let version = if suite == 0x1301 { TLS13 } else { 0x0303 };
            let pair = InProcessPair::new(Library::Own, version, suite, Key::EcdsaP256).unwrap();
            let mut sessions = vec![ClientSessions::default()];
            let first = pair.batch(&mut sessions, true, true, b"there and back");
            assert_eq!(first, Err(Trouble::Resumption { asked: true }), "there is nothing to resume yet");
            let mut sessions = vec![ClientSessions::default()];
            pair.batch(&mut sessions, true, false, b"there and back").unwrap();
            let second = pair.batch(&mut sessions, true, false, b"there and back");
            assert_eq!(second, Err(Trouble::Resumption { asked: false }));
        }
    }
}
