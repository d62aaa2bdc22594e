//! All that a configuration names, read and checked before anything is opened: for `check`, and for the start of `serve`.
//! May not change anything.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use clap::ArgMatches;
use courser_config::{Config, Loaded, Located, Problem, Problems, Written};
use courser_net::account::Account;

use crate::admin::access::Access;
use crate::certificates::{self, LoadedCertificates, Previous, Proof};
use crate::exit::{Failure, colour};
use crate::fleet_keys;
use crate::generation::{self, Generation};
use crate::pools::Pools;
use crate::process::Process;
use crate::served::Served;
use crate::session_file;
use crate::sharing::{self, SharingInputs};
use crate::stamp::Stamps;
use crate::succeed::Memory;
use crate::{acme, hardening, host_keys, privileges};

/// All that serving needs before it opens anything.
pub(crate) struct Prepared {
    /// By which this process was started.
    pub(crate) program: PathBuf,
    /// Of the first generation.
    pub(crate) inputs: Inputs,
    /// For the status.
    pub(crate) served: Served,
    pub(crate) process: Process,
    pub(crate) generation: Generation,
    pub(crate) sharing: SharingInputs,
    /// Who may see what is for operators.
    pub(crate) access: Access,
    pub(crate) successor: Option<Account>,
}

/// Reads everything, builds the first generation with what the process before this one remembers, and prints warnings. All
/// problems of files, keys and folders are reported in one run.
pub(crate) fn prepare(
    flags: &ArgMatches,
    memory: Option<&mut Memory>,
    proof: Proof,
) -> Result<Prepared, Failure> {
    let before = Stamps::of(config_file(flags).map(Arc::from));
    let Loaded { config, warnings, written } = read_config(flags)?;
    let mut problems = warnings.clone();
    let stamps = Stamps::of(files(&config, flags)).with_state_of(config_file(flags).as_deref(), &before);
    hardening::harden(&config.process)?;
    let successor = collect(privileges::successor(&config.process), &mut problems)?.flatten();
    let account = successor.clone().unwrap_or_else(Account::current);
    let certificates = collect(certificates::load(&config, &account, None, proof), &mut problems)?;
    let known = memory.as_ref().and_then(|memory| memory.keys());
    let keys = match collect(fleet_keys::load(&config, &account), &mut problems)? {
        Some(Some(fleet)) => Some(fleet),
        Some(None) => Some(host_keys::load(&config, &account, known, &mut problems)?),
        None => None,
    };
    let sharing = collect(sharing::prepare(&config, &account), &mut problems)?;
    let access = collect(Access::read(&config, &account), &mut problems)?;
    collect(acme::settings(&config, &account), &mut problems)?;
    problems.extend(folders(&config));
    if let Some(account) = &successor {
        problems.extend(privileges::unreachable(&config, account)?);
    }
    let (Some(certificates), Some(keys), Some(sharing), Some(access)) = (certificates, keys, sharing, access)
    else {
        return Err(problems.into());
    };
    if problems.has_errors() {
        return Err(problems.into());
    }
    for warnings in [&problems, &certificates.warnings, &sharing.warnings] {
        eprint!("{}", warnings.render(colour()));
    }
    let mut process = Process::new(&config, keys)?;
    if let Some(memory) = memory {
        memory.restore(&mut process);
    }
    let generation = generation::build(&config, &certificates, &process, &Pools::default())?;
    let served = Served::of(&config, &certificates);
    let (config, written) = (Arc::new(config), Arc::new(written));
    let inputs = Inputs { config, written, certificates, stamps, warnings };
    Ok(Prepared { program: own_program(), inputs, served, process, generation, sharing, access, successor })
}

/// The settings, with the files of what is ordered.
fn read_config(flags: &ArgMatches) -> Result<Loaded, Problems> {
    let mut loaded = courser_config::from_matches(flags)?;
    acme::name_files(&mut loaded.config);
    Ok(loaded)
}

/// The path by which this process was started, for the next one: there may be another program by then.
fn own_program() -> PathBuf {
    let named = env::args_os().next().map(PathBuf::from);
    let named = named.filter(|path| path.components().count() > 1);
    let found = named.and_then(|path| std::path::absolute(path).ok()).map_or_else(env::current_exe, Ok);
    found.unwrap_or_else(|_| PathBuf::from("courser"))
}

/// What a generation is made of.
pub(crate) struct Inputs {
    pub(crate) config: Arc<Config>,
    pub(crate) written: Arc<Written>,
    pub(crate) certificates: LoadedCertificates,
    pub(crate) stamps: Stamps,
    /// About the configuration.
    warnings: Problems,
}

impl Inputs {
    /// All of them, as `check` prints them.
    pub(crate) fn warnings(&self) -> String {
        [&self.warnings, &self.certificates.warnings].map(|problems| problems.render(false)).concat()
    }

    /// Whether nothing but certificates of hosts and their staples can differ from `others`.
    pub(crate) fn differ_in_certificates_alone(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.config, &others.config)
    }
}

/// Reads the files of a generation again that may have changed since `known`, that of the configuration first. All problems are
/// reported in one run. `seen` has then the state of the files before they were read, also after a failure.
pub(crate) fn read_again(flags: &ArgMatches, known: &Inputs, seen: &mut Stamps) -> Result<Inputs, Failure> {
    let account = Account::current();
    // Before the files are read: one that is written meanwhile differs from its stamp afterwards.
    *seen = known.stamps.now();
    let outdated: HashSet<_> = known.stamps.outdated(seen).into_iter().map(Path::as_os_str).collect();
    let others = other_files(&known.config, flags);
    if !others.iter().any(|file| outdated.contains(file.as_os_str())) {
        let (config, written) = (Arc::clone(&known.config), Arc::clone(&known.written));
        let previous = Previous { certificates: &known.certificates, outdated };
        let certificates = certificates::renew(&config, &account, &previous)?;
        let (stamps, warnings) = (seen.clone(), known.warnings.clone());
        return Ok(Inputs { config, written, certificates, stamps, warnings });
    }
    let Loaded { config, mut warnings, written } = read_config(flags)?;
    let file = config_file(flags);
    *seen = Stamps::of(files(&config, flags)).with_state_of(file.as_deref(), seen);
    let outdated = known.stamps.outdated(seen).into_iter().map(Path::as_os_str).collect();
    let previous = Previous { certificates: &known.certificates, outdated };
    let certificates =
        collect(certificates::load(&config, &account, Some(&previous), Proof::WhenNeeded), &mut warnings)?;
    collect(acme::settings(&config, &account), &mut warnings)?;
    match certificates {
        Some(certificates) if !warnings.has_errors() => {
            let (config, written, stamps) = (Arc::new(config), Arc::new(written), seen.clone());
            Ok(Inputs { config, written, certificates, stamps, warnings })
        }
        _ => Err(warnings.into()),
    }
}

/// The files that a generation is made of, that of the configuration first.
fn files(config: &Config, flags: &ArgMatches) -> Vec<Arc<Path>> {
    let certificates = config.hosts().flat_map(|host| &host.certificates);
    let certificates = certificates.flat_map(|files| [&files.chain, &files.key]).cloned();
    let staples = config.hosts().flat_map(|host| &host.staples).map(|file| file.value.clone());
    let others = other_files(config, flags).into_iter().chain(staples).map(Arc::from);
    others.chain(certificates).collect()
}

/// All but the certificates of hosts and their staples.
fn other_files(config: &Config, flags: &ArgMatches) -> Vec<PathBuf> {
    let authorities = config.hosts().flat_map(|host| &host.client_ca).map(|file| file.value.as_path());
    let of_backends = config.backend_tls().into_iter().flat_map(|tls| tls.value.files());
    let lists = config.hosts().flat_map(|host| &host.client_crl).flat_map(|lists| lists.value.files.iter());
    let named = authorities
        .chain(of_backends)
        .chain(lists.map(|file| file.value.as_path()))
        .chain(acme::files(config));
    config_file(flags).into_iter().chain(named.map(Path::to_owned)).collect()
}

/// The file that the command line names.
pub(crate) fn config_file(flags: &ArgMatches) -> Option<PathBuf> {
    flags.get_one::<PathBuf>("config").cloned()
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
    let (file, process) = (&config.sessions.file, &config.process);
    let state = config.fleet.state.iter().chain(&process.state_folder);
    let state = state.map(|state| (state, state.value.as_path()));
    let files = [file, &process.control, &process.log_file, &process.events_file].into_iter().flatten();
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
