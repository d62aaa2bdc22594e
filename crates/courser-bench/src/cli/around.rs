//! Arguments of the verbs about what surrounds a measurement: the machine, and the way to the target.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use crate::units::duration;

/// Arguments of `system-check`.
#[derive(Debug, Args)]
pub(crate) struct SystemCheckArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `delay`.
#[derive(Debug, Args)]
pub(crate) struct DelayArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Address to forward connections to
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: SocketAddr,
    /// Round-trip time to add
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) rtt: Duration,
    /// CPU to pin the thread to
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<usize>,
}
