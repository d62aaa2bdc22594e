//! Arguments of the verbs about what surrounds a measurement: the machine, and the way to the target.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use crate::units::duration;

/// Arguments of `tune`.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// Show, and change nothing: there is nothing else that it does
    #[arg(long)]
    #[allow(dead_code, reason = "it says what happens in any case")]
    show: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `relay`.
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Where connections are passed on to
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: SocketAddr,
    /// Round-trip time to put in
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) rtt: Duration,
    /// CPU to stay on
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<usize>,
}
