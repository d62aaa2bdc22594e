use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use courser_net::{ConnectErrorKind, Connector, Stream};
use courser_testkit::network::{enter_namespace, sh};

use crate::run;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Local ports of the namespace in which they run out.
const PORTS: usize = 4;

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn connect(connector: Connector, target: SocketAddr) -> Result<Stream, ConnectErrorKind> {
    run(connector.connect(target)).map_err(|error| error.kind())
}

#[test]
fn the_server_sees_the_source_that_was_asked_for() {
    let (listener, address) = listener();
    let source = Some(IpAddr::from([127, 0, 0, 9]));
    let stream = connect(Connector { source, nodelay: true }, address).unwrap();
    let (_, peer) = listener.accept().unwrap();
    assert_eq!(Some(peer.ip()), source);
    assert_eq!(stream.local_address(), Some(peer));
}

#[test]
fn ipv6_connects_as_well() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return println!("skipped: this machine has no IPv6");
    };
    let source = Some("::1".parse().unwrap());
    let stream = connect(Connector { source, nodelay: false }, listener.local_addr().unwrap()).unwrap();
    assert_eq!(stream.local_address(), Some(listener.accept().unwrap().1));
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let (listener, address) = listener();
    drop(listener);
    assert_eq!(connect(Connector::default(), address).unwrap_err(), ConnectErrorKind::Refused);
}

#[test]
fn a_source_of_another_machine_or_family_is_told_apart() {
    let (_listener, address) = listener();
    for foreign in ["192.0.2.1", "::1"] {
        let source = Some(foreign.parse().unwrap());
        let error = run(Connector { source, nodelay: false }.connect(address)).unwrap_err();
        assert_eq!(error.kind(), ConnectErrorKind::BadSource, "{error}");
        assert!(error.to_string().contains("source address"), "{error}");
    }
}

/// A range of four local ports is enough for eight connections to two targets, and no more.
#[test]
fn each_target_has_all_local_ports_and_running_out_says_so() {
    if !enter_namespace("connect::each_target_has_all_local_ports_and_running_out_says_so") {
        return;
    }
    sh("echo 50000 50003 >/proc/sys/net/ipv4/ip_local_port_range");
    exhaust(Some(LOOPBACK));
    exhaust(None);
}

fn exhaust(source: Option<IpAddr>) {
    let connector = Connector { source, nodelay: false };
    let (listeners, targets): (Vec<_>, Vec<_>) = (0..2).map(|_| bind_outside_the_range()).unzip();
    let mut streams = Vec::new();
    for &target in &targets {
        streams.extend((0..PORTS).map(|_| connect(connector, target).expect("a port of its own")));
    }
    assert_eq!(connect(connector, targets[0]).unwrap_err(), ConnectErrorKind::NoLocalPort);
    for stream in &streams {
        stream.reset_on_close();
    }
    drop((streams, listeners));
}

/// Port 0 would take one of the few.
fn bind_outside_the_range() -> (TcpListener, SocketAddr) {
    let free = (20_000..30_000).find_map(|port| TcpListener::bind((LOOPBACK, port)).ok()).unwrap();
    let address = free.local_addr().unwrap();
    (free, address)
}
