//! A name with IPv4 and IPv6 addresses, of which one family may lead nowhere (RFC 8305).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use courser_testkit::client::Version;
use courser_testkit::network::{enter_namespace, sh};
use courser_testkit::{Behaviour, Courser, OriginServer};

use crate::stage::{Stage, Stuck, assert_closed, only_line};

const V4: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Not of loopback, which getaddrinfo would put behind IPv4 (RFC 6724, section 6).
const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

fn origin(address: SocketAddr) -> OriginServer {
    OriginServer::setup(Behaviour::Http).listen(address).start()
}

/// A stage where `both.test` is [`V6`] and [`V4`].
fn stage() -> Stage {
    let stage = Stage::new();
    let hosts = stage.folder.write("hosts", format!("{V6} both.test\n{V4} both.test\n"));
    sh(&format!("ip addr add {V6}/128 dev lo nodad; mount --bind {} /etc/hosts", hosts.display()));
    stage
}

fn serve(stage: &Stage, port: u16, connect_timeout: &str) -> Courser {
    let courser = stage.courser().backend(format!("both.test:{port}"));
    courser.args(["--connect-timeout", connect_timeout]).start()
}

fn get(stage: &Stage, courser: &Courser) -> std::io::Result<()> {
    stage.client(courser, Version::Tls13).connect().unwrap().get(10, true)
}

#[test]
fn the_preferred_family_gets_all_while_it_answers() {
    if !enter_namespace("backends::families::the_preferred_family_gets_all_while_it_answers") {
        return;
    }
    let (stage, v6) = (stage(), origin((V6, 0).into()));
    let v4 = origin((V4, v6.address().port()).into());
    let courser = serve(&stage, v6.address().port(), "5s");
    (0..5).for_each(|_| get(&stage, &courser).unwrap());
    assert_eq!([v6.accepted(), v4.accepted()], [5, 0]);
}

#[test]
fn a_family_that_leads_nowhere_costs_three_connections_a_moment_and_then_none() {
    if !enter_namespace(
        "backends::families::a_family_that_leads_nowhere_costs_three_connections_a_moment_and_then_none",
    ) {
        return;
    }
    let (stage, v4) = (stage(), origin((V4, 0).into()));
    let _v6 = Stuck::at((V6, v4.address().port()).into());
    // One that waited for the timeout would wait longer than the client.
    let courser = serve(&stage, v4.address().port(), "1h");
    (0..5).for_each(|_| get(&stage, &courser).unwrap());
    let lines = courser.connections_json(5);
    let retries: Vec<_> = lines.iter().map(|line| line["retries"].as_u64().unwrap()).collect();
    assert_eq!((retries, v4.accepted()), (vec![1, 1, 1, 0, 0], 5));
    assert!(lines.iter().all(|line| line["backend"].as_str().unwrap().contains("127.0.0.2")), "{lines:#?}");
    courser.wait_stderr_line("ejected for 5 s: no connection within 250 ms; 127.0.0.2");
}

#[test]
fn where_the_other_family_refuses_the_late_one_still_has_its_time() {
    if !enter_namespace("backends::families::where_the_other_family_refuses_the_late_one_still_has_its_time")
    {
        return;
    }
    let (stage, port) = (stage(), courser_testkit::free_port());
    let _v6 = Stuck::at((V6, port).into());
    let courser = serve(&stage, port, "1s");
    assert!(get(&stage, &courser).is_err());
    let line = only_line(&courser);
    assert_closed(&line, "no_backend", "backend");
    assert!(line["total_us"].as_u64().unwrap() >= 1_000_000, "{line}");
    courser.wait_stderr_line("[2001:db8::1]");
}
