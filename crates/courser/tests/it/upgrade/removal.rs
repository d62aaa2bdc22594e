//! Addresses that go, by a reload or by an upgrade: who was promised a connection has it.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use courser_testkit::{
    KeyType, OriginServer,
    client::{Client, Resume, Version},
    free_port,
};

use super::{Service, text};
use crate::stage::{eventually, run_courser};

fn with_second(origin: &OriginServer, port: u16) -> String {
    let backend = origin.backend();
    format!(
        "{}[[listener]]\nname = 'b'\nlisten = '127.0.0.1:{port}'\ncert = 'CERT'\nbackend = '{backend}'\n",
        text(origin)
    )
}

/// Connects until the address is gone: whoever is connected, is served.
fn clients_until_it_is_gone(address: SocketAddr) -> usize {
    let client = Client::new(address, Version::Tls13, KeyType::EcdsaP256, Resume::Never);
    let (mut served, deadline) = (0, Instant::now() + Duration::from_secs(20));
    loop {
        assert!(Instant::now() < deadline, "the address does not go");
        let stream = match std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
            Ok(stream) => stream,
            // A SYN was dropped, on a busy machine or since nobody is let in any more: the next may be refused.
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => continue,
            Err(_) => break,
        };
        let connected = courser_testkit::client::Connection::complete(client.session(), stream);
        connected.expect("a handshake that has begun is done").get(1000, true).expect("and served");
        served += 1;
    }
    served
}

fn removed_under_load(remove: impl FnOnce(&Service)) {
    let (origin, port) = (OriginServer::http(), free_port());
    let service = Service::start(&with_second(&origin, port));
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    eventually("the second address listens, too", || std::net::TcpStream::connect(address).is_ok());
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..8).map(|_| scope.spawn(move || clients_until_it_is_gone(address))).collect();
        eventually("there is load", || origin.accepted() > 50);
        service.change(&text(&origin));
        remove(&service);
        let served: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert_eq!(origin.accepted(), served as u64);
    });
    eventually("nobody listens there", || {
        std::net::TcpStream::connect(address)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    });
    service.serves();
}

#[test]
fn a_listener_that_a_reload_removes_resets_nobody() {
    removed_under_load(|service| {
        let done = run_courser(&["reload", "--control", &service.control]);
        assert!(done.status.success(), "{}", done.stderr);
    });
}

#[test]
fn a_listener_that_an_upgrade_removes_resets_nobody() {
    removed_under_load(Service::upgraded);
}
