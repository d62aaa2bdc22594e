//! Whose deletions leave a tombstone. May not prevent a deletion.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use courser_fleet::{Buckets, Rate, source_of};

/// The deletions of each client address (IPv6: network of 64 bits), for the whole process.
///
/// Tombstones displace each other, and a client makes as many as it ends sessions of its own with an alert. A session
/// without one is gone all the same; only a copy that is late, or was missed by a host, could bring it back, and that
/// is its client's own. The lock is for handshakes that ended badly alone.
#[derive(Debug)]
pub struct TombstoneLimiter {
    started: Instant,
    sources: Mutex<Buckets<IpAddr>>,
}

impl Default for TombstoneLimiter {
    fn default() -> Self {
        Self { started: Instant::now(), sources: Mutex::new(Buckets::new(RATE, MAX_SOURCES)) }
    }
}

impl TombstoneLimiter {
    /// Whether a deletion by this client leaves a tombstone.
    pub(crate) fn admit(&self, client: Option<IpAddr>) -> bool {
        let source = source_of(client.unwrap_or(Ipv4Addr::UNSPECIFIED.into()));
        let mono = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).take(source, ONE, mono)
    }
}

/// What a tombstone takes of a rate in whole tokens a second.
const ONE: u32 = 60;
/// A hundred at once and one a minute: 220 in the two hours that a session lives by default, of 29,000 that a cache of
/// 64 MiB holds.
const RATE: Rate = Rate { per_second: 1, burst: 100 * ONE };
/// About as many as there are tombstones for, at the burst of each.
const MAX_SOURCES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_own_few_whatever_others_do() {
        let tombstones = TombstoneLimiter::default();
        let of = |last: u8| (0..300).filter(|_| tombstones.admit(Some([192, 0, 2, last].into()))).count();
        assert_eq!([of(1), of(1), of(2)], [100, 0, 100]);
        assert_eq!((0..300).filter(|_| tombstones.admit(None)).count(), 100);
    }
}
