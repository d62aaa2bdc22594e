//! What a server reports of sessions, for replication: the one that it created, whose it resumed, and why it resumed
//! none.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use courser_session::{
    Cache, PolicyHash, Provenance, ResumptionFailure, SessionId, SharedSession, UnixSeconds,
};
use courser_tls::{HandshakeInfo, HandshakePlan, ServerConnection, SessionOffer, Sessions, SuiteOrder};
use courser_tls_client::{ClientConnection, ClientSessions, ClientTlsConfig, Engine, Resume};

use crate::client::{config, meet, spec};
use crate::server::{Pair, Server, sessions};

const TLS12: u16 = 0x0303;
const TLS13: u16 = 0x0304;
const P256: u16 = 0x0017;

/// A server and its cache.
struct Host {
    server: Server,
    cache: Arc<Cache>,
}

impl Host {
    fn new(version: u16, offer: SessionOffer) -> Self {
        let cache = Arc::new(Cache::new(1 << 20, 1));
        let sessions = Sessions { cache: Some(Arc::clone(&cache)), ..sessions() };
        let identity = courser_tls::self_signed(&["server.example".to_owned()]).expect("a key can be made");
        Self { server: Server::with(version, P256, offer, identity, &sessions), cache }
    }

    fn by_id() -> Self {
        Self::new(TLS12, SessionOffer::SessionId)
    }

    /// What the fleet does with a session.
    fn takes(&self, session: &SharedSession) {
        let SharedSession { id, policy, lifespan, state } = session.clone();
        assert!(self.cache.put(&id, policy, state, lifespan, Provenance::Remote, now()).is_stored());
    }
}

fn now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs())
}

fn cached(info: &HandshakeInfo) -> Option<(SessionId, Provenance, UnixSeconds)> {
    info.session.map(|session| (session.id, session.provenance, session.expires))
}

fn by_id() -> ClientTlsConfig {
    config(Engine::Real, &spec(TLS12, P256, Resume::SessionId))
}

#[test]
fn a_session_that_was_made_resumes_on_another_host_which_knows_whence_it_is() {
    let (host, other, config) = (Host::by_id(), Host::by_id(), by_id());
    let (_, mut info, sessions) = meet(&host.server, &config, ClientSessions::default());
    let made = info.new_session.take().expect("it is cached");
    assert_eq!(cached(&info), Some((made.id, Provenance::Local, made.lifespan.expires)));
    other.takes(&made);
    let (_, there, sessions) = meet(&other.server, &config, sessions);
    assert!(there.resumed);
    assert_eq!(cached(&there), Some((made.id, Provenance::Remote, made.lifespan.expires)));
    assert!(there.new_session.is_none(), "only a full handshake makes one");
    let (_, here, _) = meet(&host.server, &config, sessions);
    assert!(here.resumed);
    assert_eq!(cached(&here), Some((made.id, Provenance::Local, made.lifespan.expires)));
}

#[test]
fn where_tickets_are_taken_there_is_nothing_to_share() {
    for version in [TLS12, TLS13] {
        let host = Host::new(version, SessionOffer::Tickets);
        let config = config(Engine::Real, &spec(version, P256, Resume::Ticket));
        let (_, full, sessions) = meet(&host.server, &config, ClientSessions::default());
        let (_, resumed, _) = meet(&host.server, &config, sessions);
        assert!(resumed.resumed);
        for info in [full, resumed] {
            assert!(info.new_session.is_none() && info.session.is_none());
        }
    }
}

#[test]
fn what_the_others_said_explains_that_there_is_none_here_and_nothing_else() {
    let (host, config) = (Host::by_id(), by_id());
    for failure in
        [ResumptionFailure::NotFoundRemotely, ResumptionFailure::PullTimeout, ResumptionFailure::StoreTimeout]
    {
        let sessions = meet(&host.server, &config, ClientSessions::default()).2;
        assert_eq!(
            plan_meets(&Host::by_id(), &config, sessions, failure, "test").resumption_failure,
            Some(failure)
        );
        let sessions = meet(&host.server, &config, ClientSessions::default()).2;
        assert_eq!(
            plan_meets(&host, &config, sessions, failure, "another").resumption_failure,
            Some(ResumptionFailure::OtherPolicy)
        );
    }
    let (_, info, _) = meet(&host.server, &config, ClientSessions::default());
    assert_eq!(info.resumption_failure, None, "nothing was offered");
}

/// Connects a client whose session a remote lookup has not found.
fn plan_meets(
    host: &Host,
    config: &ClientTlsConfig,
    sessions: ClientSessions,
    failure: ResumptionFailure,
    name: &str,
) -> HandshakeInfo {
    let server_name = crate::client::name("server.example");
    let client = ClientConnection::new(config, &server_name, sessions).expect("it fits");
    let policy = PolicyHash::builder("test", name).finish();
    let mut plan = HandshakePlan::new(Arc::clone(&host.server.identity), policy, SessionOffer::SessionId);
    plan.record_remote_failure(failure);
    let server = ServerConnection::new(&host.server.config, P256, SuiteOrder::Configured, plan);
    let mut pair = Pair::new(client, server.expect("the config fit"));
    crate::client::settle(&mut pair).expect("two good ends");
    pair.server.finish_handshake().expect("the handshake is done")
}
