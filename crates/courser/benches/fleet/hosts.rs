//! Hosts of a fleet as a load: the real driver on sockets of 127.0.0.0/8, and sessions made at a steady rate.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use courser_fleet::{Incarnation, MemberName, MemberSettings, UnixMillis};
use courser_net::{DatagramSettings, DatagramSocket, datagram::Interface};
use courser_session::{
    Cache, DEFAULT_SHARDS, FleetKey, FleetKeys, Lifespan, PolicyHash, SecretBytes, SessionId, SharedSession,
    Source, State, UnixSeconds,
};
use courser_sharing::{Fleet, FleetHandle, FleetStatus};

/// About what a TLS 1.2 session without client certificate takes.
const STATE: [u8; 150] = [7; 150];

const LIFETIME: Duration = Duration::from_secs(7200);

/// How long a host may lag behind, and hosts may take to know each other.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of each host's cache.
const CACHE: usize = 64 << 20;

/// What is kept of [`DatagramSocket::open`]'s many settings: where, and for a group through which interface.
pub(crate) fn open(listen: SocketAddr, interface: Option<Interface>) -> io::Result<DatagramSocket> {
    let settings = DatagramSettings { listen, interface, hops: 1, same_machine: true };
    DatagramSocket::open(&settings).map_err(io::Error::other)
}

/// The address of a loopback host, with a free port: 127.0.0.1 is number 0.
pub(crate) fn loopback(number: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + number)), 0)
}

/// Starts a member with the text of the fleet's key. It asks nobody for what was made before it.
pub(crate) fn join(
    name: &str,
    socket: DatagramSocket,
    peers: Vec<SocketAddr>,
    key: &str,
) -> io::Result<FleetHandle> {
    let key = FleetKey::parse(key).map_err(io::Error::other)?;
    let keys = FleetKeys::new(vec![Source::Simple(key)], LIFETIME, now()).map_err(io::Error::other)?;
    let name = MemberName::new(name).map_err(io::Error::other)?;
    let incarnation = Incarnation::new(UnixMillis(now().0 * 1000), random()?);
    let mut settings = MemberSettings::new(name, incarnation, random()?);
    settings.state_transfer = false;
    let cache = Arc::new(Cache::new(CACHE, DEFAULT_SHARDS));
    Fleet { socket, peers, settings, keys: Arc::new(keys), cache, begins: None }
        .start(|name, work| thread::Builder::new().name(name.to_owned()).spawn(work))
}

/// What a member says once it has done all that it was asked before.
pub(crate) fn status(member: &FleetHandle) -> io::Result<FleetStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = member.status() {
            return Ok(status);
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::other("the fleet's thread does not answer"));
        }
        // Its queue is full.
        thread::sleep(Duration::from_millis(1));
    }
}

/// Makes sessions that differ from those of every other maker.
pub(crate) struct Maker {
    policy: PolicyHash,
    lifespan: Lifespan,
    first: [u8; 8],
    made: u64,
}

impl Maker {
    pub(crate) fn new() -> io::Result<Self> {
        let policy = PolicyHash::builder("listener", "host").finish();
        Ok(Self { policy, lifespan: Lifespan::new(now(), LIFETIME), first: random()?, made: 0 })
    }

    pub(crate) fn session(&mut self) -> SharedSession {
        self.made += 1;
        let mut id = [0; 32];
        // An odd factor, so that numbers far apart come one after the other, as those of real IDs.
        id[..8].copy_from_slice(&self.made.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        id[8..16].copy_from_slice(&self.first);
        SharedSession {
            id: SessionId::try_from(&id[..]).expect("32 bytes are an ID"),
            policy: self.policy,
            lifespan: self.lifespan,
            state: State::from(&STATE[..]),
        }
    }
}

/// Calls `make` `rate` times a second, each time when it is due as far as the kernel's timers allow. Returns how often.
pub(crate) fn pace(rate: u32, length: Duration, mut make: impl FnMut()) -> u64 {
    let (start, mut made) = (Instant::now(), 0);
    let interval = Duration::from_secs(1) / rate;
    loop {
        let elapsed = start.elapsed();
        let due = elapsed.min(length).as_micros() * u128::from(rate) / 1_000_000;
        while made < due {
            make();
            made += 1;
        }
        if elapsed >= length {
            return u64::try_from(made).unwrap_or(u64::MAX);
        }
        thread::sleep(interval);
    }
}

pub(crate) fn now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let secret =
        SecretBytes::<N>::random().map_err(|_| io::Error::other("the system gave no random bytes"))?;
    Ok(*secret.as_bytes())
}
