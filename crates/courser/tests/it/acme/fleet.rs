//! One host of a fleet orders, and the CA asks any.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::{io, thread};

use courser_testkit::{Pebble, free_port, require};

use super::orders::Orders;
use crate::fleet::keygen;
use crate::stage::{content, eventually};

/// The fleet's settings of the host at this place, behind those of `[acme]`.
fn member(order: &str, key: &Path, ports: &[u16; 3], place: usize) -> String {
    let peers = ports.map(|port| format!("'127.0.0.1:{port}'")).join(", ");
    format!(
        "order = '{order}'\n[fleet]\nkey = '{}'\nname = 'edge-{place}'\nlisten = '127.0.0.1:{}'\npeer = [{peers}]",
        key.display(),
        ports[place]
    )
}

#[test]
fn one_host_orders_and_the_ca_may_ask_any_of_the_fleet() {
    // Where the CA looks, and whoever is asked there is one host after the other.
    let balancer = TcpListener::bind("127.0.0.1:0").unwrap();
    let looked_at = balancer.local_addr().unwrap().port();
    let (Some(openssl), Some(pebble)) = (require("openssl"), Pebble::setup(looked_at).start()) else {
        return;
    };
    let ports = [free_port(), free_port(), free_port()];
    let hosts = ports.map(|port| Orders::of("shop.example", port, &pebble));
    let key = keygen(hosts[0].config().parent().unwrap(), "fleet.key");
    let messages = [free_port(), free_port(), free_port()];
    let settings = |order, place| member(order, &key, &messages, place);
    let courser = hosts[0].start(&settings("here", 0));
    let said = courser.wait_stderr_line("not ordered");
    for place in [1, 2] {
        let missing = format!("127.0.0.1:{} was not heard since the start", messages[place]);
        assert!(said.contains(&missing), "{said}");
    }
    let _second = hosts[1].start(&settings("elsewhere", 1));
    let mut third = hosts[2].start(&settings("elsewhere", 2));
    let (first, _) = balancer.accept().expect("the CA asks once all of them answer");
    let digest = |place: usize| {
        let seen = hosts[place].shown(&openssl, "shop.example", &["-alpn", "acme-tls/1", "-showcerts"]);
        assert!(seen.contains("ALPN protocol: acme-tls/1"), "host {place}: {seen}");
        let certificate = hosts[place].certificate_text(&openssl, &seen);
        let (_, extension) = certificate.split_once("1.3.6.1.5.5.7.1.31: critical").expect("it has a digest");
        extension.lines().nth(1).expect("a line with it").trim().to_owned()
    };
    // Each once: the CA waits for 15 seconds, in which there is an upgrade as well.
    let answers = [2, 0, 1].map(digest);
    assert!(answers.iter().all(|digest| *digest == answers[0]), "{answers:?}");
    // A program that is replaced meanwhile answers on.
    content(hosts[1].run(&["upgrade"]));
    assert_eq!(digest(1), answers[0]);
    thread::spawn(move || {
        let others = std::iter::from_fn(|| balancer.accept().ok().map(|(ca, _)| ca));
        // Not the one that orders, at first.
        for (ca, port) in
            std::iter::once(first).chain(others).zip([ports[2], ports[1], ports[0]].into_iter().cycle())
        {
            pass(ca, port);
        }
    });
    hosts[0].eventually_valid();
    assert_eq!((pebble.orders(), pebble.issued()), (1, 1));
    eventually("no host answers any more", || {
        let answers = |host: &Orders| {
            let seen = host.shown(&openssl, "shop.example", &["-alpn", "acme-tls/1"]);
            seen.contains("ALPN protocol: acme-tls/1")
        };
        !hosts.iter().any(answers)
    });
    third.stop();
    let tried = hosts[0].run(&["acme", "order", "--dry-run"]);
    assert!(!tried.status.success(), "{}", tried.stdout);
    assert!(tried.stdout.contains("edge-2 (127.0.0.1:"), "{}{}", tried.stdout, tried.stderr);
}

/// Passes a connection on to a host.
fn pass(ca: TcpStream, port: u16) {
    let host = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for (mut from, mut to) in [(ca.try_clone().unwrap(), host.try_clone().unwrap()), (host, ca)] {
        thread::spawn(move || {
            // Who has gone has gone.
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    }
}
