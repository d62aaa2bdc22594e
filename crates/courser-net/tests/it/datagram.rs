use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use courser_net::datagram::{Batch, Interface, Outgoing, UnsentKind};
use courser_net::{DatagramSettings, DatagramSocket, Datagrams};
use courser_testkit::network::{enter_namespace, sh};

use crate::run;

/// Longer than any datagram takes on one machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

fn settings(listen: &str) -> DatagramSettings {
    DatagramSettings { listen: listen.parse().unwrap(), interface: None, hops: 1, same_machine: true }
}

fn on_interface(listen: SocketAddr, interface: &str) -> DatagramSettings {
    let interface = Some(Interface::find(interface).unwrap());
    DatagramSettings { interface, listen, ..settings("127.0.0.1:0") }
}

fn datagrams(socket: DatagramSocket) -> (Datagrams, SocketAddr) {
    let address = socket.address();
    (Datagrams::new(socket).unwrap(), address)
}

fn open(settings: &DatagramSettings) -> (Datagrams, SocketAddr) {
    datagrams(DatagramSocket::open(settings).unwrap())
}

fn to(to: SocketAddr, bytes: &[u8]) -> Outgoing<'_> {
    Outgoing { to, bytes }
}

/// Whether there is any; says so if not.
fn has_ipv6() -> bool {
    let has = UdpSocket::bind("[::1]:0").is_ok();
    if !has {
        println!("skipped: this machine has no IPv6");
    }
    has
}

/// Waits for `count` datagrams.
async fn receive(datagrams: &Datagrams, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut batch, mut heard) = (Batch::default(), Vec::new());
    while heard.len() < count {
        let received = tokio::time::timeout(PATIENCE, datagrams.receive(&mut batch)).await;
        received.unwrap_or_else(|_| panic!("{} of {count} datagrams came", heard.len())).unwrap();
        heard.extend(batch.datagrams().map(|(from, bytes)| (from, bytes.to_vec())));
    }
    heard
}

#[test]
fn one_payload_reaches_many_and_many_payloads_reach_one() {
    run(async {
        let (sender, from) = open(&settings("127.0.0.1:0"));
        let peers: Vec<_> = (0..15).map(|_| open(&settings("127.0.0.1:0"))).collect();
        let messages: Vec<_> = peers.iter().map(|(_, address)| to(*address, b"to all")).collect();
        assert!(sender.send(&messages).is_empty());
        for (peer, _) in &peers {
            assert_eq!(receive(peer, 1).await, [(from, b"to all".to_vec())]);
        }
        // More than one system call takes, at either end.
        let payloads: Vec<[u8; 2]> = (0..200_u16).map(u16::to_be_bytes).collect();
        let messages: Vec<_> = payloads.iter().map(|payload| to(peers[0].1, payload)).collect();
        assert!(sender.send(&messages).is_empty());
        let heard: Vec<_> = receive(&peers[0].0, 200).await.into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(heard, payloads);
    });
}

#[test]
fn ipv6_as_well() {
    if !has_ipv6() {
        return;
    }
    run(async {
        let ((a, from), (b, address)) = (open(&settings("[::1]:0")), open(&settings("[::1]:0")));
        assert!(a.send(&[to(address, b"six")]).is_empty());
        assert_eq!(receive(&b, 1).await, [(from, b"six".to_vec())]);
    });
}

#[test]
fn what_cannot_be_sent_is_told_and_the_rest_arrives() {
    run(async {
        let (sender, _) = open(&settings("127.0.0.1:0"));
        let (peer, address) = open(&settings("127.0.0.1:0"));
        let too_long = vec![0; 70_000];
        let v6 = "[::1]:9".parse().unwrap();
        let messages = [to(address, b"1"), to(address, &too_long), to(v6, b"2"), to(address, b"3")];
        let unsent = sender.send(&messages);
        assert_eq!(unsent.iter().map(|unsent| unsent.to).collect::<Vec<_>>(), [address, v6]);
        assert_eq!(unsent[0].kind, UnsentKind::TooLong);
        let heard: Vec<_> = receive(&peer, 2).await.into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(heard, [b"1", b"3"]);
    });
}

#[test]
fn a_port_where_nobody_listens_stops_nothing() {
    run(async {
        let (sender, from) = open(&settings("127.0.0.1:0"));
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (peer, address) = open(&settings("127.0.0.1:0"));
        for _ in 0..3 {
            assert!(sender.send(&[to(nobody, b"x"), to(address, b"y")]).is_empty());
        }
        assert_eq!(receive(&peer, 3).await.len(), 3);
        assert!(peer.send(&[to(from, b"back")]).is_empty());
        assert_eq!(receive(&sender, 1).await, [(address, b"back".to_vec())]);
    });
}

#[test]
fn a_full_receiver_costs_the_sender_nothing_and_what_fits_is_kept() {
    run(async {
        let (sender, _) = open(&settings("127.0.0.1:0"));
        let (peer, address) = open(&settings("127.0.0.1:0"));
        let payload = [7; 1400];
        let messages = vec![to(address, &payload); 20_000];
        let unsent = sender.send(&messages);
        assert!(unsent.iter().all(|unsent| unsent.kind == UnsentKind::NoRoom), "{:?}", unsent.first());
        let heard = receive(&peer, 50).await;
        assert!(heard.iter().all(|(_, bytes)| bytes[..] == payload));
    });
}

#[test]
fn the_payload_is_what_a_frame_carries() {
    let socket = DatagramSocket::open(&settings("127.0.0.1:0")).unwrap();
    assert_eq!(socket.payload_limit(&["127.0.0.1:9".parse().unwrap()]), 1472);
    assert_eq!(socket.payload_limit(&[]), 1472);
    assert!(socket.receive_buffer().unwrap() >= 64 * 1024);
}

#[test]
fn ipv6_has_a_longer_header() {
    if !has_ipv6() {
        return;
    }
    let socket = DatagramSocket::open(&settings("[::1]:0")).unwrap();
    assert_eq!(socket.payload_limit(&["[::1]:9".parse().unwrap()]), 1452);
}

#[test]
fn an_interface_that_does_not_exist_names_those_that_do() {
    let error = Interface::find("eht0").unwrap_err().to_string();
    assert!(error.starts_with("this host has no network interface `eht0`; there are: "), "{error}");
    assert!(error.contains("lo"), "{error}");
    assert_eq!(Interface::find("lo").unwrap(), Interface::find("1").unwrap());
    assert!(Interface::find("999999").is_err());
}

#[test]
fn an_address_that_cannot_be_used_says_why() {
    let error = |listen: &str| DatagramSocket::open(&settings(listen)).unwrap_err().to_string();
    let foreign = error("192.0.2.77:0");
    assert!(
        foreign.starts_with("cannot receive datagrams on 192.0.2.77:0: it is no address of this host"),
        "{foreign}"
    );
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = error(&taken.local_addr().unwrap().to_string());
    assert!(error.contains("another process receives there"), "{error}");
}

/// Two members of a group on one machine, and one that answers the other alone.
#[test]
fn a_multicast_group_is_heard_and_its_members_answer_one_another() {
    if !enter_namespace("datagram::a_multicast_group_is_heard_and_its_members_answer_one_another") {
        return;
    }
    set_up_two_segments();
    for (group, other) in [("239.1.1.1:0", "239.1.1.2"), ("[ff02::1:7]:0", "ff02::1:8")] {
        let first = DatagramSocket::open(&on_interface(group.parse().unwrap(), "segment")).unwrap();
        let group = first.address();
        let second = DatagramSocket::open(&on_interface(group, "segment")).unwrap();
        let stranger = SocketAddr::new(other.parse().unwrap(), group.port());
        let stranger = DatagramSocket::open(&on_interface(stranger, "segment")).unwrap();
        let there = SocketAddr::new(group.ip(), group.port());
        let elsewhere = DatagramSocket::open(&on_interface(there, "elsewhere")).unwrap();
        assert_eq!(first.payload_limit(&[]), if group.is_ipv4() { 1372 } else { 1352 }, "MTU 1400");
        assert_eq!(first.source().unwrap().port(), group.port());
        assert_ne!(second.source().unwrap().port(), group.port(), "it is taken");
        run(among_members(first, second, stranger, elsewhere));
    }
}

async fn among_members(
    first: DatagramSocket,
    second: DatagramSocket,
    stranger: DatagramSocket,
    elsewhere: DatagramSocket,
) {
    let (sources, group) = ([first.source().unwrap(), second.source().unwrap()], first.address());
    let group_there = elsewhere.address();
    let [first, second, stranger, elsewhere] =
        [first, second, stranger, elsewhere].map(|socket| datagrams(socket).0);
    assert!(stranger.send(&[to(group, b"from outside")]).is_empty(), "who sends need not be a member");
    assert!(elsewhere.send(&[to(group_there, b"on another interface")]).is_empty());
    assert!(first.send(&[to(group, b"to all")]).is_empty());
    for member in [&first, &second] {
        let heard = receive(member, 2).await;
        assert_eq!(heard[1], (sources[0], b"to all".to_vec()));
    }
    assert!(second.send(&[to(sources[0], b"to you alone")]).is_empty());
    assert_eq!(receive(&first, 1).await, [(sources[1], b"to you alone".to_vec())]);
    assert!(first.send(&[to(sources[1], b"and back")]).is_empty());
    assert_eq!(receive(&second, 1).await, [(sources[0], b"and back".to_vec())]);
    // Each of them has heard its own interface's message and nothing of the other's.
    assert_eq!(receive(&elsewhere, 1).await[0].1, b"on another interface");
}

#[test]
fn a_group_without_a_way_to_it_says_so() {
    if !enter_namespace("datagram::a_group_without_a_way_to_it_says_so") {
        return;
    }
    set_up_two_segments();
    let error = DatagramSocket::open(&settings("239.1.1.1:0")).unwrap_err().to_string();
    assert!(error.starts_with("no way to the multicast group 239.1.1.1:0: name the interface"), "{error}");
}

/// Two interfaces of this namespace, each with the whole segment behind it.
fn set_up_two_segments() {
    sh("n=1; for name in segment elsewhere; do
            ip link add $name type veth peer name ${name}-peer
            ip link set ${name}-peer up; ip link set $name mtu 1400 up
            ip addr add 10.77.$n.1/24 dev $name; ip addr add fd77:$n::1/64 dev $name nodad
            n=$((n + 1))
        done");
}
