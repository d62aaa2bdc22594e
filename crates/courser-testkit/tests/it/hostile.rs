//! The client that makes its records itself, by the word of OpenSSL: what it seals can be opened, what it opens is right.

use std::process::Command;

use courser_testkit::client::hostile::{HostileClient, ReceivedAll};
use courser_testkit::client::{Client, Version};
use courser_testkit::{Folder, KeyType, Process, TestCa, free_port, require};
use rustls::CipherSuite;

/// A server that sends every line back, reversed.
fn reverser(folder: &Folder) -> Option<(Process, std::net::SocketAddr)> {
    let certificate = TestCa::new().localhost(KeyType::EcdsaP256, folder, "site");
    let port = free_port();
    let mut command = Command::new(require("openssl")?);
    command.args(["s_server", "-rev", "-cert"]).arg(&certificate).arg("-key").arg(&certificate);
    let process = Process::start(command.args(["-accept", &format!("127.0.0.1:{port}")]));
    process.wait_stdout("ACCEPT", |lines| lines.iter().any(|line| line.contains("ACCEPT")).then_some(()));
    Some((process, ([127, 0, 0, 1], port).into()))
}

#[test]
fn openssl_understands_its_records_in_every_suite() {
    let folder = Folder::new();
    let Some((_server, address)) = reverser(&folder) else { return };
    for suite in [0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xcca9].map(CipherSuite::from) {
        let client = Client::with_suite(address, KeyType::EcdsaP256, suite);
        let mut client = HostileClient::connect(&client).expect("the server is there");
        for _ in 0..3 {
            client.send_data(b"abc\n").expect("the server listens");
            assert_eq!(client.receive_data(4).expect("the server answers"), b"cba\n", "{suite:?}");
        }
        client.send_close_notify().expect("the server listens");
        let answer = client.receive_all().expect("the server closes");
        assert_eq!(answer, ReceivedAll { alerts: vec![(1, 0)], ..ReceivedAll::default() }, "{suite:?}");
    }
}

#[test]
fn openssl_follows_its_key_updates() {
    let folder = Folder::new();
    let Some((_server, address)) = reverser(&folder) else { return };
    for suite in [0x1301, 0x1302, 0x1303].map(CipherSuite::from) {
        let client = Client::with_suite(address, KeyType::EcdsaP256, suite);
        let mut client = HostileClient::connect(&client).expect("the server is there");
        for (requested, cut, padding) in [(false, 5, 0), (true, 1, 0), (true, 5, 100), (false, 3, 9)] {
            client.update_keys(requested, cut, padding).expect("the server listens");
            client.send_data(b"abc\n").expect("the server listens");
            assert_eq!(client.receive_data(4).expect("the server answers"), b"cba\n", "{suite:?}");
        }
    }
}

#[test]
fn openssl_refuses_what_is_wrong_with_the_right_alert() {
    const BAD_RECORD_MAC: u8 = 20;
    let folder = Folder::new();
    let Some((_server, address)) = reverser(&folder) else { return };
    for version in [Version::Tls12, Version::Tls13] {
        let suite = if version == Version::Tls13 { 0x1301 } else { 0xc02b };
        let client = Client::with_suite(address, KeyType::EcdsaP256, CipherSuite::from(suite));
        let mut client = HostileClient::connect(&client).expect("the server is there");
        let mut record = client.record(23, b"abc\n", 0);
        *record.last_mut().expect("it has a tag") ^= 1;
        client.send_raw(&record).expect("the server listens");
        let answer = client.receive_all().expect("the server closes");
        assert_eq!(answer.alerts, [(2, BAD_RECORD_MAC)], "{version:?}");
    }
}
