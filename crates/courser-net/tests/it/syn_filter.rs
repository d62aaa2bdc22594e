//! What the kernel does with SYNs that a filter judges. On the loopback interface it has done it when `connect` returns.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;

use courser_net::{Address, AsyncListener, KnownSources, ListenSocket, Network, SynFilter, SynShares};
use courser_testkit::network::enter_namespace;
use socket2::{Domain, Protocol, Socket, Type};

use crate::run;

#[test]
fn without_a_filter_and_after_one_all_get_in() {
    serve("127.0.0.1:0", |listener, address| {
        let all = || (1..=50).all(|number| connects(v4(number), address).is_some());
        assert!(all());
        listener.set_syn_filter(Some(&SynFilter::drop_all())).unwrap();
        listener.set_syn_filter(None).unwrap();
        assert!(all());
        // There is none to take off any more.
        listener.set_syn_filter(None).unwrap();
    });
}

#[test]
fn where_all_are_dropped_nobody_new_gets_in_and_who_is_connected_goes_on() {
    serve("127.0.0.1:0", |listener, address| {
        let early = connects(v4(1), address).unwrap();
        listener.set_syn_filter(Some(&SynFilter::drop_all())).unwrap();
        assert!((1..=50).all(|number| connects(v4(number), address).is_none()));
        assert_eq!(listener.accept_queue().unwrap().unwrap().dropped, 50);
        // Accepted sockets inherit the filter, which lets their packets pass.
        let mut early: TcpStream = early.into();
        let accepted = listener.accept_queued().unwrap();
        std::io::Write::write_all(&mut early, b"question").unwrap();
        let mut received = Vec::new();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let read = accepted.stream.poll_read(&mut cx, &mut received, |buffer| buffer.reserve(100));
        assert!(matches!(read, std::task::Poll::Ready(Ok(8))), "{read:?}");
    });
}

#[test]
fn a_share_of_the_pairs_is_dropped_and_a_pair_meets_the_same_answer_again() {
    serve("127.0.0.1:0", |listener, address| {
        for share in [0.1, 0.5, 0.9] {
            drop_others(listener, share, 42);
            let let_in = (1..=1_000).filter(|&number| connects(v4(number), address).is_some()).count();
            empty(listener);
            let expected = 1_000.0 * (1.0 - share);
            // Five standard deviations.
            assert!((let_in as f64 - expected).abs() < 80.0, "{let_in} of 1,000 at {share}");
        }
        drop_others(listener, 0.5, 42);
        let pairs = || (1..=200).map(|number| connects_from(v4(number), 20_000, address).is_some());
        let first: Vec<_> = pairs().collect();
        assert_eq!(pairs().collect::<Vec<_>>(), first);
        drop_others(listener, 0.5, 43);
        let other_salt = pairs().zip(&first).filter(|(second, first)| second != *first).count();
        assert!((50..150).contains(&other_salt), "{other_salt} of 200 answers changed");
    });
}

#[test]
fn known_sources_get_in_where_strangers_do_not() {
    serve("127.0.0.1:0", |listener, address| {
        let known = KnownSources::new(0x5eed);
        (1..=1_000).for_each(|number| known.insert(v4(number)));
        let shares = SynShares { salt: 1, networks: &[], known: Some((&known, 0.0)), others: 1.0 };
        let filter = SynFilter::drop_shares(&shares);
        listener.set_syn_filter(Some(&filter)).unwrap();
        assert!((1..=1_000).all(|number| connects(v4(number), address).is_some()));
        empty(listener);
        let strangers = (10_000..11_000).filter(|&number| connects(v4(number), address).is_some());
        // What the set itself says, source by source: the program is the same function.
        let taken_for_known = (10_000..11_000).filter(|&number| known.contains(v4(number)));
        assert_eq!(strangers.count(), taken_for_known.count());
        assert!(filter.len() < 2_500, "{} instructions", filter.len());
    });
}

#[test]
fn networks_are_treated_apart() {
    serve("127.0.0.1:0", |listener, address| {
        let noisy = Network::new(Ipv4Addr::new(127, 9, 9, 9).into(), 24);
        let quiet = Network::new(Ipv4Addr::new(127, 8, 0, 0).into(), 16);
        let networks = [(noisy, 1.0), (quiet, 0.0)];
        let shares = SynShares { salt: 1, networks: &networks, known: None, others: 0.5 };
        listener.set_syn_filter(Some(&SynFilter::drop_shares(&shares))).unwrap();
        let let_in = |second: u8, third: u8| {
            let source = |host| IpAddr::from(Ipv4Addr::new(127, second, third, host));
            (1..=200).filter(|&host| connects(source(host), address).is_some()).count()
        };
        assert_eq!(let_in(9, 9), 0);
        assert_eq!(let_in(8, 7), 200);
        assert!((50..150).contains(&let_in(9, 10)));
    });
}

#[test]
fn ipv6_counts_by_networks_of_64_bits() {
    if !enter_namespace("syn_filter::ipv6_counts_by_networks_of_64_bits") {
        return;
    }
    // All addresses of a prefix are this machine's.
    let added = std::process::Command::new("ip")
        .args(["-6", "route", "add", "local", "2001:db8::/32", "dev", "lo"])
        .status();
    assert!(added.unwrap().success());
    let source = |network: u128, host: u128| {
        IpAddr::from(Ipv6Addr::from_bits((0x2001_0db8 << 96) + (network << 64) + host))
    };
    // A socket for both families sees both kinds of packets.
    serve("[::]:0", |listener, address| {
        let v6 = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port());
        let mapped = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port());
        let known = KnownSources::new(0x5eed);
        (1..=200).for_each(|number| known.insert(source(number, 1)));
        known.insert(v4(7));
        let noisy = Network::new(source(3, 0), 64);
        let wide = Network::new(source(0x77_0001, 0), 48);
        let networks = [(noisy, 1.0), (wide, 0.0)];
        let shares = SynShares { salt: 1, networks: &networks, known: Some((&known, 0.0)), others: 1.0 };
        listener.set_syn_filter(Some(&SynFilter::drop_shares(&shares))).unwrap();
        for number in 1..=200 {
            let gets_in = connects(source(number, 0xffff), v6).is_some();
            assert_eq!(gets_in, number != 3, "network {number}");
        }
        assert!(connects(source(0x77_0003, 5), v6).is_some() && connects(source(0x78_0003, 5), v6).is_none());
        assert!(connects(v4(7), mapped).is_some() && connects(v4(8), mapped).is_none());
    });
}

#[test]
fn who_takes_a_socket_over_takes_its_filter_off() {
    let opened =
        ListenSocket::open(&Address::Ip("127.0.0.1:0".parse().unwrap()), false, 100, 1).unwrap().remove(0);
    opened.set_syn_filter(Some(&SynFilter::drop_all())).unwrap();
    let Address::Ip(address) = *opened.address() else { unreachable!() };
    let handed_over = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = handed_over.local_addr().unwrap();
    SynFilter::drop_all().attach(&handed_over.as_fd()).unwrap();
    assert!(connects(v4(1), other).is_none() && connects(v4(1), address).is_none());
    let _adopted = ListenSocket::adopt(handed_over.into()).unwrap();
    assert!(connects(v4(1), other).is_some());
}

#[test]
fn the_queue_is_counted_and_its_limit_can_be_changed() {
    serve("127.0.0.1:0", |listener, address| {
        let _waiting: Vec<_> = (1..=3).map(|number| connects(v4(number), address).unwrap()).collect();
        let queue = listener.accept_queue().unwrap().unwrap();
        assert_eq!((queue.length, queue.limit, queue.dropped), (3, 1_000, 0));
        listener.set_backlog(2).unwrap();
        assert!(connects(v4(9), address).is_none());
        let queue = listener.accept_queue().unwrap().unwrap();
        assert_eq!((queue.length, queue.limit, queue.dropped), (3, 2, 1));
    });
}

fn serve(address: &str, test: impl FnOnce(&AsyncListener, SocketAddr)) {
    run(async {
        let socket =
            ListenSocket::open(&Address::Ip(address.parse().unwrap()), true, 1_000, 1).unwrap().remove(0);
        let Address::Ip(address) = *socket.address() else { unreachable!() };
        test(&AsyncListener::new(socket).unwrap(), address);
    });
}

/// Accepts what is in the queue, where connections that were reset stay as well.
fn empty(listener: &AsyncListener) {
    while listener.accept_queued().is_ok() {}
}

fn drop_others(listener: &AsyncListener, others: f64, salt: u32) {
    let shares = SynShares { salt, networks: &[], known: None, others };
    listener.set_syn_filter(Some(&SynFilter::drop_shares(&shares))).unwrap();
}

/// One of the addresses of 127/8.
fn v4(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x7f01_0000 + number).into()
}

fn connects(source: IpAddr, to: SocketAddr) -> Option<Socket> {
    connects_from(source, 0, to)
}

/// A connection from this address, if its SYN was answered. It is reset when it is dropped, so that the queue has room.
fn connects_from(source: IpAddr, port: u16, to: SocketAddr) -> Option<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    if source.is_ipv6() {
        socket.set_freebind_v6(true).unwrap();
    }
    socket.bind(&SocketAddr::new(source, port).into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let _begun = socket.connect(&to.into());
    socket.peer_addr().is_ok().then_some(socket)
}
