//! From settings to what sessions by ID are shared through: the other hosts, and an external store.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser_config::{Config, Located, Problem, Problems, SourceSpan};
use courser_fleet::{AddressRange, Allowed, Incarnation, MemberName, MemberSettings, UnixMillis};
use courser_net::account::Account;
use courser_net::datagram::Interface;
use courser_net::{DatagramSettings, DatagramSocket};
use courser_proxy::Threads;
use courser_session::{Cache, SecretBytes, Vault};
use courser_sharing::{Fleet, FleetHandle, Sharing, StoreSettings};
use courser_store::{Access, Identity, StoreCounters, StoreEndpoint, StoreUrl};
use courser_telemetry::event::say;

use crate::exit::Failure;
use crate::fleet_keys::PersistentKeys;
use crate::input_file;
use crate::secret_file::{self, Refusal};

/// What has to be in place before anything is served, checked and read; nothing is opened yet.
pub(crate) struct Prepared {
    store: Option<Arc<StoreEndpoint>>,
    interface: Option<Interface>,
    /// What is odd about them.
    pub(crate) warnings: Problems,
}

/// Reads the files that the store's settings name, and looks for the interface; all problems in one run.
pub(crate) fn prepare(config: &Config, reader: &Account) -> Result<Prepared, Failure> {
    let mut problems = Problems::default();
    let store = config.sessions.store.as_ref().and_then(|url| {
        target(url, config, reader, &mut problems).map_err(|wrong| problems.extend(wrong)).ok()
    });
    let interface = config.fleet.interface.as_ref().and_then(|interface| {
        let found = Interface::find(&interface.value.name);
        let wrong = |error: courser_net::datagram::NoInterface| {
            Problem::at(&interface.origin, error.to_string(), None)
        };
        found.map_err(|error| problems.push(wrong(error))).ok()
    });
    if problems.has_errors() {
        Err(problems.into())
    } else {
        Ok(Prepared { store, interface, warnings: problems })
    }
}

/// The store, with what stands in files beside its URL.
fn target(
    url: &Located<String>,
    config: &Config,
    reader: &Account,
    problems: &mut Problems,
) -> Result<Arc<StoreEndpoint>, Problems> {
    let at_url = |message: String| {
        // Where a password may stand, the place is not shown: it would be printed with it.
        let shown = if url.value.contains('@') { None } else { Some(&url.origin) };
        let placed = |origin| Problem::at(origin, &message, None);
        Problems::from(shown.map_or_else(|| Problem::nowhere(format!("session store: {message}")), placed))
    };
    let parsed = StoreUrl::parse(&url.value).map_err(|error| at_url(error.to_string()))?;
    let mut access = Access::default();
    if let Some(file) = &config.sessions.store_password {
        let text = secret_file::read(&file.value, reader)
            .map_err(|refusal| cannot_use(&file.origin, &file.value, &refusal, reader))?;
        access.password = Some(text.as_bytes().to_vec().into());
    } else if parsed.has_password() {
        let message = "a password in the URL of the session store can be read by others; write it to a file for \
                       `store_password` (`--session-store-password`)";
        problems.push(Problem::nowhere(message).as_warning());
    }
    if let Some(file) = &config.sessions.store_ca {
        let roots = input_file::read(&file.value)
            .map_err(|refusal| cannot_use(&file.origin, &file.value, &refusal, reader))?;
        access.roots = Some(roots);
    }
    if let Some(files) = &config.sessions.store_cert {
        let wrong = |file: &Path, refusal: &Refusal| cannot_use(&files.origin, file, refusal, reader);
        let chain = input_file::read(&files.chain).map_err(|refusal| wrong(&files.chain, &refusal))?;
        let key =
            secret_file::read_bytes(&files.key, reader).map_err(|refusal| wrong(&files.key, &refusal))?;
        access.identity = Some(Identity { chain, key });
    }
    StoreEndpoint::new(parsed, access).map_err(|error| at_url(error.to_string()))
}

fn cannot_use(place: &SourceSpan, file: &Path, refusal: &Refusal, reader: &Account) -> Problems {
    let message = format!("cannot use {}: {refusal}", file.display());
    Problem::at(place, message, refusal.help(file, reader)).into()
}

/// Opens the way to the other hosts and to the store. `tickets`: whether clients get them.
pub(crate) fn share(
    config: &Config,
    prepared: Prepared,
    keys: Option<&PersistentKeys>,
    cache: &Arc<Cache>,
    name: &str,
    threads: &Threads,
) -> Result<Sharing, Failure> {
    let mut sharing = Sharing::alone(Arc::clone(cache), config.sessions.tickets);
    let Some(keys) = keys else { return Ok(sharing) };
    sharing.fleet = fleet(config, prepared.interface, keys, cache, name, threads)?;
    sharing.pull_deadline = if config.fleet.pull { config.fleet.pull_timeout } else { Duration::ZERO };
    sharing.store = prepared.store.map(|target| StoreSettings {
        endpoint: target,
        timeout: config.sessions.store_timeout,
        counters: Arc::new(StoreCounters::new(|line| say("warning", line))),
        vault: Arc::new(Vault::new(Arc::clone(&keys.keys))),
    });
    Ok(sharing)
}

/// Joins the fleet, where messages are wanted.
fn fleet(
    config: &Config,
    interface: Option<Interface>,
    keys: &PersistentKeys,
    cache: &Arc<Cache>,
    name: &str,
    threads: &Threads,
) -> Result<Option<FleetHandle>, Failure> {
    let Some(listen) = &config.fleet.listen else { return Ok(None) };
    let hops = config.fleet.interface.as_ref().map_or(1, |interface| interface.value.ttl);
    let settings = DatagramSettings { listen: listen.value, interface, hops, same_machine: true };
    let socket = DatagramSocket::open(&settings)
        .map_err(|error| Failure::from(Problem::at(&listen.origin, error.to_string(), None)))?;
    let name = MemberName::new(name).map_err(|error| Failure::runtime("cannot join the fleet", error))?;
    let failed = |error: &dyn std::fmt::Display| Failure::runtime("cannot join the fleet", error);
    let random = |_| failed(&"the system gave no random bytes");
    let incarnation = Incarnation::new(now(), *SecretBytes::random().map_err(random)?.as_bytes());
    let mut settings =
        MemberSettings::new(name, incarnation, *SecretBytes::random().map_err(random)?.as_bytes());
    settings.allowed = allowed(config);
    let address = socket.address();
    let joining = Fleet {
        socket,
        peers: config.fleet.peers.clone(),
        settings,
        keys: Arc::clone(&keys.keys),
        cache: Arc::clone(cache),
    };
    let handle = joining.start(|name, work| threads.spawn(name, work)).map_err(|error| failed(&error))?;
    let to = match address.ip().is_multicast() {
        true => "by multicast".to_owned(),
        false => {
            let others = config.fleet.peers.iter().filter(|peer| **peer != address);
            format!("peers: {}", others.count())
        }
    };
    say("info", format_args!("fleet {}: messages at {address}, {to}", keys.keys.fleet()));
    Ok(Some(handle))
}

/// From where messages are taken: configured networks, or the peers.
fn allowed(config: &Config) -> Vec<Allowed> {
    let ranges =
        config.fleet.allow.iter().filter_map(|network| AddressRange::new(network.address, network.prefix));
    let peers = config.fleet.peers.iter().map(|peer| Allowed::Exact(*peer));
    ranges.map(Allowed::Range).chain(peers).collect()
}

fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
