//! The ticket keys of a host that is in no fleet: from its state folder, where there is one, or new. May not write.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use courser_config::{Config, Located, Problem, Problems};
use courser_net::account::Account;
use courser_session::{EpochLength, FleetKeys, FleetState};

use crate::exit::Failure;
use crate::fleet_keys::{HOST_FILE, PersistentKeys, unix_now};
use crate::secret_file;

/// The keys, as far as this host has come with them: those that are `known` from the process before this one go first. What the folder has is refused where others could have read it; a file
/// that cannot be used is a warning, as a service is worth more than its tickets.
pub(crate) fn load(
    config: &Config,
    reader: &Account,
    known: Option<&str>,
    problems: &mut Problems,
) -> Result<PersistentKeys, Failure> {
    let folder = config.process.state_folder.as_ref();
    let (lifetime, now) = (config.sessions.lifetime, unix_now());
    let kept = folder.and_then(|folder| kept(folder, reader, problems));
    let known = known.and_then(|text| FleetState::parse(text).ok());
    let keys = match known.or(kept) {
        Some(state) => FleetKeys::alone_from(state, lifetime, now),
        None => FleetKeys::alone(EpochLength::DEFAULT, lifetime, now),
    };
    let keys = keys.map_err(|error| Failure::runtime("cannot make ticket keys", error))?;
    Ok(PersistentKeys::of_host(keys, folder.cloned()))
}

fn kept(folder: &Located<PathBuf>, reader: &Account, problems: &mut Problems) -> Option<FleetState> {
    if let Some(mode) = open_to_others(&folder.value) {
        let shown = folder.value.display();
        let message = format!("cannot use {shown}: others than its owner may enter it (mode {mode:04o})");
        problems.push(Problem::at(&folder.origin, message, Some(format!("chmod 700 {shown}"))));
        return None;
    }
    let file = folder.value.join(HOST_FILE);
    let cannot_use = |why: &dyn std::fmt::Display| format!("cannot use {}: {why}", file.display());
    let text = match secret_file::read(&file, reader) {
        Err(refusal) if refusal.is_missing() => return None,
        Err(refusal) => {
            let problem = Problem::at(&folder.origin, cannot_use(&refusal), refusal.help(&file, reader));
            // What is merely broken was read by nobody.
            problems.push(if refusal.is_exposed() { problem } else { problem.as_warning() });
            return None;
        }
        Ok(text) => text,
    };
    FleetState::parse(&text)
        .map_err(|_| {
            let message = cannot_use(&"it is not what courser writes, or not all of it");
            let help = "it begins with new keys, and every client makes one full handshake";
            problems.push(Problem::at(&folder.origin, message, Some(help.to_owned())).as_warning());
        })
        .ok()
}

/// The mode of a folder that has to be its owner's alone and is not.
fn open_to_others(folder: &Path) -> Option<u32> {
    let mode = fs::metadata(folder).ok()?.mode() & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}
