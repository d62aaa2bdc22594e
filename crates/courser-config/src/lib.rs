//! What `courser` is told to do: TOML and command-line flags in, valid settings out.
//!
//! One table describes every setting; the file, the flags, the reference page and the
//! commented defaults all come from it. Reading goes in two steps: text to values that know where they were
//! written, and those to a [`Config`] that cannot be wrong. All problems are found in one run, and each is
//! shown with its place ([`Problems`]).
//!
//! This crate reads the configuration file and nothing else: it opens no certificate and no socket, resolves
//! no name and knows no other crate of the project. What only the world can tell (a missing certificate, an
//! address in use) the program finds later, and reports the same way with [`Problem::at`].

mod address;
mod config;
mod named;
mod problem;
mod source;
mod tls;

use std::path::Path;

use clap::{ArgMatches, Command};

pub use address::{BackendAddress, ListenAddress};
pub use config::{
    CertificateFiles, Config, Host, Listener, Log, OnTruncation, Process, SendProxy, Sessions, UnknownName,
};
pub use named::Named;
pub use problem::{Problem, Problems, Severity};
pub use source::Origin;
pub use tls::{Group, Profile, Suite, TlsVersion};

/// A valid configuration, and what is odd about it all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What to do.
    pub config: Config,
    /// Warnings only.
    pub warnings: Problems,
}

/// Reads a configuration file.
///
/// # Errors
/// Every problem in it, or that it cannot be read.
pub fn load(_path: &Path) -> Result<Loaded, Problems> {
    Err(Problem::nowhere("not yet").into())
}

/// Reads the text of a configuration file; `path` is its name in messages, and relative paths in it start at
/// the folder of `path`.
///
/// # Errors
/// Every problem in it.
pub fn from_toml(_text: &str, _path: &Path) -> Result<Loaded, Problems> {
    Err(Problem::nowhere("not yet").into())
}

/// Reads what [`serve_command`] or [`check_command`] matched: flags alone, or the file of `--config` with flags
/// over it. Call it again to reload.
///
/// # Errors
/// Every problem in the file and in the flags.
pub fn from_matches(_matches: &ArgMatches) -> Result<Loaded, Problems> {
    Err(Problem::nowhere("not yet").into())
}

/// The command `serve` with every flag.
pub fn serve_command() -> Command {
    Command::new("serve")
}

/// The command `check` with the flags of `serve`.
pub fn check_command() -> Command {
    Command::new("check")
}

/// A complete configuration file with every setting at its default, commented.
pub fn defaults_toml() -> String {
    String::new()
}

/// The reference page of all settings, in Markdown.
pub fn reference_markdown() -> String {
    String::new()
}
