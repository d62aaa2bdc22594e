//! From settings to the peers and the store that session-ID sessions are shared with.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use courser_config::{Config, Located, Problem, Problems, SourceSpan};
use courser_net::account::Account;
use courser_net::datagram::Interface;
use courser_session::Vault;
use courser_sharing::{FleetHandle, Sharing, StoreSettings};
use courser_store::{Access, Identity, StoreCounters, StoreEndpoint, StoreUrl};
use courser_telemetry::event::{Level, log};

use crate::exit::Failure;
use crate::file_error::FileError;
use crate::input_file;
use crate::process::Process;
use crate::secret_file;

/// The store and the network interface, read and checked; nothing is opened yet.
pub(crate) struct SharingInputs {
    pub(crate) store: Option<Arc<StoreEndpoint>>,
    pub(crate) interface: Option<Interface>,
    pub(crate) warnings: Problems,
}

/// Reads the files that the store's settings name, and looks for the interface; all problems in one run.
pub(crate) fn prepare(config: &Config, reader: &Account) -> Result<SharingInputs, Failure> {
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
        Ok(SharingInputs { store, interface, warnings: problems })
    }
}

/// The store, with the contents of the files beside its URL.
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
        let message = "a password in the URL of the session store can be read by other users; write it to a file for \
                       `store_password` (`--session-store-password`)";
        problems.push(Problem::nowhere(message).as_warning());
    }
    if let Some(file) = &config.sessions.store_ca {
        let roots = input_file::read(&file.value)
            .map_err(|refusal| cannot_use(&file.origin, &file.value, &refusal, reader))?;
        access.roots = Some(roots);
    }
    if let Some(files) = &config.sessions.store_cert {
        let wrong = |file: &Path, refusal: &FileError| cannot_use(&files.origin, file, refusal, reader);
        let chain = input_file::read(&files.chain).map_err(|refusal| wrong(&files.chain, &refusal))?;
        let key =
            secret_file::read_bytes(&files.key, reader).map_err(|refusal| wrong(&files.key, &refusal))?;
        access.identity = Some(Identity { chain, key });
    }
    StoreEndpoint::new(parsed, access).map_err(|error| at_url(error.to_string()))
}

fn cannot_use(place: &SourceSpan, file: &Path, refusal: &FileError, reader: &Account) -> Problems {
    let message = format!("cannot use {}: {refusal}", file.display());
    Problem::at(place, message, refusal.help(file, reader)).into()
}

/// The session cache, with the other hosts and the store that sessions are shared with. Opens nothing.
pub(crate) fn share(
    config: &Config,
    store: Option<Arc<StoreEndpoint>>,
    process: &Process,
    fleet: Option<FleetHandle>,
) -> Option<Sharing> {
    let mut sharing = Sharing::alone(Arc::clone(process.sessions.cache.as_ref()?), config.sessions.tickets);
    let Some(keys) = &process.fleet else { return Some(sharing) };
    sharing.fleet = fleet;
    sharing.pull_deadline = if config.fleet.pull { config.fleet.pull_timeout } else { Duration::ZERO };
    sharing.store = store.map(|endpoint| StoreSettings {
        endpoint,
        timeout: config.sessions.store_timeout,
        counters: Arc::new(StoreCounters::new(|line| log(Level::Warning, line))),
        vault: Arc::new(Vault::new(Arc::clone(&keys.keys))),
    });
    Some(sharing)
}
