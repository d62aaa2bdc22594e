//! What a user asks of TLS, in names, and what it means for the connections of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use courser_tls::names as tls_names;
use courser_tls_client::{ClientIdentity, ClientTlsConfig, ClientTlsSpec, Engine, Resume, ServerName, Trust};

use crate::names::Names;
use crate::offered::Check;
use crate::plan::Security;

/// TLS as it was asked for. Empty lists stand for the engine's own.
#[derive(Clone, Debug, Default)]
pub struct ClientTlsOptions {
    /// `lean`, `real` or `openssl`.
    pub engine: EngineChoice,
    /// Versions by name.
    pub versions: Vec<String>,
    /// Suites by name, IANA's or OpenSSL's.
    pub suites: Vec<String>,
    /// Groups by name; the first one gets the key share.
    pub groups: Vec<String>,
    /// Signature schemes by name.
    pub schemes: Vec<String>,
    /// Application protocols.
    pub alpn: Vec<String>,
    /// Whether, and by what, clients come back with their session.
    pub resume: ResumeChoice,
    /// TLS 1.3 tickets that a client keeps.
    pub tickets_kept: usize,
    /// Whether early data is announced.
    pub early_data: bool,
    /// Server names.
    pub server_names: Vec<String>,
    /// Exponent of Zipf's law for the names; in turn without.
    pub zipf: Option<f64>,
    /// File of certificates to trust (PEM).
    pub ca: Option<PathBuf>,
    /// Files of the client's certificate and key (PEM).
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Who does the client's work. See [`Engine`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// As little work as can be.
    #[default]
    Lean,
    /// All the work.
    Real,
    /// OpenSSL.
    Openssl,
}

/// By what sessions are resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResumeChoice {
    /// Not at all.
    Never,
    /// By ticket, or by pre-shared key in TLS 1.3.
    #[default]
    Ticket,
    /// By session ID, in TLS 1.2.
    SessionId,
}

impl ClientTlsOptions {
    /// Reads files and names into what connections need.
    ///
    /// # Errors
    /// The first thing that cannot be had, and what there is instead.
    pub fn security(&self) -> Result<Security, BadChoice> {
        let offer = self.offer()?;
        let check = Check {
            versions: offer.versions.clone(),
            suites: offer.suites.clone(),
            groups: offer.groups.clone(),
            schemes: offer.schemes.clone(),
            may_resume: offer.resume != Resume::Never,
        };
        let engine = match self.engine {
            EngineChoice::Lean => Engine::Lean,
            EngineChoice::Real => Engine::Real,
            EngineChoice::Openssl => Engine::Openssl,
        };
        let terms = ClientTlsConfig::new(engine, &offer).map_err(|why| BadChoice(why.to_string()))?;
        Ok(Security { terms, early_data: self.early_data, names: Arc::new(self.names()?), check })
    }

    fn offer(&self) -> Result<ClientTlsSpec, BadChoice> {
        let versions = codes(&self.versions, "version", tls_names::version_code, tls_names::versions())?;
        Ok(ClientTlsSpec {
            versions: if versions.is_empty() { self.default_versions() } else { versions },
            suites: codes(&self.suites, "cipher suite", tls_names::suite_code, tls_names::suites())?,
            groups: codes(&self.groups, "group", tls_names::group_code, tls_names::groups())?,
            schemes: codes(&self.schemes, "signature scheme", tls_names::scheme_code, tls_names::schemes())?,
            alpn: self.alpn.iter().map(|name| name.clone().into_bytes()).collect(),
            resume: match self.resume {
                ResumeChoice::Never => Resume::Never,
                ResumeChoice::Ticket => Resume::Ticket,
                ResumeChoice::SessionId => Resume::SessionId,
            },
            max_tickets: self.tickets_kept.max(1),
            early_data: self.early_data,
            identity: self.identity()?.map(Arc::new),
            trust: self.trust()?,
        })
    }

    /// Session IDs are TLS 1.2's alone.
    fn default_versions(&self) -> Vec<u16> {
        if self.resume == ResumeChoice::SessionId { vec![0x0303] } else { ClientTlsSpec::default().versions }
    }

    fn identity(&self) -> Result<Option<ClientIdentity>, BadChoice> {
        let Some((chain, key)) = &self.identity else { return Ok(None) };
        let identity = ClientIdentity::from_pem(&read(chain)?, &read(key)?);
        identity
            .map(Some)
            .map_err(|why| BadChoice(format!("the client's certificate: {why}; {}", why.hint())))
    }

    fn trust(&self) -> Result<Trust, BadChoice> {
        let Some(path) = &self.ca else { return Ok(Trust::Any) };
        Trust::from_pem(&read(path)?).map_err(|why| BadChoice(format!("{}: {why}", path.display())))
    }

    fn names(&self) -> Result<Names, BadChoice> {
        let parse = |name: &String| ServerName::parse(name).map_err(|why| BadChoice(why.to_string()));
        let names = self.server_names.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(match self.zipf {
            Some(exponent) => Names::zipf(names, exponent),
            None => Names::in_turn(names),
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, BadChoice> {
    fs::read(path).map_err(|why| BadChoice(format!("{}: the file cannot be read: {why}", path.display())))
}

fn codes(
    names: &[String],
    what: &str,
    code: impl Fn(&str) -> Option<u16>,
    known: impl Iterator<Item = (u16, &'static str)>,
) -> Result<Vec<u16>, BadChoice> {
    let known: Vec<&str> = known.map(|(_, name)| name).collect();
    let find = |name: &String| code(name).ok_or_else(|| unknown(name, what, &known));
    names.iter().map(find).collect()
}

fn unknown(name: &str, what: &str, known: &[&str]) -> BadChoice {
    let distance = |one: &&&str| strsim::damerau_levenshtein(&one.to_lowercase(), &name.to_lowercase());
    let nearest = known.iter().min_by_key(distance).copied().unwrap_or_default();
    BadChoice(format!("{what} {name:?} is not known; the nearest that is: {nearest}"))
}

/// Something that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadChoice(String);

impl fmt::Display for BadChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadChoice {}
