//! The valid configuration: plain values without spans.
//!
//! Everything here has already been checked, so the program needs to check nothing but
//! the system: whether files exist, addresses can be bound, names resolve.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::address::{BackendAddress, ListenAddress};
use crate::fleet::{FleetInterface, Network, PeerName};
use crate::named::named;
use crate::prefix::PrefixLength;
use crate::problem::Problems;
use crate::proxy_protocol::{AcceptProxy, SendProxy};
use crate::read::Located;
use crate::revocation::Revocation;
use crate::route::{RouteAction, RouteRule};
use crate::source::SourceSpan;
use crate::tls::{Group, Suite, TlsVersion};
use crate::written::Written;

/// A valid configuration, and warnings about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// Warnings only.
    pub warnings: Problems,
    /// What the file says, to compare with another one; empty where flags alone were given.
    pub written: Written,
}

/// The whole configuration of one `courser` process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Settings of the process as a whole.
    pub process: Process,
    /// Session resumption, shared by all listeners.
    pub sessions: Sessions,
    /// Sharing of sessions with other hosts.
    pub fleet: Fleet,
    /// What operators and monitoring see over HTTP.
    pub admin: Admin,
    /// The CA that certificates are ordered from.
    pub acme: Acme,
    /// At least one.
    ///
    /// Shared, as a generation has them too: one may name a hundred thousand certificates.
    pub listeners: Vec<Arc<ListenerConfig>>,
    /// Pools of servers, in the order of their names.
    pub pools: Vec<PoolConfig>,
}

impl Config {
    /// All settings for TLS with backends; what hosts have from their listener is one.
    pub fn backend_tls(&self) -> Vec<&Located<BackendTls>> {
        let of_pools = self.pools.iter().filter_map(|pool| pool.tls.as_ref());
        let mut all: Vec<&Located<BackendTls>> = Vec::new();
        for tls in of_pools.chain(self.hosts().filter_map(|host| host.backend_tls.as_ref())) {
            if all.iter().all(|known| known.origin != tls.origin) {
                all.push(tls);
            }
        }
        all
    }

    /// The hosts of all listeners, each listener's default first.
    pub fn hosts(&self) -> impl Iterator<Item = &HostConfig> {
        self.listeners.iter().flat_map(|listener| std::iter::once(&listener.default).chain(&listener.hosts))
    }
}

/// Settings of the process as a whole.
///
/// Its `Default` is blank, for the tables of settings to fill in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Worker threads, 1 to 1024. `None`: the CPUs of the affinity mask, capped by the cgroup quota.
    pub workers: Option<usize>,
    /// Whether each worker is bound to one CPU.
    pub pin: bool,
    /// Format of the connection log.
    pub log: Log,
    /// File of the connection log. `None`: standard output.
    pub log_file: Option<Located<PathBuf>>,
    /// File of the event lines. `None`: standard error.
    pub events_file: Option<Located<PathBuf>>,
    /// Whether a certificate that has expired or is not yet valid stops the program.
    pub strict: bool,
    /// Connections open at once; more wait in the kernel's queue. `None`: derive from the descriptor limit.
    pub max_connections: Option<usize>,
    /// Whether some clients are let in later, or not, where more come than can be served.
    pub overload: bool,
    /// Longest wait for a handshake that is no sign of overload.
    pub target_wait: Duration,
    /// How long clients are taken to wait before they leave.
    pub patience: Duration,
    /// Sources that are let in in overload as well.
    pub overload_exempt: Vec<Network>,
    /// Lengths of prefixes whose networks have a budget each in overload.
    pub overload_prefixes: Vec<PrefixLength>,
    /// Time for open connections to finish after the first signal to stop.
    pub drain_timeout: Duration,
    /// The same for a process that another one has replaced. `None`: as `drain_timeout`.
    pub hard_stop_after: Option<Duration>,
    /// Processes that were replaced and may still drain.
    pub max_old_processes: usize,
    /// Whether files that have changed are reloaded without being asked for.
    pub reload_on_change: bool,
    /// Path of the control socket, a unix socket. `None`: the default one, which may fail.
    pub control: Option<Located<PathBuf>>,
    /// Folder for the ticket keys of a host in no fleet.
    pub state_folder: Option<Located<PathBuf>>,
    /// The user to switch to when the sockets are open: a name or a number.
    pub user: Option<Located<String>>,
    /// The group to switch to, where it is not the user's own.
    pub group: Option<Located<String>>,
    /// Whether the kernel may write the process's memory to a file, and a debugger may read it.
    pub core_dumps: bool,
    /// Whether each worker thread denies itself files and most system calls.
    pub confine_workers: bool,
}

/// Session resumption, shared by all listeners.
///
/// Its `Default` is blank, for the tables of settings to fill in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sessions {
    /// Size of the session cache in bytes.
    pub cache_size: u64,
    /// How long a session may be resumed, at most seven days (RFC 8446, section 4.6.1).
    pub lifetime: Duration,
    /// Whether session tickets are issued and accepted (RFC 5077; RFC 8446, section 4.6.1).
    pub tickets: bool,
    /// Whether TLS 1.2 session IDs are given and accepted (RFC 5246, section 7.4.1.2).
    pub session_ids: bool,
    /// Tickets sent after a full TLS 1.3 handshake, 0 to 16.
    pub tickets_per_handshake: u32,
    /// Path of the file that stores the cache, sealed, between two runs. Only with a fleet key or state, or a state folder.
    pub file: Option<Located<PathBuf>>,
    /// URL of an external store, as written. Only with a fleet key or state.
    pub store: Option<Located<String>>,
    /// A file with the store's password. Only with a store.
    pub store_password: Option<Located<PathBuf>>,
    /// A file with the certificates that must have issued the store's. Only with a store.
    pub store_ca: Option<Located<PathBuf>>,
    /// Client certificate for the store. Only with a store.
    pub store_cert: Option<CertificateFiles>,
    /// Maximum time that a handshake waits for the store.
    pub store_timeout: Duration,
}

/// Sharing of sessions with other hosts.
///
/// Its `Default` is blank, for the tables of settings to fill in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Key files, at most two: the first seals.
    pub keys: Vec<Located<PathBuf>>,
    /// Folder of the forward-secret state.
    pub state: Option<Located<PathBuf>>,
    /// This host's name in the fleet. `None`: the machine's.
    pub name: Option<String>,
    /// Address for messages. Only with a key or state.
    pub listen: Option<Located<SocketAddr>>,
    /// The peers' addresses for unicast. Empty where `listen` is a multicast group.
    pub peers: Vec<SocketAddr>,
    /// Names whose addresses are peers too, whichever they are at the time.
    pub peer_names: Vec<PeerName>,
    /// Interface for multicast. Only where `listen` is a multicast group.
    pub interface: Option<Located<FleetInterface>>,
    /// Networks that messages are accepted from. Empty: any by multicast, `peers` by unicast.
    pub allow: Vec<Network>,
    /// Whether a session ID that is not in the cache is requested from other hosts.
    pub pull: bool,
    /// Maximum time that a handshake waits for their answer.
    pub pull_timeout: Duration,
}

impl Fleet {
    /// Whether there is anyone to send messages to by unicast.
    pub fn has_peers(&self) -> bool {
        !self.peers.is_empty() || !self.peer_names.is_empty()
    }

    /// Whether there is a secret to share sessions with.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty() || self.state.is_some()
    }
}

/// What operators and monitoring see over HTTP.
///
/// Its `Default` is blank, for the tables of settings to fill in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admin {
    /// [`ListenAddress::Any`], [`ListenAddress::Ip`] or [`ListenAddress::Unix`]. Empty: there is nothing to see.
    pub listen: Vec<Located<ListenAddress>>,
    /// Networks whose addresses may connect. Empty: loopback addresses.
    pub allow: Vec<Network>,
    /// A file with the token that requests need. Always there where other machines can reach an address.
    pub token: Option<Located<PathBuf>>,
    /// What requests may have in `Host` beside the usual: names in lower case, IP addresses without brackets.
    pub server_names: Vec<String>,
}

/// The CA that certificates are ordered from, for hosts with `cert = { acme = true }`.
///
/// Its `Default` is blank, for the tables of settings to fill in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acme {
    /// URL of its directory, https.
    pub directory: String,
    /// Authorities that have issued the directory's certificate. `None`: those of the system.
    pub directory_ca: Option<Located<PathBuf>>,
    /// Whom it may write to, as `mailto:` URLs.
    pub contact: Vec<String>,
    /// A file with what binds the account to one that there is.
    pub eab: Option<Located<PathBuf>>,
    /// Profile of certificates. `None`: the CA's default one.
    pub profile: Option<String>,
    /// Who orders.
    pub order: AcmeOrder,
}

/// A listener: its addresses and its virtual hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Unique among the listeners.
    pub name: String,
    /// What sessions are bound to: the configured name or, where there is none, the position among the listeners. The
    /// address, which then serves as `name`, differs between the hosts of a fleet.
    pub session_scope: String,
    /// At least one; no address occurs twice in a configuration.
    pub listen: Vec<ListenAddress>,
    /// Length of the kernel's queue of accepted connections, per listening socket.
    pub backlog: u32,
    /// The response to a client that sends an unknown server name, or none.
    pub unknown_name: UnknownName,
    /// Total for the ClientHello and the handshake, from the accepted connection on.
    pub handshake_timeout: Duration,
    /// Who has to send a PROXY header.
    pub accept_proxy: Option<AcceptProxy>,
    /// Rules that come before the server name, in order.
    pub routes: Vec<RouteRule>,
    /// Serves clients whose name belongs to no host. Its `name` is `default` and its `names` are empty. With
    /// [`UnknownName::Refuse`], or where rules leave it no client, its `backends` and `certificates` may be empty.
    pub default: HostConfig,
    /// Virtual hosts in the order of the file; each has inherited what it does not set from `default`.
    pub hosts: Vec<HostConfig>,
}

impl ListenerConfig {
    /// Whether any client's TLS ends here: not where rules relay or refuse all of them.
    pub fn terminates(&self) -> bool {
        let terminates = |rule: &RouteRule| matches!(rule.action, RouteAction::Terminate(_));
        let is_named = self.unknown_name == UnknownName::Default
            || !self.hosts.is_empty()
            || !self.default.certificates.is_empty()
            || self.routes.is_empty();
        let by_name = is_named && !self.routes.iter().any(RouteRule::is_for_all);
        by_name || self.routes.iter().any(terminates)
    }
}

/// Settings for a set of server names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Unique in its listener; `default` is the listener's own.
    pub name: String,
    /// Server names in lower case, exact (`a.example`) or with a wildcard for one label (`*.a.example`).
    /// Empty: the DNS names of the certificates.
    pub names: Vec<String>,
    /// In order of preference. Empty in every host or in none that can be reached: then the program makes a
    /// self-signed one.
    pub certificates: Vec<CertificateFiles>,
    /// OCSP responses about `certificates`, in any order. Empty without certificates.
    pub staples: Vec<Located<PathBuf>>,
    /// Where it was written that courser orders certificates for `names`, behind `certificates`. Only with names and with a
    /// state folder.
    pub acme: Option<SourceSpan>,
    /// Whether clients are asked for a certificate.
    pub client_auth: ClientAuth,
    /// The authorities whose certificates clients may show: at least one, or none where no certificate is requested.
    pub client_ca: Vec<Located<PathBuf>>,
    /// What is revoked of clients' certificates. Only where one is requested.
    pub client_crl: Option<Located<Revocation>>,
    /// Where plaintext goes.
    pub backends: Backends,
    /// TLS with [`Backends::Own`].
    pub backend_tls: Option<Located<BackendTls>>,
    /// Which PROXY protocol header the backend gets.
    pub send_proxy: SendProxy,
    /// Never empty; ascending.
    pub versions: Vec<TlsVersion>,
    /// In order of preference; at least one for each of `versions` and none for others.
    pub suites: Vec<Suite>,
    /// Key exchange groups in order of preference; at least one for each of `versions`.
    pub groups: Vec<Group>,
    /// ALPN protocols in order of preference (RFC 7301), each 1 to 255 bytes. Empty: ALPN is not answered.
    pub alpn: Vec<String>,
    /// Maximum time to connect to a backend.
    pub connect_timeout: Duration,
    /// Maximum time without a byte in either direction.
    pub idle_timeout: Duration,
    /// Maximum time for the backend's answer after the client has closed, from the last byte that was delivered.
    pub client_fin_timeout: Duration,
    /// Maximum time for the client to close after the backend has, from the last byte that was delivered.
    pub backend_fin_timeout: Duration,
    /// Maximum age of a connection.
    pub max_connection_age: Option<Duration>,
    /// Idle time after which the kernel probes the peer.
    pub tcp_keepalive: Duration,
    /// Maximum time that bytes stay unacknowledged.
    pub tcp_user_timeout: Duration,
    /// Action towards the backend when the client's FIN comes without close_notify.
    pub on_truncation: OnTruncation,
}

/// Servers that receive plaintext.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backends {
    /// A pool of the host's own, with the defaults of pools.
    Own(Vec<BackendAddress>),
    /// The pool of this name.
    Pool(String),
}

/// A pool of servers, which several hosts may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// Unique.
    pub name: String,
    /// At least one.
    pub servers: Vec<ServerConfig>,
    /// Server of the next connection.
    pub balance: Balance,
    /// What keeps a client at its server.
    pub affinity: Option<Affinity>,
    /// Maximum time that a connection waits for a server with room.
    pub queue_timeout: Duration,
    /// How its servers are checked. Each is down if one of them says so.
    pub checks: Vec<CheckConfig>,
    /// TLS with its servers.
    pub tls: Option<Located<BackendTls>>,
}

/// What keeps a client at its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// The first bits of its address.
    Source {
        /// Of an IPv4 address, 1 to 32.
        v4: u8,
        /// Of an IPv6 address, 1 to 128.
        v6: u8,
    },
    /// The server name that it asks for.
    ServerName,
    /// The public key of its certificate.
    ClientCertificate,
    /// The TLS session that it resumes, by its session ID.
    Session,
}

/// How the servers of a pool are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckConfig {
    /// What a check does.
    pub kind: CheckKind,
    /// From the beginning of one to the beginning of the next.
    pub interval: Duration,
    /// For the whole of one.
    pub timeout: Duration,
    /// Successes in a row that make a server up, 1 to 100.
    pub up: u32,
    /// Failures in a row that make it down, 1 to 100.
    pub down: u32,
    /// Another port than the server's; always there for an agent.
    pub port: Option<u16>,
    /// `None`: as connections have it.
    pub send_proxy: Option<SendProxy>,
}

/// What a check does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckKind {
    /// Connects.
    Tcp,
    /// Makes a handshake, with the pool's `tls`.
    Tls,
    /// Sends a request, over TLS where the pool has it, and looks at the status of the answer.
    Http {
        /// Begins with a slash; visible ASCII.
        path: String,
        /// `Host`; `None`: as the server is written.
        host: Option<String>,
        /// Good ones, within 100 to 999; at least one range.
        status: Vec<RangeInclusive<u16>>,
    },
    /// Reads what an agent says.
    Agent,
}

/// A server of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where it is.
    pub address: BackendAddress,
    /// Share among the others', 1 to 1000.
    pub weight: NonZeroU32,
    /// Connections at most.
    pub max_connections: Option<NonZeroU32>,
    /// Whether it gets connections only while no other one is good.
    pub backup: bool,
}

/// TLS with the servers of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendTls {
    /// How a server proves who it is.
    pub verify: Verify,
    /// The name that it is asked for, and that its certificate has to be for.
    pub server_name: BackendName,
    /// The certificate for servers that ask for one.
    pub cert: Option<CertificateFiles>,
    /// What is revoked. Only with [`Verify::System`] or [`Verify::Files`].
    pub crl: Option<Revocation>,
}

impl BackendTls {
    /// All files that it names.
    pub fn files(&self) -> Vec<&Path> {
        let authorities: &[_] = match &self.verify {
            Verify::Files(files) => files,
            _ => &[],
        };
        let lists = self.crl.iter().flat_map(|lists| &lists.files);
        let certificate = self.cert.iter().flat_map(|files| [&*files.chain, &*files.key]);
        authorities.iter().chain(lists).map(|file| file.value.as_path()).chain(certificate).collect()
    }
}

/// How a server proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verify {
    /// By a certificate that the system trusts.
    System,
    /// By a certificate of one of the authorities in these files.
    Files(Vec<Located<PathBuf>>),
    /// By its key: SHA-256 of SubjectPublicKeyInfo, one of these.
    Pins(Vec<[u8; 32]>),
    /// Not at all.
    Off,
}

/// The name that a server is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendName {
    /// That of its address.
    Own,
    /// The one that the client asked for; that of its address where it asked for none.
    FromClient,
    /// This DNS name, in lower case, or IP address.
    Fixed(String),
}

/// A certificate chain and its private key, as files in PEM. Their contents have not been looked at.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// The chain, leaf first. Shared, as what is read and what is watched have it too: there may be a hundred thousand.
    pub chain: Arc<Path>,
    /// The private key; the same file as `chain` where both stand in one.
    pub key: Arc<Path>,
    /// Where it was written, for [`Problem::at`](crate::Problem::at).
    pub origin: SourceSpan,
    /// What courser itself orders it for. Empty: somebody else's files, which have to be there.
    pub ordered_for: Vec<String>,
}

/// The same files are the same certificate, wherever they were written.
impl PartialEq for CertificateFiles {
    fn eq(&self, other: &Self) -> bool {
        (&self.chain, &self.key) == (&other.chain, &other.key)
    }
}

impl Eq for CertificateFiles {}

named! {
    /// Format of the connection log.
    #[derive(Default)]
    Log {
        /// One line per connection, for people.
        #[default]
        Text = "text",
        /// One JSON object per line.
        Json = "json",
        /// No connection log.
        Off = "off",
    }
}

named! {
    /// The response to a client that sends an unknown server name, or none.
    #[derive(Default)]
    UnknownName {
        /// The listener's own settings.
        #[default]
        Default = "default",
        /// The fatal alert `unrecognized_name` (RFC 6066, section 3).
        Refuse = "refuse",
    }
}

named! {
    /// Who orders the certificates of hosts with `cert = { acme = true }`.
    #[derive(Default)]
    AcmeOrder {
        /// This host.
        #[default]
        Here = "here",
        /// Another host, whose files are copied here.
        Elsewhere = "elsewhere",
    }
}

named! {
    /// Server of a pool's next connection.
    #[derive(Default)]
    Balance {
        /// The fewest connections by its weight.
        #[default]
        Least = "least" | "leastconn" | "least_conn",
        /// Each in turn.
        RoundRobin = "round-robin" | "roundrobin" | "rr",
        /// Any.
        Random = "random",
        /// The least product of connect time and connections.
        Latency = "latency",
    }
}

named! {
    /// What the backend gets when the client's FIN came without close_notify (RFC 8446, section 6.1).
    #[derive(Default)]
    OnTruncation {
        /// A FIN, as after close_notify.
        #[default]
        Fin = "fin",
        /// A reset, so that a cut-off request cannot pass for a whole one.
        Reset = "reset",
    }
}

named! {
    /// Whether clients are asked for a certificate (RFC 8446, section 4.3.2; RFC 5246, section 7.4.4).
    ClientAuth {
        /// They are not.
        None = "none",
        /// They are, and may have none; one that they send must be valid.
        Optional = "optional",
        /// They are, and the handshake fails without a valid one.
        Required = "required",
    }
}
