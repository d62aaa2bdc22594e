//! Arguments of the commands that list, start and supervise terminators.

use std::path::PathBuf;

use clap::Args;

use courser_lab::share::ShareChoice;

use crate::units::{Cpus, cpu_list, server_share};

/// Examples of `start`.
pub(super) const START_EXAMPLES: &str = "\
Examples:
  courser-bench start haproxy --key RSA-2048 --versions 1.2
  courser-bench start nginx --alpn h2
  courser-bench start nginx --cpus 1 --server-share 0.5
  courser-bench start hitch --backend 127.0.0.1:8000
  courser-bench start nginx=/opt/nginx/sbin/nginx
  courser-bench start mine.toml";

/// Arguments of `targets`.
#[derive(Debug, Args)]
pub(crate) struct TargetsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the file of a built-in target: how it is set up, and a start for a target file of your own
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub(crate) show: Option<String>,
}

/// Arguments of `start`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Target by name, as `targets` lists them; NAME=PROGRAM for a build of your own; or path of a target file
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Folder for its files [default: a temporary one]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Backend address; may be repeated [default: an origin server that is started with it]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) backend: Vec<std::net::SocketAddr>,
    /// Key types of its certificates: RSA-2048, P-256, P-384, Ed25519
    #[arg(long, value_name = "KINDS", value_delimiter = ',', default_value = "P-256")]
    pub(crate) key: Vec<courser_lab::target::KeyKind>,
    /// TLS versions; `clear` for plain TCP
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',', default_value = "1.2,1.3", value_parser = ["1.0", "1.1", "1.2", "1.3", "clear"])]
    pub(crate) versions: Vec<String>,
    /// Cipher suites [default: those of the program]
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub(crate) suites: Vec<String>,
    /// Key exchange groups [default: those of the program]
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,
    /// Application protocols (ALPN) [default: those of the program]
    #[arg(long, value_name = "PROTOCOLS", value_delimiter = ',', value_parser = ["h2", "http/1.1"])]
    pub(crate) alpn: Vec<String>,
    /// Disable session tickets
    #[arg(long)]
    pub(crate) no_tickets: bool,
    /// Size of its session cache in sessions; 0 disables it
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    pub(crate) session_cache: u32,
    /// Worker threads or processes
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) workers: u32,
    /// Members of a fleet that shares sessions
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) hosts: u32,
    /// CPUs to pin it to: 1 or 2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// Hold it to this share of its workers' cores by a control group: 0.5
    #[arg(long, value_name = "SHARE", default_value = "off", hide_default_value = true, value_parser = server_share)]
    pub(crate) server_share: ShareChoice,
    /// Use the package's defaults instead of the settings that its documentation recommends for load
    #[arg(long)]
    pub(crate) stock: bool,
    /// Keep connections to backends for several requests, where the program understands HTTP and its settings are tuned
    #[arg(long)]
    pub(crate) keep_alive: bool,
    /// Connect to backends with TLS
    #[arg(long)]
    pub(crate) backend_tls: bool,
}

/// Arguments of `supervise`.
#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// Path of the description of what to run (JSON)
    #[arg(value_name = "FILE")]
    pub(crate) spec: PathBuf,
}
