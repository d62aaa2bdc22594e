//! What has been read but not yet checked as a whole: the same shape as the configuration, with places.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::address::{BackendAddress, ListenAddress, file_path};
use crate::config::{
    Acme, Admin, Affinity, BackendTls, Balance, CertificateFiles, CheckConfig, ClientAuth, Fleet,
    OnTruncation, Process, ServerConfig, Sessions, UnknownName,
};
use crate::problem::{Problem, Problems};
use crate::proxy_protocol::{AcceptProxy, SendProxy};
use crate::read::{self, Located, wrong_kind};
use crate::revocation::Revocation;
use crate::route::RouteConditions;
use crate::source::SourceSpan;
use crate::tls::{Group, Profile, Suite, TlsVersion};
use crate::value::{Literal, Table, Value};
use crate::written::Written;

pub(crate) struct Draft {
    pub(crate) written: Written,
    pub(crate) process: Process,
    pub(crate) sessions: Sessions,
    pub(crate) fleet: Fleet,
    pub(crate) admin: Admin,
    pub(crate) acme: Acme,
    pub(crate) pools: Vec<PoolDraft>,
    pub(crate) listeners: Vec<ListenerDraft>,
}

pub(crate) struct PoolDraft {
    pub(crate) name: Located<String>,
    pub(crate) servers: Vec<ServerConfig>,
    pub(crate) balance: Balance,
    pub(crate) affinity: Option<Located<Affinity>>,
    pub(crate) queue_timeout: Duration,
    pub(crate) checks: Vec<Located<CheckConfig>>,
    pub(crate) tls: Option<Located<BackendTls>>,
    /// Something in it could not be read: what is missing may only have been misspelt.
    pub(crate) incomplete: bool,
}

/// Its `Default` is blank, for the tables to fill in.
#[derive(Default)]
pub(crate) struct ListenerDraft {
    /// `None`: it was made of flags.
    pub(crate) origin: Option<SourceSpan>,
    pub(crate) name: Option<Located<String>>,
    pub(crate) listen: Vec<Located<ListenAddress>>,
    pub(crate) backlog: u32,
    pub(crate) unknown_name: UnknownName,
    pub(crate) handshake_timeout: Duration,
    pub(crate) accept_proxy: Option<Located<AcceptProxy>>,
    pub(crate) routes: Vec<RuleDraft>,
    pub(crate) own: HostDraft,
    pub(crate) hosts: Vec<HostDraft>,
    /// Something in it could not be read: what is missing may only have been misspelt.
    pub(crate) incomplete: bool,
}

/// A rule as it was read.
#[derive(Debug, Clone)]
pub(crate) struct RuleDraft {
    pub(crate) origin: SourceSpan,
    /// `None`: it is for every client.
    pub(crate) when: Option<RouteConditions>,
    pub(crate) action: ActionDraft,
    pub(crate) send_proxy: Option<SendProxy>,
}

#[derive(Debug, Clone)]
pub(crate) enum ActionDraft {
    Relay(Located<String>),
    Terminate(Located<String>),
    Refuse,
}

/// Its `Default` is blank, for the tables to fill in.
#[derive(Clone, Default)]
pub(crate) struct HostDraft {
    pub(crate) origin: Option<SourceSpan>,
    pub(crate) name: Option<Located<String>>,
    pub(crate) names: Vec<Located<String>>,
    pub(crate) certificates: Vec<CertificateFiles>,
    /// Where it was written that they are ordered.
    pub(crate) acme: Option<SourceSpan>,
    /// Whether `certificates` are its own, not its listener's.
    pub(crate) own_certificates: bool,
    /// Of `certificates`.
    pub(crate) staples: Vec<Located<PathBuf>>,
    pub(crate) client_auth: Option<Located<ClientAuth>>,
    pub(crate) client_ca: Vec<Located<PathBuf>>,
    pub(crate) client_crl: Option<Located<Revocation>>,
    pub(crate) backends: Vec<BackendAddress>,
    /// Instead of `backends`.
    pub(crate) pool: Option<Located<String>>,
    /// TLS with `backends`.
    pub(crate) backend_tls: Option<Located<BackendTls>>,
    pub(crate) send_proxy: SendProxy,
    pub(crate) profile: Profile,
    pub(crate) versions: Option<Located<Vec<TlsVersion>>>,
    pub(crate) suites: Option<Located<Vec<Suite>>>,
    pub(crate) groups: Option<Located<Vec<Group>>>,
    pub(crate) alpn: Vec<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) client_fin_timeout: Duration,
    pub(crate) backend_fin_timeout: Duration,
    pub(crate) max_connection_age: Option<Duration>,
    pub(crate) tcp_keepalive: Duration,
    pub(crate) tcp_user_timeout: Option<Duration>,
    pub(crate) on_truncation: OnTruncation,
}

impl HostDraft {
    /// Whether there is, or will be, a certificate.
    pub(crate) fn has_certificate(&self) -> bool {
        !self.certificates.is_empty() || self.acme.is_some()
    }

    /// Whether plaintext has somewhere to go.
    pub(crate) fn has_backend(&self) -> bool {
        self.pool.is_some() || !self.backends.is_empty()
    }

    /// A host of the listener that these are the settings of. Staples are of certificates: a host with its own has none of
    /// the listener's.
    pub(crate) fn inherit(&self, origin: SourceSpan, own_certificates: bool) -> Self {
        let mut host = Self { origin: Some(origin), own_certificates, ..self.clone() };
        if own_certificates {
            host.staples.clear();
        }
        host
    }
}

/// Reads the name of a listener, host or pool: what fits in a log line, a metric and a URL's query.
pub(crate) fn name(value: &Value) -> Result<String, Problems> {
    const LONGEST: usize = 64;
    let text = read::text(value, "a name")?;
    if (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    let help = format!("1 to {LONGEST} printable ASCII characters, no space");
    Err(Problem::at(&value.origin, format!("`{text}` cannot be a name"), Some(help)).into())
}

/// Reads an ALPN protocol (RFC 7301, section 3.1).
pub(crate) fn protocol(value: &Value) -> Result<String, Problems> {
    let text = read::text(value, "a protocol")?;
    if (1..=255).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    let message = format!("an ALPN protocol has 1 to 255 bytes, this one {}", text.len());
    Err(Problem::at(&value.origin, message, None).into())
}

/// Reads certificates: files, and `{ acme = true }` for those that are ordered.
pub(crate) fn certificates(value: &Value, host: &mut HostDraft) -> Result<(), Problems> {
    let mut acme = None;
    let read = |item: &Value| {
        if is_ordered(item)? {
            acme.get_or_insert_with(|| item.origin.clone());
            return Ok(None);
        }
        certificate(item).map(Some)
    };
    let files = read::some(value, read)?;
    let mut files: Vec<_> = files.into_iter().flatten().collect();
    // It has grown: of a hundred thousand certificates a quarter is empty places.
    files.shrink_to_fit();
    (host.certificates, host.acme) = (files, acme);
    Ok(())
}

/// Whether an entry of `cert` is `{ acme = true }`.
fn is_ordered(value: &Value) -> Result<bool, Problems> {
    let Literal::Table(table) = &value.literal else { return Ok(false) };
    let Some(acme) = table.get("acme") else { return Ok(false) };
    if let Some(other) = table.entries.iter().find(|entry| entry.key != "acme") {
        let message =
            format!("`{}` beside `acme`: the files of an ordered certificate are courser's", other.key);
        let help = "write `{ acme = true }`; `courser acme status` shows what is ordered";
        return Err(Problem::at(&other.key_origin, message, None).help(help).into());
    }
    if read::boolean(acme)? {
        return Ok(true);
    }
    let help = "leave it out, and name the certificate's files";
    Err(Problem::at(&acme.origin, "`acme = false` is no certificate", None).help(help).into())
}

/// Reads one certificate: a file, or a table of two.
pub(crate) fn certificate(value: &Value) -> Result<CertificateFiles, Problems> {
    match &value.literal {
        Literal::Text(text) => {
            let file: Arc<Path> = file_path(value, text)?.into();
            Ok(CertificateFiles {
                chain: Arc::clone(&file),
                key: file,
                origin: value.origin.clone(),
                ordered_for: Vec::new(),
            })
        }
        Literal::Table(table) => chain_and_key(value, table),
        _ => Err(wrong_kind(value, "a file name or `{ chain = \"…\", key = \"…\" }`")),
    }
}

fn chain_and_key(value: &Value, table: &Table) -> Result<CertificateFiles, Problems> {
    table.refuse_others(&["chain", "key"])?;
    let file = |key: &str| match table.get(key) {
        Some(file) => file_path(file, read::text(file, "a file name")?).map(Arc::from),
        None => {
            let help = "where both stand in one file, write its name alone";
            let message = format!("the certificate has no `{key}`");
            Err(Problem::at(&value.origin, message, None).help(help).into())
        }
    };
    let (chain, key) = (file("chain")?, file("key")?);
    Ok(CertificateFiles { chain, key, origin: value.origin.clone(), ordered_for: Vec::new() })
}
