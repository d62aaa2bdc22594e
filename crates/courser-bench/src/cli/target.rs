//! Flags of the verbs that find, start and keep terminators.

use std::path::PathBuf;

use clap::Args;

use super::Cpus;
use crate::units::cpu_list;

/// Examples of `start`.
pub(super) const START_EXAMPLES: &str = "\
Examples:
  courser-bench start haproxy --key RSA-2048 --versions 1.2
  courser-bench start hitch --backend 127.0.0.1:8000";

/// Arguments of `targets`.
#[derive(Debug, Args)]
pub(crate) struct TargetsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `start`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// A target that `targets` lists, or a file that describes one
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Folder for its files; one that is removed afterwards without
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Where it forwards to, may be repeated; an origin is started without
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) backend: Vec<std::net::SocketAddr>,
    /// Keys of its certificates: RSA-2048, P-256, P-384, Ed25519
    #[arg(long, value_name = "KINDS", value_delimiter = ',', default_value = "P-256")]
    pub(crate) key: Vec<crate::target::KeyKind>,
    /// Versions of TLS; `clear` for none
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',', default_value = "1.2,1.3", value_parser = ["1.0", "1.1", "1.2", "1.3", "clear"])]
    pub(crate) versions: Vec<String>,
    /// Cipher suites, the program's own without
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub(crate) suites: Vec<String>,
    /// Key exchange groups, the program's own without
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,
    /// Neither give nor take session tickets
    #[arg(long)]
    pub(crate) no_tickets: bool,
    /// Sessions that its cache holds; 0 for no cache
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    pub(crate) session_cache: u32,
    /// Workers
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) workers: u32,
    /// Copies that share what it takes to resume each other's sessions
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) hosts: u32,
    /// CPUs to stay on: 1 or 2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// The package's defaults where nothing is asked for, instead of what its documentation recommends for load
    #[arg(long)]
    pub(crate) stock: bool,
    /// The backends speak TLS
    #[arg(long)]
    pub(crate) backend_tls: bool,
}

/// Arguments of `keep`.
#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// What is to be kept, JSON
    #[arg(value_name = "FILE")]
    pub(crate) spec: PathBuf,
}
