//! What one client can make the program hold and do: it is refused with an alert, the others do not notice.

mod cost;

use std::net::TcpStream;

use courser_testkit::client::Client;
use courser_testkit::client::Version::{self, Tls12, Tls13};
use courser_testkit::client::hostile::{FATAL, HANDSHAKE, HostileClient, MAX_PLAINTEXT, plain_record};
use courser_testkit::{Courser, OriginServer};

use crate::stage::{Stage, assert_closed};

type Hostile = HostileClient<TcpStream>;

/// As much padding as goes with one byte.
const FULL: usize = MAX_PLAINTEXT - 1;

/// The first bytes of a message that never ends, of this type.
fn endless(kind: u8) -> impl Iterator<Item = u8> {
    [kind, 0, 0x3f, 0xf0].into_iter().chain(std::iter::repeat(0))
}

fn begun(client: &Client) -> Hostile {
    Hostile::start_handshake(client, Hostile::socket(client).unwrap()).unwrap()
}

/// One that has got an answer.
fn established(client: &Client) -> Hostile {
    let mut hostile = Hostile::connect(client).unwrap();
    hostile.send_data(b"x").unwrap();
    hostile.receive_data(1).unwrap();
    hostile
}

/// A place to begin at, a type of message, records, padding, and how it ends.
type Case = (Version, fn(&Client) -> Hostile, u8, usize, usize, &'static str);

#[test]
fn a_message_that_never_ends_is_refused_with_an_alert_that_arrives() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    let cases: [Case; 6] = [
        (Tls13, established, 24, 8, FULL, "bad_record"),
        (Tls13, established, 24, 5000, 0, "bad_record"),
        (Tls13, begun, 11, 8, FULL, "handshake_failed"),
        (Tls13, begun, 11, 5000, 0, "handshake_failed"),
        (Tls12, established, 1, 5000, 0, "bad_record"),
        (Tls12, begun, 16, 15_000, 0, "handshake_failed"),
    ];
    for (index, (version, begin, kind, count, padding, end)) in cases.into_iter().enumerate() {
        let mut client = begin(&stage.client(&courser, version));
        let records: Vec<u8> =
            endless(kind).take(count).flat_map(|byte| client.record(HANDSHAKE, &[byte], padding)).collect();
        client.send_raw(&records).unwrap();
        let answer =
            client.receive_all().unwrap_or_else(|error| panic!("{version:?}, {kind}, {padding}: {error}"));
        assert_eq!((answer.alerts.len(), answer.reset), (1, false), "{version:?}, {kind}, {padding}");
        assert_eq!(answer.alerts[0].0, FATAL);
        drop(client);
        assert_closed(&courser.connections_json(index + 1).swap_remove(index), end, "client");
    }
}

#[test]
fn one_client_that_sends_without_end_takes_no_memory_and_no_turn_of_the_others() {
    const RECORDS: usize = 2000;
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    let orderly = stage.client(&courser, Tls13);
    let before = warm(&courser, &orderly);
    let mut client = established(&orderly);
    // As fast as the server takes it, until it does not any more.
    let mut sent = 0;
    for byte in endless(24).take(RECORDS) {
        if client.send_padded(HANDSHAKE, &[byte], FULL).is_err() {
            break;
        }
        sent += 1;
        if sent % 50 == 0 {
            drop(established(&orderly));
        }
    }
    let after = courser.memory().rss;
    assert!(sent < RECORDS, "all {sent} records were taken");
    assert!(after < before + (8 << 20), "{before} bytes of memory became {after}");
}

/// Memory after some connections, which stays.
fn warm(courser: &Courser, client: &Client) -> u64 {
    (0..20).for_each(|_| drop(established(client)));
    courser.memory().rss
}

/// A ClientHello that is as long as one may be, in records of one byte, is read to its end.
#[test]
fn a_hello_that_never_ends_in_records_of_one_byte_is_refused() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    let mut client = Hostile::unkeyed(Hostile::socket(&stage.client(&courser, Tls13)).unwrap());
    let hello = [1, 0, 0xff, 0xf0].into_iter().chain(std::iter::repeat(0));
    let records: Vec<u8> = hello.take(1 << 16).flat_map(|byte| plain_record(HANDSHAKE, &[byte])).collect();
    client.send_raw(&records).unwrap();
    let answer = client.receive_all().unwrap();
    assert_eq!((answer.alerts.len(), answer.reset), (1, false));
    let line = courser.connections_json(1).swap_remove(0);
    assert_eq!(
        (line["cause"].as_str(), line["close_reason"] != "hello_timeout"),
        (Some("client"), true),
        "{line}"
    );
}
