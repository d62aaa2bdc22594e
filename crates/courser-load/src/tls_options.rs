//! What a user asks of TLS, in names, and what it means for the connections of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use courser_tls::names as tls_names;
use courser_tls_client::{ClientIdentity, ClientTlsConfig, ClientTlsSpec, Engine, Resume, ServerName, Trust};

use crate::channel::HTTP2;
use crate::names::Names;
use crate::offered::Check;
use crate::plan::Security;

/// Reads a file; the engine itself has no access to any.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// What a user asks of TLS. Empty lists stand for the engine's own.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Server names; empty: those of the file, or the host of the URL.
    pub server_names: Vec<String>,
    /// File of server names, one per line.
    pub server_names_file: Option<PathBuf>,
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

impl std::str::FromStr for EngineChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = [Self::Lean, Self::Real, Self::Openssl].into_iter();
        let mut known = known.filter(|engine| engine.name() == name);
        known.next().ok_or_else(|| format!("an engine is `lean`, `real` or `openssl`, not {name:?}"))
    }
}

impl EngineChoice {
    /// Its name in flags and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lean => "lean",
            Self::Real => "real",
            Self::Openssl => "openssl",
        }
    }
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
    /// What connections to `host` need. Files are read by `read`.
    ///
    /// # Errors
    /// The first thing that is not available, and what there is instead.
    pub(crate) fn security(&self, host: &str, read: ReadFile<'_>) -> Result<Security, BadChoice> {
        let offer = self.offer(read)?;
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
        Ok(Security {
            terms,
            early_data: self.early_data,
            requires_http2: self.offers_http2() && !self.alpn.iter().any(|name| name.starts_with("http/")),
            names: Arc::new(self.names(host, read)?),
            check,
        })
    }

    /// Whether HTTP/2 is among the application protocols.
    pub(crate) fn offers_http2(&self) -> bool {
        self.alpn.iter().any(|name| name.as_bytes() == HTTP2)
    }

    fn offer(&self, read: ReadFile<'_>) -> Result<ClientTlsSpec, BadChoice> {
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
            identity: self.identity(read)?.map(Arc::new),
            trust: self.trust(read)?,
        })
    }

    /// Session IDs are TLS 1.2's alone.
    fn default_versions(&self) -> Vec<u16> {
        if self.resume == ResumeChoice::SessionId { vec![0x0303] } else { ClientTlsSpec::default().versions }
    }

    fn identity(&self, read: ReadFile<'_>) -> Result<Option<ClientIdentity>, BadChoice> {
        let Some((chain, key)) = &self.identity else { return Ok(None) };
        let identity = ClientIdentity::from_pem(&contents(chain, read)?, &contents(key, read)?);
        identity
            .map(Some)
            .map_err(|why| BadChoice(format!("the client's certificate: {why}; {}", why.hint())))
    }

    fn trust(&self, read: ReadFile<'_>) -> Result<Trust, BadChoice> {
        let Some(path) = &self.ca else { return Ok(Trust::Any) };
        Trust::from_pem(&contents(path, read)?).map_err(|why| BadChoice(format!("{}: {why}", path.display())))
    }

    fn name_list(&self, host: &str, read: ReadFile<'_>) -> Result<Vec<String>, BadChoice> {
        let Some(path) = &self.server_names_file else {
            let names = &self.server_names;
            return Ok(if names.is_empty() { vec![host.to_owned()] } else { names.clone() });
        };
        let text = String::from_utf8_lossy(&contents(path, read)?).into_owned();
        let names: Vec<String> =
            text.lines().map(str::trim).filter(|name| !name.is_empty()).map(Into::into).collect();
        if names.is_empty() {
            return Err(BadChoice(format!("{}: no name in it", path.display())));
        }
        Ok(names)
    }

    fn names(&self, host: &str, read: ReadFile<'_>) -> Result<Names, BadChoice> {
        let parse = |name: &String| ServerName::parse(name).map_err(|why| BadChoice(why.to_string()));
        let names = self.name_list(host, read)?.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(match self.zipf {
            Some(exponent) => Names::zipf(names, exponent),
            None => Names::in_turn(names),
        })
    }
}

fn contents(path: &Path, read: ReadFile<'_>) -> Result<Vec<u8>, BadChoice> {
    read(path).map_err(|why| BadChoice(format!("{}: the file cannot be read: {why}", path.display())))
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

/// Something that is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadChoice(pub(crate) String);

impl fmt::Display for BadChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadChoice {}
