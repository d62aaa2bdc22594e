//! What happened, so that a test can see that it tested something.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) steps: u64,
    pub(super) made: u64,
    pub(super) deleted: u64,
    /// Clients that came back, and those that resumed, with or without asking other hosts.
    pub(super) returned: u64,
    pub(super) resumed: u64,
    pub(super) pulled: u64,
    /// Clients with tickets that came back, and those that resumed.
    pub(super) tickets: u64,
    pub(super) tickets_resumed: u64,
    /// Sessions of which it was checked that every host has them a second after they were made.
    pub(super) reached: u64,
    /// Datagrams that were damaged or invented, and recordings that were played.
    pub(super) altered: u64,
    pub(super) replayed: u64,
    pub(super) starts: u64,
    pub(super) rekeyed: u64,
    /// Of everything that was sent, in order.
    digest: DefaultHasher,
}

impl Tally {
    pub(super) fn digest(&mut self, bytes: &[u8]) {
        self.digest.write(bytes);
    }

    /// Differs between two runs that differ.
    pub(super) fn fingerprint(&self) -> u64 {
        self.digest.finish()
    }
}
