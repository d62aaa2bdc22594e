//! The keys of a fleet, from the files that the configuration names to what seals, and back to the disk as they roll.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use courser_config::{Config, Located, Problem, Problems};
use courser_net::account::Account;
use courser_session::{FleetId, FleetKey, FleetKeys, FleetState, Source, UnixSeconds};
use courser_telemetry::event::{Level, log};
use zeroize::Zeroizing;

use crate::exit::Failure;
use crate::secret_file;

/// With a key of its own a host would be a fleet of its own.
const WHERE_FROM: &str =
    "copy it from another host of the fleet; for the first, `courser fleet keygen --out FILE` makes one";

/// Extension of a state file, whose name is its fleet's ID.
const EXTENSION: &str = "state";

/// The file of a host alone, whose ID may change.
pub(crate) const HOST_FILE: &str = "host.state";

/// Keys while the program runs: the fleet's, or its own.
#[derive(Clone)]
pub(crate) struct PersistentKeys {
    pub(crate) keys: Arc<FleetKeys>,
    /// Whether the last states could not be written.
    is_behind: Arc<AtomicBool>,
    /// Where states are written; none in simple mode, and where a host alone has no folder.
    folder: Option<Located<PathBuf>>,
    owner: Owner,
}

/// Whose keys are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Fleet,
    Host,
}

impl PersistentKeys {
    /// Keys of a host in no fleet; without a folder they are forgotten when the process ends.
    pub(crate) fn of_host(keys: FleetKeys, folder: Option<Located<PathBuf>>) -> Self {
        Self { keys: Arc::new(keys), is_behind: Arc::default(), folder, owner: Owner::Host }
    }

    pub(crate) fn is_fleet(&self) -> bool {
        self.owner == Owner::Fleet
    }

    /// As text, where they are this host's alone: those of a fleet are in its files.
    pub(crate) fn of_this_host_alone(&self) -> Option<Zeroizing<String>> {
        if self.is_fleet() {
            return None;
        }
        self.keys.export(unix_now()).into_iter().map(|(_, text)| text).next()
    }

    /// Writes the states for the first time, so that a folder that cannot be written to is noticed before anything
    /// depends on it: a failure for a fleet, and for a host alone an error line, as it loses no more than its tickets.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        match self.owner {
            Owner::Fleet => self.begin_fleet(),
            Owner::Host => {
                self.advance();
                Ok(())
            }
        }
    }

    /// Whether what is sealed now can be opened after a restart.
    pub(crate) fn outlive_process(&self) -> bool {
        self.is_fleet() || self.folder.is_some() && !self.is_behind.load(Ordering::Relaxed)
    }

    /// Removes the states of fleets that this host has left, too.
    fn begin_fleet(&self) -> Result<(), Failure> {
        self.write_changed().and_then(|()| self.remove_left()).map_err(|(folder, why)| {
            let help = "create the folder, for this user alone: install -d -m 700 DIR";
            let message = format!("the fleet's state cannot be written: {why}");
            Failure::from(Problem::at(&folder.origin, message, Some(help.to_owned())))
        })?;
        for (index, key) in self.keys.statuses(unix_now()).iter().enumerate() {
            let role = if index == 0 { "tickets are sealed" } else { "tickets are opened" };
            let mode = if key.forward_secret { ", forward-secret" } else { "" };
            log(Level::Info, format_args!("fleet {}: {role}, epoch {}{mode}", key.fleet, key.epoch));
        }
        Ok(())
    }

    /// Rolls the keys if that is due, and writes the states that have changed. A failure is logged once; the
    /// write is tried again each time: the newer keys derive from the older state, but it also opens more.
    pub(crate) fn advance(&self) {
        let was_behind = self.is_behind.load(Ordering::Relaxed);
        match self.write_changed() {
            Err((_, why)) if !was_behind => log(
                Level::Error,
                format_args!(
                    "{}: {why}; a restart now would continue from an older one, or without. It is tried again",
                    self.complaint()
                ),
            ),
            Ok(()) if was_behind => log(Level::Info, "the state of ticket keys is written again"),
            _ => {}
        }
    }

    fn complaint(&self) -> &'static str {
        match self.owner {
            Owner::Fleet => "the fleet's state cannot be written",
            Owner::Host => "the state of this host's ticket keys cannot be written",
        }
    }

    /// A fleet whose key is not named beside another's any more: its state would be trusted again by a start that names
    /// the folder alone.
    fn remove_left(&self) -> Result<(), (&Located<PathBuf>, String)> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let live: Vec<_> = self.keys.statuses(unix_now()).iter().map(|key| file_name(key.fleet)).collect();
        let files = state_files(&folder.value).map_err(|error| (folder, error.to_string()))?;
        for file in files.into_iter().filter(|file| !live.iter().any(|live| file.ends_with(live))) {
            fs::remove_file(&file).map_err(|error| (folder, format!("{}: {error}", file.display())))?;
            log(
                Level::Info,
                format_args!("fleet: removed {}, since its key is not named any more", file.display()),
            );
        }
        Ok(())
    }

    /// The last of what failed, and where.
    fn write_changed(&self) -> Result<(), (&Located<PathBuf>, String)> {
        let now = unix_now();
        let changed = match self.is_behind.load(Ordering::Relaxed) {
            true => self.keys.export(now),
            false => self.keys.advance(now),
        };
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut failed = None;
        for (fleet, text) in changed {
            let file = match self.owner {
                Owner::Fleet => folder.value.join(file_name(fleet)),
                Owner::Host => folder.value.join(HOST_FILE),
            };
            failed = write(&file, &text).err().or(failed);
        }
        self.is_behind.store(failed.is_some(), Ordering::Relaxed);
        failed.map_or(Ok(()), |why| Err((folder, why)))
    }
}

/// Reads every key that `config` names; all problems in one run. `None` when it names none. Writes nothing.
pub(crate) fn load(config: &Config, reader: &Account) -> Result<Option<PersistentKeys>, Failure> {
    let fleet = &config.fleet;
    let folder = fleet.state.as_ref();
    let mut problems = Problems::default();
    let mut sources = Vec::new();
    for file in &fleet.keys {
        match source(&file.value, folder.map(|folder| folder.value.as_path()), config, reader) {
            Ok(source) => sources.push(source),
            Err((message, help)) => problems.push(Problem::at(&file.origin, message, help)),
        }
    }
    if let Some(folder) = folder.filter(|_| fleet.keys.is_empty()) {
        match states(&folder.value, reader) {
            Ok(states) => sources.extend(states.into_iter().map(Source::Ratcheted)),
            Err((message, help)) => problems.push(Problem::at(&folder.origin, message, help)),
        }
    }
    if problems.has_errors() {
        return Err(problems.into());
    }
    let Some(place) = fleet.keys.first().or(folder).map(|place| &place.origin) else { return Ok(None) };
    let keys = FleetKeys::new(sources, config.sessions.lifetime, unix_now())
        .map_err(|error| Problem::at(place, format!("these keys cannot be used: {error}"), None))?;
    let (keys, is_behind) = (Arc::new(keys), Arc::default());
    Ok(Some(PersistentKeys { keys, is_behind, folder: folder.cloned(), owner: Owner::Fleet }))
}

/// A problem of a file, and its remedy.
type FileProblem = (String, Option<String>);

/// What a file of `fleet.key` holds: in forward-secret mode as far as this host has come with it already.
fn source(
    file: &Path,
    folder: Option<&Path>,
    config: &Config,
    reader: &Account,
) -> Result<Source, FileProblem> {
    let text = read(file, reader)?;
    let Some(folder) = folder else { return simple(file, &text).map(Source::Simple) };
    let begun = match FleetState::parse(&text) {
        Ok(state) => state,
        Err(not_state) => match FleetKey::parse(&text) {
            Ok(key) => FleetState::from_key(&key, config.sessions.lifetime, unix_now())
                .map_err(|error| (format!("{}: {error}", file.display()), None))?,
            Err(_) if is_state(&text) => return Err((format!("{}: {not_state}", file.display()), None)),
            Err(not_key) => return Err((format!("{}: {not_key}", file.display()), None)),
        },
    };
    let written = folder.join(file_name(begun.id()));
    match written.exists().then(|| read_state(&written, reader)).transpose()? {
        Some(state) if state.epoch() >= begun.epoch() => Ok(Source::Ratcheted(state)),
        _ => Ok(Source::Ratcheted(begun)),
    }
}

fn simple(file: &Path, text: &str) -> Result<FleetKey, FileProblem> {
    FleetKey::parse(text).map_err(|error| {
        if is_state(text) {
            let help = "name a folder for it: `fleet.state` (`--fleet-state`)";
            let message = format!("{} is a fleet's state, which rolls on", file.display());
            return (message, Some(help.to_owned()));
        }
        (format!("{}: {error}", file.display()), None)
    })
}

/// Whether a text means to be a state, right or wrong.
fn is_state(text: &str) -> bool {
    text.contains("courser-fleet-state")
}

/// The states in a folder, that of the newest fleet first: while a fleet is re-keyed there are two.
fn states(folder: &Path, reader: &Account) -> Result<Vec<FleetState>, FileProblem> {
    let failed = |error: io::Error| (format!("cannot read {}: {error}", folder.display()), None);
    let files = state_files(folder).map_err(failed)?;
    let mut states = files.iter().map(|file| read_state(file, reader)).collect::<Result<Vec<_>, _>>()?;
    if states.is_empty() {
        let help =
            "name the fleet's key once with `fleet.key` (`--fleet-key`), or what another host exported";
        return Err((format!("there is no state in {} yet", folder.display()), Some(help.to_owned())));
    }
    states.sort_by_key(|state| std::cmp::Reverse(state.origin()));
    Ok(states)
}

/// The files in a folder with the name of a fleet's state.
fn state_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let is_id = |stem: &OsStr| stem.len() == 16 && stem.as_bytes().iter().all(u8::is_ascii_hexdigit);
    let is_state = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == EXTENSION)
            && path.file_stem().is_some_and(is_id)
    };
    let files = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    files.filter(|file| file.as_ref().map_or(true, is_state)).collect()
}

/// The state that seals among those in a folder.
pub(crate) fn newest_state(folder: &Path) -> Result<FleetState, Failure> {
    let newest = states(folder, &Account::current()).map(|states| states.into_iter().next());
    newest
        .map_err(failure)?
        .ok_or_else(|| Failure::Runtime(format!("there is no state in {}", folder.display())))
}

pub(crate) fn read_key(file: &Path) -> Result<FleetKey, Failure> {
    read(file, &Account::current()).and_then(|text| simple(file, &text)).map_err(failure)
}

fn read_state(file: &Path, reader: &Account) -> Result<FleetState, FileProblem> {
    FleetState::parse(&read(file, reader)?).map_err(|error| (format!("{}: {error}", file.display()), None))
}

fn read(file: &Path, reader: &Account) -> Result<Zeroizing<String>, FileProblem> {
    secret_file::read(file, reader).map_err(|refusal| {
        let help =
            if refusal.is_missing() { Some(WHERE_FROM.to_owned()) } else { refusal.help(file, reader) };
        (format!("cannot use {}: {refusal}", file.display()), help)
    })
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    secret_file::replace(file, text.as_bytes()).map_err(|refusal| format!("{}: {refusal}", file.display()))
}

fn file_name(fleet: FleetId) -> String {
    format!("{fleet}.{EXTENSION}")
}

fn failure((message, help): FileProblem) -> Failure {
    let mut problem = Problem::nowhere(message);
    problem.help = help;
    problem.into()
}

/// The time, as sessions and keys count it.
pub(crate) fn unix_now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
