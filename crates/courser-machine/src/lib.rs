//! The machine that a measurement runs on, and what processes, threads and cores use meanwhile. It reads `/proc`, `/sys`,
//! cgroup folders and clocks; it may not reach the network or TLS, and changes nothing but the calling thread's CPU and,
//! in `quota.rs`, control groups of its own.

pub mod machine;
pub mod quota;
pub mod usage;

/// CPUs that this process may use; empty where `/proc` does not say.
pub fn allowed_cpus() -> Vec<usize> {
    usage::Server::from_pid(std::process::id()).ok().and_then(|own| own.cpus()).unwrap_or_default()
}

/// Pins the calling thread, and those that it starts, to one CPU.
///
/// # Errors
/// When it may not use that CPU.
pub fn pin(cpu: usize) -> std::io::Result<()> {
    courser_net::cpu::pin(cpu)
}
