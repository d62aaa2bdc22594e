//! All that a configuration names, read and checked before anything is opened: for `check`, and for the start of `serve`.
//! May not change anything.

use std::fs;
use std::path::Path;

use clap::ArgMatches;
use courser_config::{Config, Located, Problem, Problems};
use courser_net::account::Account;

use crate::certificates;
use crate::exit::{Failure, colour};
use crate::fleet_keys;
use crate::generation::{self, Generation};
use crate::process::Process;
use crate::session_file;
use crate::sharing::{self, SharingInputs};
use crate::{hardening, privileges};

/// All that serving needs before it opens anything.
pub(crate) struct Prepared {
    pub(crate) config: Config,
    pub(crate) certificates: usize,
    pub(crate) process: Process,
    pub(crate) generation: Generation,
    pub(crate) sharing: SharingInputs,
    pub(crate) successor: Option<Account>,
}

/// Reads everything, builds the first generation, and prints warnings. All problems of files, keys and folders are reported
/// in one run.
pub(crate) fn prepare(flags: &ArgMatches) -> Result<Prepared, Failure> {
    let loaded = courser_config::from_matches(flags)?;
    let (config, mut problems) = (loaded.config, loaded.warnings);
    hardening::harden(&config.process)?;
    let successor = collect(privileges::successor(&config.process), &mut problems)?.flatten();
    let account = successor.clone().unwrap_or_else(Account::current);
    let certificates = collect(certificates::load(&config, &account), &mut problems)?;
    let fleet = collect(fleet_keys::load(&config, &account), &mut problems)?;
    let sharing = collect(sharing::prepare(&config, &account), &mut problems)?;
    problems.extend(folders(&config));
    if let Some(account) = &successor {
        problems.extend(privileges::unreachable(&config, account)?);
    }
    let (Some(certificates), Some(fleet), Some(sharing)) = (certificates, fleet, sharing) else {
        return Err(problems.into());
    };
    if problems.has_errors() {
        return Err(problems.into());
    }
    for warnings in [&problems, &certificates.warnings, &sharing.warnings] {
        eprint!("{}", warnings.render(colour()));
    }
    let process = Process::new(&config, fleet)?;
    let generation = generation::build(&config, &certificates, &process)?;
    Ok(Prepared { config, certificates: certificates.len(), process, generation, sharing, successor })
}

/// Adds the problems of a result to the others, so that the rest is checked as well.
fn collect<T>(result: Result<T, Failure>, problems: &mut Problems) -> Result<Option<T>, Failure> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Configuration(wrong)) => {
            problems.extend(wrong);
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Problems of the folders that the program writes to: when it ends it would be too late.
fn folders(config: &Config) -> Vec<Problem> {
    let (state, file, control) = (&config.fleet.state, &config.sessions.file, &config.process.control);
    let state = state.iter().map(|state| (state, state.value.as_path()));
    let files = [file, control].into_iter().flatten();
    let files = files.map(|file| (file, file.value.parent().unwrap_or(Path::new("/"))));
    let mut problems: Vec<_> =
        state.chain(files).filter_map(|(place, folder)| folder_problem(place, folder)).collect();
    if let Some(file) = file {
        let wrong = match &file.value {
            path if path.is_dir() => Some("it is a folder"),
            path if session_file::has_other_content(path) => Some(session_file::OTHER_CONTENT),
            _ => None,
        };
        let message = |wrong| format!("cannot write {}: {wrong}", file.value.display());
        problems.extend(wrong.map(|wrong| Problem::at(&file.origin, message(wrong), None)));
    }
    problems
}

fn folder_problem<T>(place: &Located<T>, folder: &Path) -> Option<Problem> {
    // A bare file name is in the current folder.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let shown = folder.display();
    let (message, help) = match fs::metadata(folder) {
        Ok(found) if found.is_dir() => return None,
        Ok(_) => (format!("cannot write to {shown}: it is not a folder"), None),
        Err(error) => {
            let help = format!("create it for the user that courser runs as: install -d -m 700 {shown}");
            (format!("cannot write to {shown}: {error}"), Some(help))
        }
    };
    Some(Problem::at(&place.origin, message, help))
}
