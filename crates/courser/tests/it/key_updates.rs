//! Clients that update their keys, and ask the same of the server (RFC 8446, section 4.6.3), wherever they may: every
//! byte arrives, the server says close_notify, and the connection ends in order.
//!
//! OpenSSL, JSSE and GnuTLS by themselves, and the client that makes its records itself at every place. Go's client
//! answers such requests and has no way to make one.

mod other_clients;

use std::net::{Shutdown, TcpStream};

use courser_testkit::client::hostile::{HostileClient, Received, ReceivedAll, WARNING};
use courser_testkit::client::{Client, Version};
use courser_testkit::{Courser, KeyType, OriginServer, body};
use rustls::CipherSuite;

use crate::stage::{Stage, assert_closed};

/// One byte, a full record, one byte more, many records.
const SIZES: [usize; 4] = [1, 1 << 14, (1 << 14) + 1, 1 << 20];

const CLOSE_NOTIFY: (u8, u8) = (WARNING, 0);

/// A KeyUpdate: whether it asks for another, its first bytes that have a record of their own, and the padding.
type Update = (bool, usize, usize);

const ASKING: Update = (true, 5, 0);
const SILENT: Update = (false, 5, 0);
const CUT: Update = (true, 2, 0);
const PADDED: Update = (true, 1, 16_000);

/// What is sent before the request and behind it.
const PLACES: [(&[Update], &[Update]); 8] = [
    (&[ASKING], &[]),
    (&[], &[ASKING]),
    (&[ASKING], &[ASKING]),
    (&[ASKING, ASKING], &[]),
    (&[SILENT, ASKING], &[SILENT]),
    (&[CUT], &[]),
    (&[PADDED], &[]),
    (&[], &[PADDED, CUT]),
];

type Hostile = HostileClient<TcpStream>;

fn update(client: &mut Hostile, updates: &[Update]) {
    for &(requested, cut, padding) in updates {
        client.update_keys(requested, cut, padding).expect("the server listens");
    }
}

fn request(size: usize, connection: &str) -> String {
    format!("GET /?s={size} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n")
}

/// Asserts that this is the origin's page, whole, and a close in order.
#[track_caller]
fn assert_page(answer: &ReceivedAll, size: usize, what: &str) {
    let end = answer.data.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let page = end.map(|end| &answer.data[end + 4..]);
    assert!(page == Some(&body(size)), "{what}: {} bytes came for {size}", answer.data.len());
    assert_eq!((&answer.alerts[..], answer.reset), (&[CLOSE_NOTIFY][..], false), "{what}");
}

/// Closes in order, and asserts that the log says so.
#[track_caller]
fn assert_done(courser: &Courser, number: usize, mut client: Hostile) {
    // The server may have gone.
    let _ = client.send_close_notify();
    let _ = client.stream().shutdown(Shutdown::Write);
    let mut lines = courser.connections_json(number);
    assert_closed(&lines.swap_remove(number - 1), "done", "none");
}

#[test]
fn an_answer_arrives_whole_wherever_the_client_updates_its_keys() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage.serve(origin.backend());
    let mut number = 0;
    for (before, after) in PLACES {
        for size in SIZES {
            number += 1;
            let what = format!("{before:?}, {after:?}, {size} bytes");
            let mut client = Hostile::connect(&stage.client(&courser, Version::Tls13)).unwrap();
            update(&mut client, before);
            client.send_data(request(size, "close").as_bytes()).unwrap();
            update(&mut client, after);
            let answer = client.receive_all().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_page(&answer, size, &what);
            let asked = before.iter().any(|update| update.0);
            assert!(answer.key_updates > 0 || !asked, "{what}: the server keeps its keys");
            assert_done(&courser, number, client);
        }
    }
}

#[test]
fn every_suite_updates_its_keys() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage.serve(origin.backend());
    for (index, suite) in [0x1301, 0x1302, 0x1303].map(CipherSuite::from).into_iter().enumerate() {
        let client = Client::with_suite(courser.address(), KeyType::EcdsaP256, suite);
        let mut client = Hostile::connect(&client).unwrap();
        update(&mut client, &[ASKING]);
        client.send_data(request(100_000, "close").as_bytes()).unwrap();
        assert_page(&client.receive_all().unwrap(), 100_000, "after an update");
        assert_done(&courser, index + 1, client);
    }
}

/// Before each request and after each few records of its answer, on one connection.
#[test]
fn keys_are_updated_again_and_again() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    let mut client = Hostile::connect(&stage.client(&courser, Version::Tls13)).unwrap();
    let mut updates = 0;
    for size in SIZES {
        let sent = body(size);
        let (mut records, mut got) = (0, Vec::new());
        for part in sent.chunks(1 << 14) {
            update(&mut client, &[ASKING]);
            client.send_data(part).unwrap();
            while got.len() < (records * (1 << 14) + part.len()).min(size) {
                match client.receive().unwrap() {
                    Received::Data(data) => got.extend(data),
                    Received::KeyUpdate(false) => updates += 1,
                    Received::Message(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            records += 1;
            update(&mut client, &[SILENT]);
        }
        assert!(got == sent, "{size} bytes");
    }
    assert!(updates > 60, "only {updates} requests were answered");
    assert_done(&courser, 1, client);
}

#[test]
fn an_upload_arrives_whole_with_updates_in_its_middle() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage.serve(origin.backend());
    for (index, inserted) in [ASKING, SILENT, CUT, PADDED].into_iter().enumerate() {
        let mut client = Hostile::connect(&stage.client(&courser, Version::Tls13)).unwrap();
        let size = 20 * 10_000;
        let head =
            format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
        client.send_data(head.as_bytes()).unwrap();
        for part in body(size).chunks(10_000) {
            client.send_data(part).unwrap();
            update(&mut client, &[inserted]);
        }
        let answer = client.receive_all().unwrap();
        let said = String::from_utf8(answer.data).unwrap();
        assert!(said.starts_with("HTTP/1.1 200") && said.contains("200000"), "{inserted:?}: {said}");
        assert_eq!(answer.alerts, [CLOSE_NOTIFY], "{inserted:?}");
        assert_done(&courser, index + 1, client);
    }
}

#[test]
fn an_update_directly_before_close_notify_is_no_fault() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    for (index, (size, last)) in
        SIZES.into_iter().flat_map(|size| [ASKING, CUT, PADDED].map(|last| (size, last))).enumerate()
    {
        let mut client = Hostile::connect(&stage.client(&courser, Version::Tls13)).unwrap();
        let sent = body(size);
        let mut got = Vec::new();
        for part in sent.chunks(1 << 14) {
            client.send_data(part).unwrap();
            got.extend(client.receive_data(part.len()).unwrap());
        }
        update(&mut client, &[last]);
        client.send_close_notify().unwrap();
        let answer = client.receive_all().unwrap_or_else(|error| panic!("{last:?}: {error}"));
        assert!(got == sent && answer.data.is_empty(), "{size} bytes, {last:?}");
        assert_eq!((answer.alerts, answer.reset), (vec![CLOSE_NOTIFY], false), "{size} bytes, {last:?}");
        assert_done(&courser, index + 1, client);
    }
}
