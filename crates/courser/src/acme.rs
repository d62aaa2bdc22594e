//! Certificates that are ordered (`cert = { acme = true }`): which ones, where their files are, and by what an agent orders
//! them. May not order anything: that is `service/acme.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser_acme::{ExternalAccount, Handle, NameSet, Settings, pair_file};
use courser_config::{AcmeOrder, CertificateFiles, Config, HostConfig, Located, Problem, Problems};
use courser_net::account::Account;

use crate::exit::Failure;
use crate::file_error::unusable;
use crate::{authorities, secret_file};

pub(crate) mod board;
pub(crate) mod pending;

/// Names the files of what hosts have ordered, behind those that they name themselves.
pub(crate) fn name_files(config: &mut Config) {
    let Some(folder) = config.process.state_folder.as_ref().map(|folder| folder.value.clone()) else {
        return;
    };
    let directory = config.acme.directory.clone();
    let listeners = config.listeners.iter_mut().map(Arc::make_mut);
    for host in
        listeners.flat_map(|listener| std::iter::once(&mut listener.default).chain(&mut listener.hosts))
    {
        let Some(origin) = host.acme.clone() else { continue };
        for set in sets_of(host) {
            let file: Arc<Path> = pair_file(&folder, &directory, &set).into();
            let ordered_for = set.names();
            let origin = origin.clone();
            host.certificates.push(CertificateFiles {
                chain: Arc::clone(&file),
                key: file,
                origin,
                ordered_for,
            });
        }
    }
}

fn sets_of(host: &HostConfig) -> Vec<NameSet> {
    NameSet::group(host.names.iter().map(String::as_str))
}

/// What is ordered here, each certificate once, however many hosts have it.
pub(crate) fn sets(config: &Config) -> Vec<NameSet> {
    if config.acme.order == AcmeOrder::Elsewhere {
        return Vec::new();
    }
    let all: BTreeSet<_> = config.hosts().filter(|host| host.acme.is_some()).flat_map(sets_of).collect();
    all.into_iter().collect()
}

/// The files that `[acme]` names, for whoever watches them.
pub(crate) fn files(config: &Config) -> impl Iterator<Item = &Path> {
    [&config.acme.directory_ca, &config.acme.eab].into_iter().flatten().map(|file| file.value.as_path())
}

/// By what is ordered; `None` where nothing is.
pub(crate) fn settings(config: &Config, reader: &Account) -> Result<Option<Settings>, Failure> {
    let acme = &config.acme;
    let Some(folder) = config.process.state_folder.as_ref().filter(|_| !sets(config).is_empty()) else {
        return Ok(None);
    };
    let mut problems = Problems::default();
    let mut keep = |wrong: Problems| problems.extend(wrong);
    let authority = acme.directory_ca.as_ref().map(|file| authorities::read(file, reader));
    let directory_ca = authority.transpose().map_err(&mut keep).ok().flatten();
    let external = acme.eab.as_ref().map(|file| external_account(file, reader));
    let external = external.transpose().map_err(&mut keep).ok().flatten();
    if problems.has_errors() {
        return Err(problems.into());
    }
    Ok(Some(Settings {
        folder: folder.value.clone(),
        directory: acme.directory.clone(),
        directory_ca,
        contact: acme.contact.clone(),
        external,
        profile: acme.profile.clone(),
    }))
}

fn external_account(file: &Located<PathBuf>, reader: &Account) -> Result<ExternalAccount, Problems> {
    let (place, path) = (&file.origin, &file.value);
    let text = secret_file::read(path, reader).map_err(|refusal| unusable(place, path, &refusal, reader))?;
    ExternalAccount::parse(&text).map_err(|why| {
        let help = "the CA shows both where it offers external account binding";
        Problem::at(place, format!("{}: {why}", path.display()), Some(help.to_owned())).into()
    })
}

/// Where to try what is ordered from Let's Encrypt; other CAs have no such place that is known.
pub(crate) fn staging(handle: &Handle) -> Option<String> {
    let is_ours = handle.status().iter().any(|set| set.directory == LETS_ENCRYPT);
    is_ours.then(|| STAGING.to_owned())
}

const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
const STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// For people: what would be ordered where. None where nothing is.
pub(crate) fn describe(config: &Config) -> Option<String> {
    let sets = sets(config);
    let names: Vec<String> = sets.iter().map(ToString::to_string).collect();
    (!sets.is_empty()).then(|| format!("ordered from {}: {}", config.acme.directory, names.join("; ")))
}
