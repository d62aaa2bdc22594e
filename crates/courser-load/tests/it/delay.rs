//! The proxy that adds a round trip: how long things take at least, and that nothing else about them changes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use courser_load::delay::DelayProxy;
use courser_testkit::free_port;

const RTT: Duration = Duration::from_millis(60);
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A relay to `to`, on a thread that goes with the process.
fn relay(to: SocketAddr, rtt: Duration) -> SocketAddr {
    let relay = DelayProxy::bind(ANY, to, rtt).unwrap();
    let courser_net::Address::Ip(address) = relay.address().clone() else {
        unreachable!("it was given an IP")
    };
    thread::spawn(move || relay.run().unwrap());
    address
}

/// A server that serves each connection by `serve`, on threads that go with the process.
fn server(serve: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind(ANY).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        stream.write_all(&buffer[..read]).unwrap();
    }
}

#[test]
fn an_answer_takes_two_round_trips_the_first_time_and_one_after_that() {
    let began = Instant::now();
    let mut client = TcpStream::connect(relay(server(echo), RTT)).unwrap();
    let mut turn = || {
        client.write_all(b"?").unwrap();
        client.read_exact(&mut [0]).unwrap();
        began.elapsed()
    };
    let first = turn();
    assert!(first >= 2 * RTT, "{first:?}");
    let second = turn();
    assert!(second >= first + RTT, "{first:?}, then {second:?}");
}

#[test]
fn a_server_that_speaks_first_is_heard_after_two_round_trips() {
    let began = Instant::now();
    let address = relay(server(|mut stream| stream.write_all(b"220").unwrap()), RTT);
    let mut text = String::new();
    TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "220");
    assert!(began.elapsed() >= 2 * RTT, "{:?}", began.elapsed());
}

/// More than fits into all buffers on the way, written before anything is read.
#[test]
fn every_byte_arrives_in_order_and_the_end_after_it() {
    let to = server(|mut stream| {
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        stream.write_all(&received).unwrap();
    });
    let mut client = TcpStream::connect(relay(to, Duration::from_millis(4))).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    let sent: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(20 << 20).collect();
    let mut rest = &sent[..];
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rng.usize(1..=200_000).min(rest.len()));
        client.write_all(piece).unwrap();
        rest = after;
    }
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert!(received == sent, "{} bytes of {}", received.len(), sent.len());
}

/// A socket that is closed with bytes unread resets its peer.
#[test]
fn a_reset_of_the_server_reaches_the_client() {
    let to = server(|stream| {
        stream.peek(&mut [0]).unwrap();
    });
    let mut client = TcpStream::connect(relay(to, RTT)).unwrap();
    client.write_all(b"unread").unwrap();
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_reset_of_the_client_reaches_the_server() {
    let listener = TcpListener::bind(ANY).unwrap();
    let mut client = TcpStream::connect(relay(listener.local_addr().unwrap(), RTT)).unwrap();
    client.write_all(b"?").unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.write_all(b"unread").unwrap();
    client.peek(&mut [0]).unwrap();
    drop(client);
    accepted.read_exact(&mut [0]).unwrap();
    assert_eq!(accepted.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn where_nobody_listens_the_client_is_reset() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut client = TcpStream::connect(relay(nobody, RTT)).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Each gets its own bytes back, whoever else waits.
#[test]
fn many_connections_wait_at_the_same_time() {
    let address = relay(server(echo), RTT);
    let mut clients: Vec<TcpStream> = (0..400).map(|_| TcpStream::connect(address).unwrap()).collect();
    let bytes =
        |client: usize| [client, client + 1, client * 7].map(|number| u8::try_from(number % 251).unwrap());
    for turn in 0..3 {
        for (index, client) in clients.iter_mut().enumerate() {
            client.write_all(&bytes(index)[turn..=turn]).unwrap();
        }
    }
    for (index, client) in clients.iter_mut().enumerate() {
        let mut echoed = [0; 3];
        client.read_exact(&mut echoed).unwrap();
        assert_eq!(echoed, bytes(index));
    }
}
