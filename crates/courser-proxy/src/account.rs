//! The account of a connection: opened at the first step, closed by being dropped, so that every connection is counted and
//! has its line, also one whose task ended in a fault.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use courser_telemetry::connection::{self, BackendHandshake, BackendTlsRecord, Peer, TlsMode};
use courser_telemetry::metrics::{ByteDirection, ListenerBlock, Metric, State, Step};
use courser_telemetry::{Close, CloseReason, ConnectionRecord, Format, HandshakeResult, Resumption};
use courser_tls::{BackendHandshakeInfo, HandshakeInfo, Identity, names};
use courser_wire::hello::ClientHello;

use crate::pool::Backend;
use crate::session_servers::RelayedSession;
use crate::settings::{Forwarding, Listener, VirtualHost};
use crate::worker_state::{Permit, WorkerState};

/// What is known of a connection while it lives.
pub(crate) struct Account {
    worker: Rc<WorkerState>,
    /// Given back after the line is written.
    _permit: Permit,
    listener: Arc<Listener>,
    opened: Instant,
    /// Number of the connection on its worker.
    pub(crate) number: u64,
    /// The client's address: the one that a PROXY header names, else the socket's peer; `None` for a unix socket.
    pub(crate) client: Option<SocketAddr>,
    /// What a PROXY header said.
    pub(crate) proxied: Option<Box<ProxyInfo>>,
    pub(crate) sni: Option<Box<str>>,
    /// What rules and the log of a relay need of the ClientHello; `None` where the listener has no rules.
    pub(crate) offered: Option<Box<Offered>>,
    pub(crate) ech: bool,
    /// Where it goes as it came.
    pub(crate) relay: Option<Arc<Forwarding>>,
    pub(crate) host: Option<Arc<VirtualHost>>,
    pub(crate) identity: Option<Arc<Identity>>,
    pub(crate) handshake: Option<Box<HandshakeInfo>>,
    pub(crate) session: Option<Resumption>,
    pub(crate) not_resumed: Option<&'static str>,
    /// The last server that a connection was tried to.
    pub(crate) backend: Option<Arc<Backend>>,
    pub(crate) backend_tls: Option<Box<BackendHandshakeInfo>>,
    pub(crate) retries: u32,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// When the steps were completed.
    hello: Moment,
    secured: Moment,
    connected: Moment,
    first_byte: Moment,
    close: Option<Close>,
}

/// Microseconds since the connection was accepted; none before it comes. An hour and eleven minutes at most.
#[derive(Clone, Copy)]
struct Moment(u32);

impl Moment {
    const NONE: Self = Self(u32::MAX);

    fn since(opened: Instant) -> Self {
        let micros = opened.elapsed().as_micros().min(u128::from(u32::MAX - 1));
        Self(u32::try_from(micros).unwrap_or(u32::MAX - 1))
    }

    fn is_reached(self) -> bool {
        self.0 != u32::MAX
    }

    fn or(self, other: Self) -> Self {
        if self.is_reached() { self } else { other }
    }

    /// The time from another moment to this one.
    fn after(self, from: Self) -> Option<Duration> {
        let both = self.is_reached() && from.is_reached();
        both.then(|| Duration::from_micros(self.0.saturating_sub(from.0).into()))
    }
}

/// What a PROXY header said, and who sent it.
pub(crate) struct ProxyInfo {
    /// The socket's peer; `None` for a unix socket.
    via: Option<SocketAddr>,
    /// `None`: the connection is the sender's own, or it does not know.
    pub(crate) named: Option<Proxied>,
    /// Fields of version 2, to be passed on.
    pub(crate) fields: Vec<u8>,
}

/// The client, and where it connected, as a PROXY header names them.
pub(crate) enum Proxied {
    Ip { source: SocketAddr, destination: SocketAddr },
    Unix { source: Vec<u8>, destination: Vec<u8> },
}

/// The parts of the ClientHello that only rules decide by, and the log of a relay.
pub(crate) struct Offered {
    pub(crate) alpn: Vec<Vec<u8>>,
    /// The highest first.
    pub(crate) versions: Vec<u16>,
    pub(crate) session: RelayedSession,
}

/// Application protocols that are looked at and logged. A ClientHello has room for twenty thousand, each of which would be held in an
/// allocation of its own for as long as the connection lives; clients offer a few.
const MOST_PROTOCOLS: usize = 32;

impl Offered {
    pub(crate) fn of(hello: &ClientHello<'_>) -> Self {
        let mut versions: Vec<u16> = match hello.supported_versions {
            Some(versions) => versions.without_grease().collect(),
            None => vec![hello.legacy_version],
        };
        versions.sort_unstable_by(|a, b| b.cmp(a));
        let ticket = hello.session_ticket.is_some_and(|ticket| !ticket.is_empty());
        let session = RelayedSession::new(hello.session_id, ticket);
        Self { alpn: hello.alpn.iter().take(MOST_PROTOCOLS).map(<[u8]>::to_vec).collect(), versions, session }
    }
}

impl Account {
    /// Opens the account of a connection that was just accepted.
    pub(crate) fn open(permit: Permit, listener: Arc<Listener>, client: Option<SocketAddr>) -> Box<Self> {
        let worker = permit.worker();
        let number = worker.connection_opened();
        listener.counters.of(worker.index).enter(State::Hello, None);
        Box::new(Self {
            worker,
            _permit: permit,
            listener,
            opened: Instant::now(),
            number,
            client,
            proxied: None,
            sni: None,
            offered: None,
            ech: false,
            relay: None,
            host: None,
            identity: None,
            handshake: None,
            session: None,
            not_resumed: None,
            backend: None,
            backend_tls: None,
            retries: 0,
            bytes_in: 0,
            bytes_out: 0,
            hello: Moment::NONE,
            secured: Moment::NONE,
            connected: Moment::NONE,
            first_byte: Moment::NONE,
            close: None,
        })
    }

    /// Takes the client's address from a PROXY header.
    pub(crate) fn set_proxied(&mut self, named: Option<Proxied>, fields: Vec<u8>) {
        let via = self.client;
        match &named {
            Some(Proxied::Ip { source, .. }) => {
                self.client = Some(SocketAddr::new(source.ip().to_canonical(), source.port()));
            }
            Some(Proxied::Unix { .. }) => self.client = None,
            None => {}
        }
        self.proxied = Some(Box::new(ProxyInfo { via, named, fields }));
    }

    pub(crate) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    pub(crate) fn hello_received(&mut self) {
        self.counters().enter(State::Handshake, Some(self.state()));
        self.hello = Moment::since(self.opened);
    }

    pub(crate) fn secured(&mut self) {
        self.counters().enter(State::Connect, Some(self.state()));
        self.secured = Moment::since(self.opened);
    }

    /// It goes on as it came, to these servers.
    pub(crate) fn relayed(&mut self, forwarding: Arc<Forwarding>) {
        self.counters().enter(State::Connect, Some(self.state()));
        self.relay = Some(forwarding);
    }

    pub(crate) fn connected(&mut self) {
        self.counters().enter(State::Relay, Some(self.state()));
        self.connected = Moment::since(self.opened);
    }

    /// The backend has sent something; the first time counts.
    pub(crate) fn answered(&mut self) {
        if !self.first_byte.is_reached() {
            self.first_byte = Moment::since(self.opened);
        }
    }

    pub(crate) fn worker_index(&self) -> u16 {
        self.worker.index
    }

    /// Counts microseconds of handshakes.
    pub(crate) fn add_time(&self, series: usize, micros: u64) {
        self.worker.counters.add(Metric::HandshakeCpu, series, micros);
    }

    fn state(&self) -> State {
        if self.connected.is_reached() {
            State::Relay
        } else if self.secured.is_reached() || self.relay.is_some() {
            State::Connect
        } else if self.hello.is_reached() {
            State::Handshake
        } else {
            State::Hello
        }
    }

    /// Those of its listener and worker.
    pub(crate) fn counters(&self) -> &ListenerBlock {
        self.listener.counters.of(self.worker.index)
    }

    /// Records why the connection ended; the first reason counts.
    pub(crate) fn set_close(&mut self, close: impl Into<Close>) {
        self.close.get_or_insert_with(|| close.into());
    }

    /// A name for the connection that no other connection of this process has.
    pub(crate) fn unique_id(&self) -> String {
        format!("{}-{}", self.worker.index, self.number)
    }

    /// How long the steps took that were completed, in the order of [`Step`].
    fn steps(&self) -> [Option<Duration>; Step::ALL.len()] {
        [
            None, // the kernel's: counted when it is accepted
            self.hello.after(Moment(0)),
            self.secured.after(self.hello),
            self.connected.after(self.secured.or(self.hello)),
            self.first_byte.after(self.connected),
        ]
    }

    fn count(&self, close: &Close) {
        let counters = &self.worker.counters;
        self.counters().close(close.reason, self.state());
        self.count_failed_handshake(close);
        if let (true, Some(client)) = (self.was_served(), self.client) {
            self.worker.overload.remember(client);
        }
        if self.retries > 0 {
            counters.add(Metric::BackendRetries, 0, u64::from(self.retries));
        }
        counters.add(Metric::PlaintextBytes, ByteDirection::In as usize, self.bytes_in);
        counters.add(Metric::PlaintextBytes, ByteDirection::Out as usize, self.bytes_out);
        for (step, time) in Step::ALL.iter().zip(self.steps()) {
            if let Some(time) = time {
                counters.observe(*step, time);
            }
        }
    }

    /// A session was resumed, or bytes went both ways.
    fn was_served(&self) -> bool {
        let is_resumed = self.session.is_some_and(|session| session != Resumption::Full);
        is_resumed || (self.bytes_in > 0 && self.bytes_out > 0)
    }

    fn count_failed_handshake(&self, close: &Close) {
        if self.secured.is_reached() || self.relay.is_some() {
            return;
        }
        if let Some(result) = HandshakeResult::of(close) {
            let host = self.host.as_ref().map_or(&self.listener.unknown_host, |host| &host.counters);
            host.failed(self.worker.index, result);
        }
    }

    fn record(&self, close: Close) -> ConnectionRecord {
        let total = self.opened.elapsed();
        let facts = self.handshake.as_deref();
        let [_, hello, handshake, connect, _] = self.steps();
        ConnectionRecord {
            accepted: SystemTime::now().checked_sub(total).unwrap_or_else(SystemTime::now),
            worker: self.worker.index,
            number: self.number,
            listener: self.listener.name.clone(),
            tls_mode: self.tls_mode(),
            host: self.host.as_ref().map(|host| host.name.clone()),
            client: peer(self.client),
            via: self
                .proxied
                .as_ref()
                .filter(|proxied| proxied.named.is_some())
                .map(|proxied| peer(proxied.via)),
            sni: self.sni.as_deref().map(str::to_owned),
            offered: self.offered(),
            alpn: facts
                .and_then(|f| f.alpn.as_deref())
                .map(|alpn| String::from_utf8_lossy(alpn).into_owned()),
            version: facts.map(HandshakeInfo::version_name),
            suite: facts.map(HandshakeInfo::suite_name),
            group: facts.and_then(|f| f.group).and_then(names::group),
            scheme: facts.and_then(|f| f.scheme).and_then(names::scheme),
            key: self.identity.as_ref().map(|identity| identity.key_algorithm.to_string()),
            client_cert: facts
                .and_then(|f| f.client.as_ref())
                .map(|client| client.common_name.clone().unwrap_or_default()),
            session: self.session,
            not_resumed: self.not_resumed,
            backend: self.backend.as_ref().map(|backend| backend.name.clone()),
            backend_tls: self.backend_tls.as_deref().map(backend_tls),
            retries: self.retries,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            hello,
            handshake,
            connect,
            total,
            close,
        }
    }

    fn tls_mode(&self) -> Option<TlsMode> {
        let relayed = self.relay.as_ref().map(|_| TlsMode::Passthrough);
        relayed.or(self.host.as_ref().map(|_| TlsMode::Terminate))
    }

    fn offered(&self) -> connection::Offered {
        let alpn = self.offered.iter().flat_map(|hello| &hello.alpn);
        let alpn: Vec<_> = alpn.map(|protocol| String::from_utf8_lossy(protocol)).collect();
        let versions = self.offered.iter().flat_map(|hello| &hello.versions);
        let versions: Vec<_> =
            versions.map(|version| names::version(*version).unwrap_or("unknown")).collect();
        let joined = |list: String| (!list.is_empty()).then_some(list);
        connection::Offered {
            alpn: joined(alpn.join(",")),
            versions: joined(versions.join(",")),
            ech: self.ech,
        }
    }

    /// For event lines: what the connection is served as.
    pub(crate) fn served_as(&self) -> String {
        if let Some(forwarding) = &self.relay {
            return format!("relay to pool {}", forwarding.pool.name);
        }
        let host = self.host.as_ref().map_or("", |host| &host.name);
        format!("host {host}")
    }

    /// Why the connection ended. A task that ends without a reason was stopped with its worker, or has panicked.
    fn take_close(&mut self) -> Close {
        let without = || if std::thread::panicking() { CloseReason::Internal } else { CloseReason::Shutdown };
        self.close.take().unwrap_or_else(|| without().into())
    }
}

fn backend_tls(info: &BackendHandshakeInfo) -> BackendTlsRecord {
    let session = if info.resumed { BackendHandshake::Resumed } else { BackendHandshake::Full };
    BackendTlsRecord { version: info.version_name(), suite: info.suite_name(), session }
}

impl Drop for Account {
    fn drop(&mut self) {
        let worker = Rc::clone(&self.worker);
        let close = self.take_close();
        self.count(&close);
        if worker.lines.enabled() {
            let record = self.record(close);
            worker.lines.add(|out, format| record.write(out, format == Format::Json));
        }
        worker.connection_closed();
    }
}

fn peer(address: Option<SocketAddr>) -> Peer {
    address.map_or(Peer::Unix, Peer::Ip)
}

/// How long closing may take at most: until the last bytes have left and the client has closed too.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
