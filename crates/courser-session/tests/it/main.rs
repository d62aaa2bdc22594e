//! The cache and the ticketer as their callers see them.

mod cache;
mod cache_export;
mod cache_model;
mod cache_scan;
mod cache_threads;
mod page;
mod ticket;
mod ticket_format;
mod ticket_roll;

use std::time::Duration;

use courser_session::{Lifespan, PolicyHash, Secret, SessionId, TicketSettings, Ticketer, UnixSeconds};

const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
const HOUR: Duration = Duration::from_secs(3600);

fn policy(host: &str) -> PolicyHash {
    PolicyHash::builder("public", host).part("client-auth", b"none").finish()
}

fn session_id(number: u64) -> SessionId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    SessionId::try_from(&bytes[..]).expect("32 bytes are an ID")
}

fn two_hours(created: UnixSeconds) -> Lifespan {
    Lifespan::new(created, 2 * HOUR)
}

/// Epochs of an hour from time 0, tickets that live for two hours.
fn ticketer(secret: u8) -> Ticketer {
    let settings = TicketSettings::new(HOUR, 2 * HOUR, UnixSeconds(0)).expect("these settings are in range");
    Ticketer::new(&Secret::from_bytes([secret; 32]), settings)
}

/// A small generator, so that a simulation replays from the seed it prints (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
