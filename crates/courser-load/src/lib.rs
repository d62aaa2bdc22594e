//! The load engine: clients that open connections on a schedule fixed in advance, and account for each; and the
//! origin, a backend with objects of any size. It knows no file format and prints nothing.

pub mod delay;
pub mod http;
pub mod origin;
pub mod responder;

pub mod inspect;

pub mod plan;
pub mod schedule;
pub mod tls_options;

pub mod run;
mod worker;

mod account;
mod channel;
mod connection;
mod exchange;

pub mod failure;
pub mod names;
pub mod offered;
pub mod tally;

pub mod machine;
pub mod overheads;
pub mod primitives;
pub mod usage;

mod clock;

/// CPUs that this process may use.
pub fn allowed_cpus() -> Vec<usize> {
    usage::Server::from_pid(std::process::id()).ok().and_then(|own| own.cpus()).unwrap_or_default()
}

/// Keeps the calling thread, and those that it starts, on one CPU.
///
/// # Errors
/// When it may not use that CPU.
pub fn pin(cpu: usize) -> std::io::Result<()> {
    courser_net::cpu::pin(cpu)
}
