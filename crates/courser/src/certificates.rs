//! The certificates that a configuration names: each is read once, all problems are reported in one run.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser_config::{BackendTls, CertificateFiles, Config, HostConfig, Located, Problem, Problems, Verify};
use courser_net::account::Account;
use courser_tls::identity::Validity;
use courser_tls::{BackendName, BackendTlsConfig, BackendTlsSpec, ClientAuth, Identity, Staple, StapleError};

use crate::authorities::Trusted;
use crate::exit::Failure;
use crate::file_error::{FileError, unusable};
use crate::on_every_cpu::on_every_cpu;
use crate::revoked::Revoked;
use crate::validity::{now, out_of_validity};
use crate::{input_file, secret_file};

mod staples;

use staples::Staples;

/// Certificates by the files that they were read from.
pub(crate) struct LoadedCertificates {
    by_files: ByFiles,
    self_signed: Option<Arc<Identity>>,
    staples: Staples,
    trusted: Arc<Trusted>,
    revoked: Arc<Revoked>,
    /// Warnings about them.
    pub(crate) warnings: Problems,
}

#[derive(Clone, Default)]
struct ByFiles(HashMap<Files, Arc<Identity>>);

/// The paths of a chain and of its key.
#[derive(Clone)]
struct Files([Arc<Path>; 2]);

impl ByFiles {
    fn get(&self, files: &CertificateFiles) -> Option<&Arc<Identity>> {
        self.0.get(&Files::of(files))
    }

    /// Puts one in place of what these files had.
    fn insert(&mut self, files: &CertificateFiles, identity: Arc<Identity>) {
        self.0.insert(Files::of(files), identity);
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Identity>> {
        self.0.values()
    }
}

impl Files {
    fn of(files: &CertificateFiles) -> Self {
        Self([&files.chain, &files.key].map(Arc::clone))
    }

    /// As bytes: to compare paths by their components costs ten times as much.
    fn names(&self) -> [&OsStr; 2] {
        self.0.each_ref().map(|path| path.as_os_str())
    }
}

impl PartialEq for Files {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for Files {}

impl Hash for Files {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names().hash(state);
    }
}

/// When it is proven that keys belong to their certificates.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Proof {
    Now,
    /// Of very many, each when a handshake first needs it: clients do not wait for what may never be needed.
    WhenNeeded,
}

/// From so many that are read at once on, they are very many: to prove these takes less than 0.1 s.
const VERY_MANY: usize = 1000;

/// What was loaded before, and the files that have to be read again.
pub(crate) struct Previous<'a> {
    pub(crate) certificates: &'a LoadedCertificates,
    pub(crate) outdated: HashSet<&'a OsStr>,
}

impl Previous<'_> {
    fn is_outdated(&self, files: &CertificateFiles) -> bool {
        let is_outdated = |file: &Path| self.outdated.contains(file.as_os_str());
        !self.outdated.is_empty() && (is_outdated(&files.chain) || is_outdated(&files.key))
    }
}

/// When a certificate ends.
#[derive(Clone, Debug)]
pub(crate) struct CertificateEnd {
    pub(crate) identity: Arc<Identity>,
    /// Of its staple. Boxed: few have one.
    pub(crate) staple: Option<Box<Period>>,
}

impl CertificateEnd {
    /// The first of its names.
    pub(crate) fn name(&self) -> &str {
        self.identity.names.first().map_or("", String::as_str)
    }

    /// Its key, as the PROXY protocol names it.
    pub(crate) fn key(&self) -> &str {
        &self.identity.key_algorithm
    }

    fn rank(&self) -> (i64, &str, &str) {
        (self.identity.not_after, self.name(), self.key())
    }
}

/// From when until when something counts, Unix seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
}

impl Period {
    fn of(staple: &Staple) -> Self {
        Self { not_before: staple.not_before, not_after: staple.not_after }
    }
}

impl LoadedCertificates {
    pub(crate) fn len(&self) -> usize {
        self.by_files.all().count()
    }

    /// The first name, the key and the end of validity (Unix seconds) of each, those that end first in front.
    pub(crate) fn by_end(&self) -> Vec<CertificateEnd> {
        let end = |identity: &Arc<Identity>| CertificateEnd {
            identity: Arc::clone(identity),
            staple: self.staples.served(identity).staple().map(|staple| Box::new(Period::of(staple))),
        };
        let mut all: Vec<CertificateEnd> = self.by_files.all().chain(&self.self_signed).map(end).collect();
        all.sort_by(|one, other| one.rank().cmp(&other.rank()));
        all
    }

    /// The certificates of a host, in configured order, but that one which is not valid now comes behind those that are; the
    /// self-signed one where none is configured anywhere.
    pub(crate) fn of(&self, host: &HostConfig) -> Vec<Arc<Identity>> {
        let configured = host.certificates.iter().filter_map(|files| self.by_files.get(files));
        let configured = configured.map(|identity| self.staples.served(identity));
        let mut all: Vec<_> = configured.chain(&self.self_signed).cloned().collect();
        all.shrink_to_fit();
        let now = now();
        all.sort_by_key(|identity| identity.validity(now) != Validity::Valid);
        all
    }

    /// Files of staples that are not sent, and why.
    pub(crate) fn refused_staples(&self) -> &[(PathBuf, StapleError)] {
        &self.staples.refused
    }

    /// TLS with the servers of a pool.
    pub(crate) fn backend_tls(
        &self,
        tls: Option<&Located<BackendTls>>,
    ) -> Result<Option<Arc<BackendTlsConfig>>, Failure> {
        let Some(Located { value: tls, .. }) = tls else { return Ok(None) };
        let spec = BackendTlsSpec {
            verify: self.trusted.verify(tls),
            name: match &tls.server_name {
                courser_config::BackendName::Own => BackendName::Own,
                courser_config::BackendName::FromClient => BackendName::Client,
                courser_config::BackendName::Fixed(name) => BackendName::Fixed(name.clone()),
            },
            identity: tls.cert.as_ref().and_then(|files| self.by_files.get(files)).cloned(),
            revocation: tls.crl.as_ref().map(|lists| self.revoked.of(lists)),
        };
        let compiled = BackendTlsConfig::new(spec).map(|compiled| Some(Arc::new(compiled)));
        compiled.map_err(|error| Failure::runtime("cannot set TLS with backends up", error))
    }

    pub(crate) fn client_auth(&self, host: &HostConfig) -> Result<ClientAuth, Failure> {
        let revocation = host.client_crl.as_ref().map(|lists| self.revoked.of(&lists.value));
        self.trusted.client_auth(host, revocation)
    }
}

/// Reads every certificate that `config` names, those of the authorities of clients too. Those of `previous` whose files have
/// not changed are kept, and not in memory twice.
pub(crate) fn load(
    config: &Config,
    reader: &Account,
    previous: Option<&Previous<'_>>,
    proof: Proof,
) -> Result<LoadedCertificates, Failure> {
    let (mut by_files, mut problems) = (ByFiles::default(), Problems::default());
    let mut missing = Vec::new();
    for files in named(config) {
        let known = previous.filter(|previous| !previous.is_outdated(files));
        match known.and_then(|previous| previous.certificates.by_files.get(files)) {
            Some(identity) if by_files.get(files).is_none() => by_files.insert(files, Arc::clone(identity)),
            Some(_) => {}
            None => missing.push(files),
        }
    }
    read_into(&mut by_files, &missing, reader, proof, &mut problems);
    let trusted = Trusted::load(config, reader, &mut problems);
    let revoked = Revoked::load(config, &trusted, reader, &mut problems);
    finish(config, by_files, (Arc::new(trusted), Arc::new(revoked)), (reader, previous), problems)
}

/// As [`load`], where nothing has changed but files of certificates: what else there is stays as it is.
pub(crate) fn renew(
    config: &Config,
    reader: &Account,
    previous: &Previous<'_>,
) -> Result<LoadedCertificates, Failure> {
    let Previous { certificates, outdated } = previous;
    let (mut by_files, mut problems) = (certificates.by_files.clone(), Problems::default());
    if !outdated.is_empty() {
        let changed: Vec<_> = named(config).filter(|files| previous.is_outdated(files)).collect();
        read_into(&mut by_files, &changed, reader, Proof::WhenNeeded, &mut problems);
    }
    let (trusted, revoked) = (Arc::clone(&certificates.trusted), Arc::clone(&certificates.revoked));
    finish(config, by_files, (trusted, revoked), (reader, Some(previous)), problems)
}

/// Warnings and errors about what was read, and the certificate of a program that has none.
fn finish(
    config: &Config,
    by_files: ByFiles,
    (trusted, revoked): (Arc<Trusted>, Arc<Revoked>),
    (reader, previous): (&Account, Option<&Previous<'_>>),
    mut problems: Problems,
) -> Result<LoadedCertificates, Failure> {
    // To look for their places costs more than to look whether there is one.
    let (strict, now) = (config.process.strict, now());
    if by_files.all().any(|identity| identity.validity(now) != Validity::Valid) {
        let invalid = |files| validity_problem(files, by_files.get(files)?, strict);
        problems.extend(distinct(named(config)).into_iter().filter_map(invalid));
    }
    let staples = Staples::load(config, &by_files, reader, previous, &mut problems);
    if by_files.all().any(|identity| identity.must_staple) {
        let of_hosts = distinct(config.hosts().flat_map(|host| &host.certificates));
        let unmet = |files| demanded_staple(files, staples.served(by_files.get(files)?), now);
        problems.extend(of_hosts.into_iter().filter_map(unmet));
    }
    let has_certificates = config.hosts().any(|host| !host.certificates.is_empty());
    let makes_its_own = !has_certificates && config.listeners.iter().any(|listener| listener.terminates());
    if makes_its_own {
        problems.push(self_signed_warning());
    }
    problems
        .extend(distinct(named(config)).into_iter().filter(|files| is_awaited(files)).map(stand_in_warning));
    problems.extend(config.backend_tls().into_iter().filter_map(unverified));
    if problems.has_errors() {
        return Err(problems.into());
    }
    let kept = previous.and_then(|previous| previous.certificates.self_signed.as_ref());
    let self_signed = if makes_its_own { Some(self_signed(config, kept)?) } else { None };
    Ok(LoadedCertificates { by_files, self_signed, staples, trusted, revoked, warnings: problems })
}

fn named(config: &Config) -> impl Iterator<Item = &CertificateFiles> {
    let of_hosts = config.hosts().flat_map(|host| &host.certificates);
    of_hosts.chain(config.backend_tls().into_iter().filter_map(|tls| tls.value.cert.as_ref()))
}

fn distinct<'a>(files: impl IntoIterator<Item = &'a CertificateFiles>) -> Vec<&'a CertificateFiles> {
    let mut seen = HashSet::new();
    let is_new = |files: &&'a CertificateFiles| seen.insert((files.chain.as_os_str(), files.key.as_os_str()));
    files.into_iter().filter(is_new).collect()
}

fn read_into(
    by_files: &mut ByFiles,
    files: &[&CertificateFiles],
    reader: &Account,
    proof: Proof,
    problems: &mut Problems,
) {
    let files = distinct(files.iter().copied());
    let proof = if files.len() < VERY_MANY { Proof::Now } else { proof };
    for (files, result) in files.iter().zip(read_all(&files, reader, proof)) {
        match result {
            Ok(identity) => by_files.insert(files, Arc::new(identity)),
            Err(wrong) => problems.extend(wrong),
        }
    }
}

/// Reads on every CPU: there may be a hundred thousand.
fn read_all(files: &[&CertificateFiles], reader: &Account, proof: Proof) -> Vec<Result<Identity, Problems>> {
    on_every_cpu(files, |files| read(files, reader, proof))
}

/// Reads a chain and its key, and proves that they belong together. Where both stand in one file, it is looked at as a
/// key's is.
fn read(files: &CertificateFiles, reader: &Account, proof: Proof) -> Result<Identity, Problems> {
    if is_awaited(files) {
        let made = courser_tls::self_signed(&files.ordered_for);
        return made.map_err(|error| Problem::at(&files.origin, error.to_string(), None).into());
    }
    let refused = |path: &Path, refusal: &FileError| unusable(&files.origin, path, refusal, reader);
    let key = || secret_file::read_bytes(&files.key, reader).map_err(|refusal| refused(&files.key, &refusal));
    let parse = match proof {
        Proof::Now => Identity::from_pem,
        Proof::WhenNeeded => Identity::from_pem_at_rest,
    };
    let identity = if files.chain == files.key {
        let both = key()?;
        parse(&both, &both)
    } else {
        let chain = input_file::read(&files.chain).map_err(|refusal| refused(&files.chain, &refusal))?;
        parse(&chain, &key()?)
    };
    identity.map_err(|error| {
        let path: &Path = if error.concerns_key() { &files.key } else { &files.chain };
        Problem::at(&files.origin, format!("{}: {error}", path.display()), Some(error.hint().into())).into()
    })
}

/// Whether it is ordered and has not come yet.
fn is_awaited(files: &CertificateFiles) -> bool {
    !files.ordered_for.is_empty() && !files.chain.exists()
}

/// The program is ready all the same: the CA's own connection may come through a balancer that asks.
fn stand_in_warning(files: &CertificateFiles) -> Problem {
    let names = files.ordered_for.join(", ");
    let message =
        format!("no certificate for {names} yet: serving a self-signed one, which clients do not trust");
    let help = "`courser acme status` says how its order stands";
    Problem::at(&files.origin, message, Some(help.into())).as_warning()
}

fn validity_problem(files: &CertificateFiles, identity: &Identity, strict: bool) -> Option<Problem> {
    let what = out_of_validity(identity.validity(now()))?;
    let message = format!("{}: the certificate {what}", files.chain.display());
    let help = if strict {
        "remove --strict to serve it with a warning"
    } else {
        "it is served anyway; --strict refuses it"
    };
    let problem = Problem::at(&files.origin, message, Some(help.into()));
    Some(if strict { problem } else { problem.as_warning() })
}

/// A warning where clients expect a staple that is not sent.
fn demanded_staple(files: &CertificateFiles, identity: &Identity, now: i64) -> Option<Problem> {
    let is_sent = identity.staple().is_some_and(|staple| staple.validity(now) == Validity::Valid);
    if is_sent || !identity.must_staple {
        return None;
    }
    let path = files.chain.display();
    let message = format!("{path}: the certificate demands a staple (must-staple), and none is sent");
    let help = match files.ordered_for.is_empty() {
        true => {
            "name one as `staple`, or order a certificate without the demand: clients that know it refuse this one"
        }
        false => {
            "choose another `acme.profile`, without the demand: clients that know it refuse this certificate"
        }
    };
    Some(Problem::at(&files.origin, message, Some(help.into())).as_warning())
}

/// Said at every start, not only where the file is written.
fn unverified(tls: &Located<BackendTls>) -> Option<Problem> {
    let message = "BACKENDS ARE NOT VERIFIED: whoever answers at their address gets the plaintext";
    let help =
        "verify by an authority or by a key: `verify = [\"ca.pem\"]`, `verify = { pin = \"sha256/…\" }`";
    (tls.value.verify == Verify::Off)
        .then(|| Problem::at(&tls.origin, message, Some(help.into())).as_warning())
}

/// The one that is there is kept while it is for the same names: clients may have been told to trust it.
fn self_signed(config: &Config, kept: Option<&Arc<Identity>>) -> Result<Arc<Identity>, Failure> {
    let mut names: Vec<String> = config.hosts().flat_map(|host| host.names.clone()).collect();
    names.push("localhost".into());
    if let Some(kept) = kept.filter(|kept| kept.names == names) {
        return Ok(Arc::clone(kept));
    }
    let made = courser_tls::self_signed(&names);
    made.map(Arc::new).map_err(|error| Failure::runtime("cannot make a self-signed certificate", error))
}

fn self_signed_warning() -> Problem {
    let message = "no certificate configured: serving a self-signed one, which clients do not trust";
    Problem::nowhere(message).as_warning()
}
