//! What a stranger's chain of certificates may cost: so many are looked at and no more, before any signature is.

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::hostile::{FATAL, HostileClient, ReceivedAll};
use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{Courser, Issued, Leaf, TestCa};

use super::Club;
use crate::support::{assert_line, line};

/// Most certificates of a chain that are looked at.
const MOST: usize = 10;

/// Alerts that say that a certificate is not accepted (RFC 8446, section 6.2).
const CERTIFICATE_ALERTS: std::ops::RangeInclusive<u8> = 42..=46;
/// unknown_ca is another one.
const UNKNOWN_CA: u8 = 48;

fn client(courser: &Courser, version: Version, certificate: &Issued) -> Client {
    Client::new(courser.address(), version, EcdsaP256, Resume::Never).with_certificate(certificate)
}

/// Four intermediates in order, and behind them others that lead nowhere: `count` certificates with the leaf.
fn chain(clients: &TestCa, count: usize) -> Issued {
    let mut issued = clients.issue(&Leaf::new(EcdsaP256).of_client("alice"));
    for number in 5..count {
        issued.chain_pem.push_str(&TestCa::named(&format!("stranger {number}")).root_pem());
    }
    issued
}

fn club() -> Club {
    let intermediates = ["first", "second", "third", "fourth"].into_iter();
    Club::with(intermediates.fold(TestCa::named("clients of the club"), TestCa::extended))
}

#[test]
fn a_chain_of_ten_certificates_is_followed() {
    let club = club();
    let courser = club.serve("required").start();
    let mut number = 0;
    for version in [Version::Tls12, Version::Tls13] {
        for count in [5, MOST] {
            number += 1;
            let shown = chain(&club.clients, count);
            let connected = client(&courser, version, &shown).connect();
            connected.and_then(|mut to| to.get(1, true)).unwrap_or_else(|error| panic!("{count}: {error}"));
            assert_line(&line(&courser, number), &[("client_cert", "alice"), ("close_reason", "done")]);
        }
    }
}

#[test]
fn a_chain_of_eleven_certificates_is_refused_with_the_bound_named() {
    let club = club();
    let courser = club.serve("required").start();
    for (index, version) in [Version::Tls12, Version::Tls13].into_iter().enumerate() {
        let shown = chain(&club.clients, MOST + 1);
        refused(&courser, version, index + 1, &shown, &["11 certificates", "at most 10"]);
    }
    assert_eq!(club.site.origin.accepted(), 0);
}

/// Some 19 KB, which the library would follow along every path.
#[test]
fn a_chain_of_crossed_certificates_is_refused_before_it_is_followed() {
    let club = club();
    let courser = club.serve("required").start();
    let crossed = TestCa::crossed(&Leaf::new(EcdsaP256).of_client("mallory"), 60);
    for (index, version) in [Version::Tls12, Version::Tls13].into_iter().enumerate() {
        refused(&courser, version, index + 1, &crossed, &["61 certificates", "at most 10"]);
    }
}

/// Few enough by their number: paths multiply with those of one name.
#[test]
fn a_few_crossed_certificates_cost_no_more_than_a_straight_chain() {
    let club = club();
    let courser = club.serve("required").start();
    let crossed = TestCa::crossed(&Leaf::new(EcdsaP256).of_client("mallory"), 9);
    for (index, version) in [Version::Tls12, Version::Tls13].into_iter().enumerate() {
        refused(&courser, version, index + 1, &crossed, &["at most"]);
    }
}

/// Asserts that whoever shows this is told by a fatal alert, and that the log says why.
#[track_caller]
fn refused(courser: &Courser, version: Version, number: usize, shown: &Issued, why: &[&str]) {
    let client = client(courser, version, shown);
    let socket = HostileClient::socket(&client).unwrap();
    let mut hostile = HostileClient::start_handshake(&client, socket).unwrap();
    // In TLS 1.2 the refusal comes instead of Finished.
    let _ = hostile.finish();
    let ReceivedAll { alerts, reset, .. } = hostile.receive_all().unwrap();
    let [(level, alert)] = alerts[..] else { panic!("{version:?}: {alerts:?}") };
    assert!(level == FATAL && (CERTIFICATE_ALERTS.contains(&alert) || alert == UNKNOWN_CA), "{alert}");
    assert!(!reset, "{version:?}");
    let line = line(courser, number);
    assert_line(&line, &[("close_reason", "bad_client_certificate"), ("cause", "client")]);
    let detail = line["detail"].as_str().unwrap_or_default();
    assert!(why.iter().all(|part| detail.contains(part)), "{line}");
}
