//! A server in memory, for tests and the benchmark of the client.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser_session::{Cache, EpochLength, FleetKeys, PolicyHash, Ticketer, UnixSeconds};
use courser_tls::{
    ClientAuth, Failure, HandshakePlan, Identity, ServerConnection, ServerTlsConfig, ServerTlsSpec,
    SessionOffer, Sessions, State, SuiteOrder, Version,
};
use courser_tls_client::ClientConnection;

/// All suites that the terminator has.
pub(crate) const SUITES: [u16; 9] = [0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xcca9, 0xc02f, 0xc030, 0xcca8];

/// Tickets sent after a TLS 1.3 handshake.
pub(crate) const TICKETS: usize = 2;

/// A server that speaks one version and one group.
pub(crate) struct Server {
    pub(crate) config: ServerTlsConfig,
    pub(crate) identity: Arc<Identity>,
    group: u16,
    offer: SessionOffer,
}

impl Server {
    /// With a self-signed certificate.
    pub(crate) fn new(version: u16, group: u16, offer: SessionOffer) -> Self {
        let identity = courser_tls::self_signed(&["server.example".to_owned()]).expect("a key can be made");
        Self::with(version, group, offer, identity, &sessions())
    }

    pub(crate) fn with(
        version: u16,
        group: u16,
        offer: SessionOffer,
        identity: Identity,
        sessions: &Sessions,
    ) -> Self {
        let version = if version == 0x0304 { Version::Tls13 } else { Version::Tls12 };
        let offered = ServerTlsSpec {
            versions: vec![version],
            suites: SUITES.to_vec(),
            groups: vec![group],
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            tickets: TICKETS,
            client_auth: ClientAuth::none(),
        };
        let config = ServerTlsConfig::new(offered, sessions);
        Self { config: config.expect("known code points"), identity: Arc::new(identity), group, offer }
    }

    /// A connection that has received nothing yet.
    pub(crate) fn connection(&self) -> ServerConnection {
        let policy = PolicyHash::builder("test", "test").finish();
        let plan = HandshakePlan::new(Arc::clone(&self.identity), policy, self.offer);
        ServerConnection::new(&self.config, self.group, SuiteOrder::Configured, plan).expect("the config fit")
    }
}

/// Session IDs and tickets.
pub(crate) fn sessions() -> Sessions {
    let lifetime = Duration::from_secs(7200);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let keys = FleetKeys::alone(EpochLength::DEFAULT, lifetime, UnixSeconds(now)).expect("in range");
    Sessions {
        cache: Some(Arc::new(Cache::new(1 << 20, 1))),
        ticketer: Some(Arc::new(Ticketer::new(Arc::new(keys)))),
        lifetime,
    }
}

/// Two ends and what is under way between them.
pub(crate) struct Pair {
    pub(crate) client: ClientConnection,
    pub(crate) server: ServerConnection,
    /// What each end has received and not consumed.
    pub(crate) to_client: Vec<u8>,
    pub(crate) to_server: Vec<u8>,
    /// What each end has read.
    pub(crate) client_read: Vec<u8>,
    pub(crate) server_read: Vec<u8>,
    pub(crate) state: State,
}

impl Pair {
    /// Two ends that have not spoken yet.
    pub(crate) fn new(client: ClientConnection, server: ServerConnection) -> Self {
        Self {
            client,
            server,
            to_client: Vec::new(),
            to_server: Vec::new(),
            client_read: Vec::new(),
            server_read: Vec::new(),
            state: State::Handshaking,
        }
    }

    /// The client's turn.
    pub(crate) fn client_turn(&mut self) -> Result<(), Failure> {
        let Self { client, to_client, to_server, client_read, state, .. } = self;
        let progress = client.process(to_client, client_read, to_server)?;
        to_client.drain(..progress.consumed);
        *state = progress.state;
        Ok(())
    }

    /// The server's turn.
    pub(crate) fn server_turn(&mut self) -> Result<(), Failure> {
        let Self { server, to_client, to_server, server_read, .. } = self;
        let progress = server.process(to_server, server_read, to_client)?;
        to_server.drain(..progress.consumed);
        Ok(())
    }
}
