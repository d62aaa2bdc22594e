//! Pools: the servers that connections go to, under the names and addresses that they are configured by.
//!
//! Which server of them gets a connection is decided in courser-balance. Here a pool gets its servers: one for each fixed
//! address, and one for each address that a name has at the moment.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use courser_balance::{AffinityKey, Balance, Request, Server, ServerSettings};
use courser_net::Address;
use courser_tls::{BackendTls, BackendTlsConfig};

use crate::affinity::Affinity;
use crate::orders::Orders;
use crate::resolve::{Answer, Lookable, ResolvedName, Resolver, Subscriber};
use crate::session_servers::SessionServers;

/// A server of a pool.
pub type Backend = Server<Target>;

/// How a server is reached. It stays the same for as long as a pool has the server, however often its name is looked up.
#[derive(Debug)]
pub struct Target {
    /// Where it is.
    pub address: Address,
    /// TLS with it, and the sessions that it can resume.
    pub tls: Option<Box<BackendTls>>,
}

impl Target {
    /// `own` is the name or IP address that the server is configured by.
    fn new(address: Address, tls: Option<&BackendTlsConfig>, own: Option<&str>) -> Self {
        Self { address, tls: tls.map(|tls| Box::new(tls.of_server(own))) }
    }
}

/// A server as it is configured.
#[derive(Debug)]
pub struct ServerSpec {
    /// Where it is.
    pub location: Location,
    /// Its share among the others'.
    pub weight: NonZeroU32,
    /// Connections that it gets at most.
    pub max_connections: Option<NonZeroU32>,
    /// It gets connections only while no other one is good.
    pub backup: bool,
    /// TLS with it.
    pub tls: Option<Arc<BackendTlsConfig>>,
}

/// Where a server is.
#[derive(Debug)]
pub enum Location {
    /// At this address.
    Fixed(Address),
    /// At every address that is found: each is a server of its own.
    LookedUp(Lookable),
}

/// How a pool distributes connections.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// The pool's name.
    pub name: String,
    /// Who gets the next connection.
    pub balance: Balance,
    /// What keeps a client at its server.
    pub affinity: Option<Affinity>,
    /// How long a connection may wait for a place, where servers have a limit.
    pub queue_timeout: Duration,
}

/// The servers that a host's connections go to, with the number of each worker's turn.
#[derive(Debug)]
pub struct Pool {
    /// For messages, and for the operator.
    pub name: String,
    members: Arc<Members>,
    pub(crate) affinity: Option<Affinity>,
    /// With [`Affinity::Session`].
    pub(crate) sessions: Option<SessionServers>,
    pub(crate) queue_timeout: Duration,
    sequences: Box<[Sequence]>,
}

/// The number of a worker's next connection. Only its worker counts it, and nothing else is on its cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Sequence(AtomicU64);

impl Pool {
    /// A pool of these servers, for so many workers.
    pub fn new(
        servers: Vec<ServerSpec>,
        how: Distribution,
        resolver: &Resolver,
        orders: &Arc<Orders>,
        workers: usize,
    ) -> Self {
        let orders = OrdersOfPool { pool: how.name.clone(), orders: Arc::clone(orders) };
        let members = Members::new(servers, how.balance, resolver, orders);
        let random = RandomState::new();
        let sequence = |worker| match worker {
            // So one worker, the case that people look at, goes by the configured order.
            0 => Sequence::default(),
            // Workers that began alike would meet the same server at the same moment for good.
            worker => Sequence(AtomicU64::new(random.hash_one(worker) >> 32)),
        };
        let Distribution { name, affinity, queue_timeout, .. } = how;
        let sessions = (affinity == Some(Affinity::Session)).then(SessionServers::default);
        let sequences = (0..workers).map(sequence).collect();
        Self { name, members, affinity, sessions, queue_timeout, sequences }
    }

    /// The servers, and what is decided about them.
    pub fn servers(&self) -> &courser_balance::Pool<Target> {
        &self.members.pool
    }

    /// Whether a name of the pool has addresses of both families.
    pub(crate) fn has_both_families(&self) -> bool {
        self.members.has_both_families.load(Ordering::Relaxed)
    }

    /// The request of `worker`'s next connection.
    pub(crate) fn request(&self, worker: u16, key: Option<AffinityKey>) -> Request<'static, Target> {
        let number = self.sequences.get(usize::from(worker)).map_or(0, |Sequence(next)| {
            // No `fetch_add`, which would lock the bus: nothing else writes.
            let number = next.load(Ordering::Relaxed);
            next.store(number.wrapping_add(1), Ordering::Relaxed);
            number
        });
        Request { number, seed: u64::from(worker), key, tried: &[] }
    }
}

impl AsRef<courser_balance::Pool<Target>> for Pool {
    fn as_ref(&self) -> &courser_balance::Pool<Target> {
        self.servers()
    }
}

/// Keeps the servers of a pool in step with the addresses of its names.
#[derive(Debug)]
pub(crate) struct Members {
    pool: courser_balance::Pool<Target>,
    orders: OrdersOfPool,
    entries: Mutex<Vec<Entry>>,
    /// Whether a name has addresses of both families.
    has_both_families: AtomicBool,
}

#[derive(Debug)]
struct OrdersOfPool {
    pool: String,
    orders: Arc<Orders>,
}

impl OrdersOfPool {
    /// A new server of the pool, which knows what the operator has said of it.
    fn server(&self, pool: &courser_balance::Pool<Target>, settings: ServerSettings<Target>) -> Arc<Backend> {
        let server = pool.server(settings);
        self.orders.welcome(&self.pool, &server);
        server
    }
}

#[derive(Debug)]
enum Entry {
    Fixed(Arc<Backend>),
    Name {
        name: Arc<ResolvedName>,
        weight: NonZeroU32,
        limit: Option<NonZeroU32>,
        /// The first priority of its servers.
        base: u16,
        tls: Option<Arc<BackendTlsConfig>>,
        servers: Found,
    },
}

/// The first priority of servers that wait for all others to fail: behind any of SRV records.
const BACKUP: u16 = 1 << 15;

type Found = HashMap<Address, Arc<Backend>>;

impl Members {
    fn new(specs: Vec<ServerSpec>, balance: Balance, resolver: &Resolver, orders: OrdersOfPool) -> Arc<Self> {
        let changes = specs.iter().any(|spec| matches!(spec.location, Location::LookedUp(_)));
        let pool = courser_balance::Pool::new(balance, changes);
        let mut names = Vec::new();
        let entry = |spec: ServerSpec| {
            let ServerSpec { location, weight, max_connections: limit, backup, tls } = spec;
            let base = if backup { BACKUP } else { 0 };
            match location {
                Location::Fixed(address) => {
                    let own = match &address {
                        Address::Ip(address) => Some(address.ip().to_string()),
                        Address::Unix(_) | Address::Abstract(_) => None,
                    };
                    let name = address.to_string();
                    let target = Target::new(address, tls.as_deref(), own.as_deref());
                    Entry::Fixed(
                        orders.server(&pool, ServerSettings { name, target, weight, limit, priority: base }),
                    )
                }
                Location::LookedUp(what) => {
                    let name = resolver.name(what);
                    names.push(Arc::clone(&name));
                    Entry::Name { name, weight, limit, base, tls, servers: HashMap::new() }
                }
            }
        };
        let entries: Vec<Entry> = specs.into_iter().map(entry).collect();
        let fixed = |entry: &Entry| match entry {
            Entry::Fixed(server) => Some(Arc::clone(server)),
            Entry::Name { .. } => None,
        };
        let pool = if changes { pool } else { pool.with(entries.iter().filter_map(fixed).collect()) };
        let members = Arc::new(Self {
            pool,
            orders,
            entries: Mutex::new(entries),
            has_both_families: AtomicBool::new(false),
        });
        for name in names {
            name.subscribe(Arc::downgrade(&members) as _);
        }
        members
    }

    /// Takes over the addresses that the names have now. Servers whose address is still there stay what they are.
    fn take_over(&self) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let servers =
            entries.iter_mut().flat_map(|entry| entry.servers(&self.pool, &self.orders)).collect::<Vec<_>>();
        let has_both = entries.iter().any(Entry::has_both_families);
        self.has_both_families.store(has_both, Ordering::Relaxed);
        self.pool.replace(servers);
    }
}

impl Subscriber for Members {
    fn addresses_changed(&self) {
        self.take_over();
    }
}

impl Entry {
    fn servers(&mut self, pool: &courser_balance::Pool<Target>, orders: &OrdersOfPool) -> Vec<Arc<Backend>> {
        let (name, weight, limit, base, tls, servers) = match self {
            Self::Fixed(server) => return vec![Arc::clone(server)],
            Self::Name { name, weight, limit, base, tls, servers } => {
                (name, *weight, *limit, *base, tls.as_deref(), servers)
            }
        };
        let answers = name.latest();
        let server = |answer: &Answer| {
            let (weight, address) = (answer.weight.unwrap_or(weight), answer.address.clone());
            // Those of the other family are for when the preferred ones of the same priority fail.
            let of_family = u16::from(is_of_other_family(answer, &answers));
            let priority = base + answer.priority.min(BACKUP / 2 - 1) * 2 + of_family;
            let is_same = |server: &Arc<Backend>| server.weight == weight && server.priority == priority;
            let known = servers.remove(&address).filter(is_same);
            known.unwrap_or_else(|| {
                let target = Target::new(address.clone(), tls, Some(name.own_name()));
                let name = format!("{}:{} ({address})", answer.host, answer.port);
                orders.server(pool, ServerSettings { name, target, weight, limit, priority })
            })
        };
        let current: Vec<_> = answers.iter().map(server).collect();
        *servers = current.iter().map(|server| (server.target.address.clone(), Arc::clone(server))).collect();
        current
    }

    fn has_both_families(&self) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Name { servers, .. } => servers.keys().any(is_v6) && !servers.keys().all(is_v6),
        }
    }
}

/// Whether the resolver prefers other addresses to this one. Addresses of the other family are mostly other ways to the same
/// machines, and often no way at all (RFC 6724 sorts by that): they are for when the preferred ones fail.
fn is_of_other_family(answer: &Answer, all: &[Answer]) -> bool {
    let first = all.iter().find(|other| other.host == answer.host);
    first.is_some_and(|first| is_v6(&first.address) != is_v6(&answer.address))
}

fn is_v6(address: &Address) -> bool {
    matches!(address, Address::Ip(SocketAddr::V6(_)))
}
