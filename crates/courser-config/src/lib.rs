//! The configuration of `courser`: TOML and command-line flags in, valid settings out.
//!
//! One table describes every setting; the file, the flags, the reference page and the
//! commented defaults all come from it. Reading has two steps: from text to values with their source spans,
//! and from those to a [`Config`] that cannot be wrong. All problems are found in one run, and each is
//! printed with its place ([`Problems`]).
//!
//! This crate reads the configuration file and nothing else: it opens no certificate and no socket, resolves
//! no name and knows no other crate of the project. The program finds a missing certificate or an
//! address in use later, and reports it the same way with [`Problem::at`].

mod acme;
mod address;
mod admin;
mod affinity;
mod backend_tls;
mod check;
mod client_auth;
mod config;
mod defaults;
mod dns;
mod document;
mod draft;
mod flags;
mod fleet;
mod named;
mod near;
mod pool;
mod prefix;
mod problem;
mod proxy_protocol;
mod read;
mod reference;
mod revocation;
mod route;
mod rule;
mod setting;
mod settings;
mod source;
mod tls;
mod units;
mod validate;
mod value;
mod written;

use std::path::Path;

use clap::{ArgMatches, Command};

pub use address::{BackendAddress, ListenAddress};
pub use config::{
    Acme, AcmeOrder, Admin, Affinity, BackendName, BackendTls, Backends, Balance, CertificateFiles,
    CheckConfig, CheckKind, ClientAuth, Config, Fleet, HostConfig, ListenerConfig, Loaded, Log, OnTruncation,
    PoolConfig, Process, ServerConfig, Sessions, UnknownName, Verify,
};
pub use fleet::{FleetInterface, Network, PeerName};
pub use named::Named;
pub use near::nearest;
pub use prefix::{Family, PrefixLength};
pub use problem::{Problem, Problems, Severity};
pub use proxy_protocol::{AcceptProxy, SendProxy};
pub use read::Located;
pub use reference::{defaults_toml, reference_markdown};
pub use revocation::{CrlDepth, CrlFallback, Revocation};
pub use route::{KeyCondition, RouteAction, RouteConditions, RouteRule, SessionCondition};
pub use source::SourceSpan;
pub use tls::{Group, Profile, Suite, TlsVersion};
pub use written::{Change, Written};

/// Reads a configuration file.
///
/// # Errors
/// Every problem in it, or the reason why it cannot be read.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    let mut problems = Problems::default();
    let draft = flags::read_file(path, &mut problems);
    validate::validate(draft, problems)
}

/// Reads the text of a configuration file; `path` is its name in messages, and relative paths in it start at
/// the folder of `path`.
///
/// # Errors
/// Every problem in it.
pub fn from_toml(text: &str, path: &Path) -> Result<Loaded, Problems> {
    let mut problems = Problems::default();
    let draft = document::read(text, path, &mut problems);
    validate::validate(draft, problems)
}

/// Reads what [`serve_command`] or [`check_command`] matched: flags alone, or the file of `--config` with flags
/// over it. Call it again to reload.
///
/// # Errors
/// Every problem in the file and in the flags.
pub fn from_matches(matches: &ArgMatches) -> Result<Loaded, Problems> {
    let mut problems = Problems::default();
    let draft = flags::read(matches, &mut problems);
    validate::validate(draft, problems)
}

/// Reads a duration as settings have it, `8h`: for commands with flags of their own.
///
/// # Errors
/// The problem, and how to write it.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    units::duration(text).map_err(|wrong| format!("{}; {}", wrong.message, wrong.help))
}

/// The command `serve` with every flag.
pub fn serve_command() -> Command {
    flags::add_to(Command::new("serve").about("Terminate TLS and relay plaintext to backends"))
}

/// The command `check` with the flags of `serve`.
pub fn check_command() -> Command {
    flags::add_to(
        Command::new("check").about("Check the configuration that `serve` would use"),
    )
    .after_help("Examples:\n  courser check --config courser.toml\n  courser check --cert site.pem --backend 10.0.0.3:80")
}

/// Reads any text as a configuration and renders its problems: for fuzzing.
pub fn fuzz(text: &str) {
    match from_toml(text, Path::new("fuzz.toml")) {
        Ok(loaded) => drop(loaded.warnings.render(true)),
        Err(problems) => drop(problems.render(false)),
    }
}
