//! A member of a fleet on loopback, for tests here and of courser-sharing.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use courser_net::{DatagramSettings, DatagramSocket};
use courser_session::{Cache, EpochLength, FleetKey, FleetKeys, PolicyHash, Source, UnixSeconds};
use courser_sharing::{Fleet, FleetHandle, Incarnation, MemberName, MemberSettings, UnixMillis};

/// How long sessions live here.
pub(crate) const LIFETIME: Duration = Duration::from_secs(3600);

/// Longer than anything here takes; who waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `value` gives something.
pub(crate) fn wait_for<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "still waiting for {what}");
        thread::yield_now();
    }
}

/// A free place for a member: its port stays taken until the member itself takes it.
pub(crate) fn place() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A member's thread.
pub(crate) fn member(name: &str, own: UdpSocket, peers: &[SocketAddr], cache: Arc<Cache>) -> FleetHandle {
    let listen = own.local_addr().unwrap();
    drop(own);
    let settings = DatagramSettings { listen, interface: None, hops: 1, same_machine: true };
    let incarnation = Incarnation::new(UnixMillis(now().0 * 1000), *b"8 random");
    let mut settings_of_member = MemberSettings::new(MemberName::new(name).unwrap(), incarnation, [9; 32]);
    settings_of_member.state_transfer = false;
    let fleet = Fleet {
        socket: DatagramSocket::open(&settings).unwrap(),
        peers: peers.to_vec(),
        settings: settings_of_member,
        keys: keys(),
        cache,
        begins: None,
    };
    fleet.start(|name, work| thread::Builder::new().name(name.to_owned()).spawn(work)).unwrap()
}

/// The keys of a fleet whose hosts all have one key file.
pub(crate) fn keys() -> Arc<FleetKeys> {
    static FILE: OnceLock<String> = OnceLock::new();
    let make = || FleetKey::generate(EpochLength::DEFAULT, now()).unwrap().to_text().to_string();
    let key = FleetKey::parse(FILE.get_or_init(make)).unwrap();
    Arc::new(FleetKeys::new(vec![Source::Simple(key)], LIFETIME, now()).unwrap())
}

pub(crate) fn now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs())
}

pub(crate) fn policy() -> PolicyHash {
    PolicyHash::builder("public", "default").finish()
}
