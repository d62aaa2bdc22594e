//! Sessions, keys and random numbers as tests need them, here and in the crates that build on this one.

use std::sync::Arc;
use std::time::Duration;

use courser_session::{FleetKey, FleetKeys, Lifespan, PolicyHash, SessionId, Source, Ticketer, UnixSeconds};

pub(crate) const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn policy(host: &str) -> PolicyHash {
    PolicyHash::builder("public", host).part("client-auth", b"none").finish()
}

pub(crate) fn session_id(number: u64) -> SessionId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    SessionId::try_from(&bytes[..]).expect("32 bytes are an ID")
}

pub(crate) fn two_hours(created: UnixSeconds) -> Lifespan {
    Lifespan::new(created, 2 * HOUR)
}

/// A fleet's key of known bytes.
pub(crate) fn fleet_key(secret: u8, epoch_seconds: u64, origin: UnixSeconds) -> FleetKey {
    let secret = format!("{secret:02x}");
    let lines = [
        "format = courser-fleet-key-1".to_owned(),
        format!("fleet = {}", secret.repeat(8)),
        format!("epoch-seconds = {epoch_seconds}"),
        format!("origin = {}", origin.0),
        format!("secret = {}", secret.repeat(32)),
    ];
    FleetKey::parse(&lines.join("\n")).expect("this is what a key file says")
}

/// Epochs of an hour, 1000 of which are over.
pub(crate) fn hourly(secret: u8) -> FleetKey {
    fleet_key(secret, 3600, UnixSeconds(NOW.0 - 1000 * 3600))
}

pub(crate) fn simple(key: FleetKey, lifetime: Duration, now: UnixSeconds) -> FleetKeys {
    FleetKeys::new(vec![Source::Simple(key)], lifetime, now).expect("key and clock fit")
}

/// Epochs of an hour, tickets that live for two hours.
pub(crate) fn ticketer(secret: u8) -> Ticketer {
    Ticketer::new(Arc::new(simple(hourly(secret), 2 * HOUR, NOW)))
}

/// A small generator, so that a simulation replays from the seed it prints (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
