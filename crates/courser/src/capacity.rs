//! How many connections the process may have: as configured, or as many as descriptors and memory allow.

use courser_config::Config;
use courser_net::limits;

/// Descriptors that belong to no connection and no worker: standard streams, the control socket and its clients, the
/// fleet's sockets, a file being read.
const OF_PROCESS: u64 = 64;

/// Descriptors of a worker besides its listening sockets: its event queue and what wakes it, its session store.
const OF_WORKER: u64 = 8;

/// A relayed connection has one to the client and one to the backend.
const OF_CONNECTION: u64 = 2;

/// Memory for a connection, the kernel's included: 7 to 10 KiB while it is idle, over 100 KiB while both directions are
/// full; most are idle.
const MEMORY: u64 = 64 * 1024;

/// The share of memory that connections may take: sessions, certificates and whatever else runs need the rest.
const SHARE: u64 = 2;

/// Connections at most. Raises the limit of descriptors as far as it can be.
pub(crate) fn max_connections(config: &Config, workers: usize) -> usize {
    let descriptors = limits::raise_descriptors();
    let possible = possible(descriptors, limits::memory(), workers as u64, addresses(config));
    config.process.max_connections.unwrap_or(usize::try_from(possible).unwrap_or(usize::MAX))
}

fn addresses(config: &Config) -> u64 {
    config.listeners.iter().map(|listener| listener.listen.len() as u64).sum()
}

fn possible(descriptors: u64, memory: Option<u64>, workers: u64, addresses: u64) -> u64 {
    let others = OF_PROCESS + workers * (OF_WORKER + addresses);
    let by_descriptors = descriptors.saturating_sub(others) / OF_CONNECTION;
    let by_memory = memory.map_or(u64::MAX, |bytes| bytes / SHARE / MEMORY);
    by_descriptors.min(by_memory).max(1)
}

#[cfg(test)]
mod tests {
    use super::possible;

    #[test]
    fn the_scarcer_of_descriptors_and_memory_counts() {
        let gib = |gib: u64| Some(gib << 30);
        assert_eq!(possible(20_000, gib(24), 2, 1), (20_000 - 64 - 18) / 2);
        assert_eq!(possible(1_000_000, gib(1), 2, 1), 8_192);
        assert_eq!(possible(1_000_000, None, 2, 1), 499_959);
        // Many workers with many addresses each.
        assert_eq!(possible(20_000, gib(24), 128, 10), (20_000 - 64 - 2_304) / 2);
        assert_eq!(possible(10, gib(24), 2, 1), 1);
    }
}
