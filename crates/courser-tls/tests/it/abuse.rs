//! What a client with the keys can make a server hold, and what its bytes may cost: fragments that never become a
//! message, records without content, floods of what is answered, trickles.

mod cost;

use std::io;

use courser_testkit::client::Version::{self, Tls12, Tls13};
use courser_testkit::client::hostile::{
    ALERT, APPLICATION_DATA, FATAL, HANDSHAKE, HEADER, MAX_PLAINTEXT, MAX_RECORD, WARNING, key_update,
};
use courser_tls::{FailureKind, State};

use crate::hostile::{MOST_HELD, Pair, connected, halfway};

const UNEXPECTED_MESSAGE: u8 = 10;
const USER_CANCELED: u8 = 90;

/// First bytes of messages that stay unfinished: type, length.
const CLIENT_HELLO: [u8; 4] = [1, 0, 0x3f, 0xf0];
const CERTIFICATE: [u8; 4] = [11, 0, 0xff, 0xf0];
const CLIENT_KEY_EXCHANGE: [u8; 4] = [16, 0, 0xff, 0xf0];
const KEY_UPDATE: [u8; 4] = [24, 0, 0x3f, 0xf0];

/// As much padding as goes with one byte.
const FULL: usize = MAX_PLAINTEXT - 1;

#[test]
fn fragments_that_never_become_a_message_are_held_up_to_a_bound_and_then_refused() {
    let conversations: [(&str, Pair, [u8; 4], usize); 9] = [
        ("after the handshake, padded", connected(Tls13), KEY_UPDATE, FULL),
        ("after the handshake, half padded", connected(Tls13), KEY_UPDATE, FULL / 2),
        ("after the handshake", connected(Tls13), KEY_UPDATE, 0),
        ("in the handshake, padded", halfway(Tls13), CERTIFICATE, FULL),
        ("in the handshake, half padded", halfway(Tls13), CERTIFICATE, FULL / 2),
        ("in the handshake", halfway(Tls13), CERTIFICATE, 0),
        ("in the handshake of TLS 1.2", halfway(Tls12), CLIENT_KEY_EXCHANGE, 0),
        ("after the handshake of TLS 1.2", connected(Tls12), CLIENT_HELLO, 0),
        ("a type that no message has", connected(Tls13), [99, 0, 0x3f, 0xf0], FULL),
    ];
    for (what, mut pair, message, padding) in conversations {
        let begun = pair.stream().taken;
        let refused = message
            .iter()
            .chain(std::iter::repeat(&0))
            .take(1 << 15)
            .find_map(|&byte| pair.send_padded(HANDSHAKE, &[byte], padding).err());
        let server = pair.stream();
        assert!(server.most_held <= MOST_HELD, "{what}: {} bytes were held", server.most_held);
        assert!(refused.is_some(), "{what}: every fragment was taken");
        assert!(server.taken - begun < 5 * MAX_RECORD, "{what}: {} bytes were taken", server.taken);
        assert_refused(what, &mut pair);
    }
}

/// A message may be as long as the bound allows, in records that are as full as they can be.
#[test]
fn fragments_of_a_message_that_is_too_long_are_refused_by_then() {
    for (what, mut pair, message) in [
        ("after the handshake", connected(Tls13), [24, 0, 0xff, 0xff]),
        ("after the handshake, in one byte more", connected(Tls13), [24, 0, 0x40, 0x01]),
        ("in the handshake", halfway(Tls13), [11, 0xff, 0xff, 0xff]),
        ("in the handshake of TLS 1.2", halfway(Tls12), [16, 0xff, 0xff, 0xff]),
        ("after the handshake of TLS 1.2", connected(Tls12), [1, 0xff, 0xff, 0xff]),
    ] {
        let mut first = message.to_vec();
        first.resize(MAX_PLAINTEXT, 0);
        let begun = pair.stream().taken;
        let mut refused = pair.send(HANDSHAKE, &first).is_err();
        for _ in 0..4 {
            refused |= pair.send(HANDSHAKE, &[0; MAX_PLAINTEXT]).is_err();
        }
        let server = pair.stream();
        assert!(server.most_held <= MOST_HELD, "{what}: {} bytes were held", server.most_held);
        assert!(refused && server.taken - begun <= 5 * MAX_RECORD, "{what}: all was taken");
        assert_refused(what, &mut pair);
    }
}

#[test]
fn a_key_update_may_be_cut_in_two_padded_records() {
    for cut in 1..5 {
        let mut pair = connected(Tls13);
        pair.update_keys(true, cut, MAX_PLAINTEXT - 4).expect("it is legal");
        pair.send_data(b"under new keys").expect("it is legal");
        pair.stream().send(b"answer");
        assert_eq!(pair.receive_data(6).expect("it comes"), b"answer", "cut after {cut}");
        let server = pair.stream();
        assert_eq!(server.plaintext, b"under new keys");
        assert!(server.received.is_empty(), "what is done with is let go");
        assert_eq!(server.failure, None);
    }
}

/// What comes between is let go with it: a whole message and the begin of the next in one record.
#[test]
fn key_updates_that_overlap_records_are_followed() {
    let mut pair = connected(Tls13);
    for _ in 0..8 {
        pair.update_keys(false, 1, 0).expect("it is legal");
        pair.send_data(b"x").expect("it is legal");
    }
    let server = pair.stream();
    assert_eq!((server.plaintext.len(), server.failure.clone()), (8, None));
}

#[test]
fn an_answer_goes_out_with_the_key_update_that_was_asked_for() {
    for length in [1, MAX_PLAINTEXT, MAX_PLAINTEXT + 1, 1 << 20] {
        for close in [false, true] {
            let mut pair = connected(Tls13);
            pair.update_keys(true, 5, 0).expect("it is legal");
            let answer: Vec<u8> = courser_testkit::body(length);
            if close {
                pair.stream().send(&answer);
                pair.stream().close();
            } else {
                answer.chunks(30_000).for_each(|part| pair.stream().send(part));
            }
            assert_eq!(pair.stream().failure, None, "{length} bytes");
            assert!(pair.receive_data(length).expect("it comes") == answer, "{length} bytes");
        }
    }
}

#[test]
fn a_close_right_behind_a_request_for_a_key_update_is_answered() {
    let mut pair = connected(Tls13);
    pair.update_keys(true, 5, 0).expect("it is legal");
    pair.send_close_notify().expect("it is legal");
    assert_eq!(pair.stream().state, State::PeerClosed);
    pair.stream().close();
    assert_eq!(pair.stream().failure, None);
}

/// Each is harmless by itself, and answered or ignored; a flood of them is not. What it has not answered yet is bounded.
#[test]
fn floods_of_what_means_nothing_are_refused() {
    type Nuisance = fn(&mut Pair) -> io::Result<()>;
    let nuisances: [(&str, Version, Nuisance); 7] = [
        ("key updates", Tls13, |pair| pair.update_keys(false, 5, 0)),
        ("key updates that request one", Tls13, |pair| pair.update_keys(true, 5, 0)),
        ("empty records", Tls13, |pair| pair.send_data(&[])),
        ("empty records, padded", Tls13, |pair| pair.send_padded(APPLICATION_DATA, &[], 100)),
        ("empty records of TLS 1.2", Tls12, |pair| pair.send_data(&[])),
        ("user_canceled", Tls13, |pair| pair.send_alert(WARNING, USER_CANCELED)),
        ("warnings of TLS 1.2", Tls12, |pair| pair.send_alert(WARNING, USER_CANCELED)),
    ];
    for (what, version, send) in nuisances {
        let mut pair = connected(version);
        let sent = (0..1000).take_while(|_| send(&mut pair).is_ok()).count();
        assert!((2..1000).contains(&sent), "{what}: {sent} were taken");
        let server = pair.stream();
        assert!(server.most_held <= MAX_RECORD, "{what}: {} bytes were held", server.most_held);
        assert_refused(what, &mut pair);
    }
}

#[test]
fn records_at_the_limits_are_opened() {
    for version in [Tls12, Tls13] {
        let mut pair = connected(version);
        pair.send_data(&[7; MAX_PLAINTEXT]).expect("it is legal");
        pair.send_data(&[7]).expect("it is legal");
        let server = pair.stream();
        assert_eq!((server.plaintext.len(), server.most_held), (MAX_PLAINTEXT + 1, 0), "{version:?}");
    }
}

#[test]
fn a_record_that_trickles_is_held_once() {
    for version in [Tls12, Tls13] {
        let mut pair = connected(version);
        let record = pair.record(APPLICATION_DATA, &[7; MAX_PLAINTEXT], 0);
        for byte in &record {
            pair.send_raw(&[*byte]).expect("it is legal");
        }
        let server = pair.stream();
        assert_eq!((server.plaintext.len(), server.most_held), (MAX_PLAINTEXT, record.len() - 1));
    }
}

/// Honest bytes before a failure arrive.
#[test]
fn what_was_said_before_a_failure_arrives() {
    for version in [Tls12, Tls13] {
        let mut pair = connected(version);
        let good = [pair.record(APPLICATION_DATA, b"one", 0), pair.record(APPLICATION_DATA, b"two", 0)];
        let mut bad = pair.record(APPLICATION_DATA, b"three", 0);
        bad[HEADER + 10] ^= 1;
        pair.send_raw(&[&good.concat()[..], &bad].concat()).expect("it is taken");
        assert_eq!(pair.stream().plaintext, b"onetwo");
        assert_refused("a wrong byte", &mut pair);
    }
}

/// Asserts that the server has failed, with exactly one alert, which is fatal.
#[track_caller]
fn assert_refused(what: &str, pair: &mut Pair) {
    let failure = pair.stream().failure.clone().expect("it has failed");
    assert_eq!(failure.kind, FailureKind::Protocol, "{what}: {failure}");
    let answer = pair.receive_all().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(answer.alerts.len(), 1, "{what}: {:?}, {failure}", answer.alerts);
    assert_eq!(answer.alerts[0].0, FATAL, "{what}");
}

/// Alerts are messages too: two in one record, one in two (RFC 8446, section 5.1 forbids both).
#[test]
fn alerts_that_are_not_one_to_a_record_are_refused() {
    for content in [&[WARNING][..], &[WARNING, USER_CANCELED, WARNING, USER_CANCELED]] {
        let mut pair = connected(Tls13);
        pair.send(ALERT, content).expect("it is taken");
        assert_refused("an alert", &mut pair);
    }
}

#[test]
fn a_fragment_followed_by_something_else_is_an_unexpected_message() {
    let mut pair = connected(Tls13);
    pair.send(HANDSHAKE, &key_update(0)[..2]).expect("it is taken");
    pair.send_data(b"x").expect("it is taken");
    let answer = pair.receive_all().expect("what it sends can be opened");
    assert_eq!(answer.alerts, [(FATAL, UNEXPECTED_MESSAGE)]);
}
