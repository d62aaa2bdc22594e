#![expect(clippy::cast_possible_truncation, reason = "the lengths in these tests are small")]

use super::*;

#[test]
fn a_tls13_hello_ends_what_can_be_read() {
    let mut flight = FlightReader::default();
    flight.read(&handshake(SERVER_HELLO, &hello(0x1301, &[7; 32], &tls13(&[0, 0x1d, 0, 0]))));
    let hello = flight.flight().hello.clone().expect("it is whole");
    assert_eq!((hello.version, hello.suite, hello.group), (0x0304, 0x1301, Some(0x001d)));
    assert!(flight.is_finished());
}

#[test]
fn a_retry_is_told_from_a_hello_by_its_random() {
    let mut flight = FlightReader::default();
    flight.read(&handshake(SERVER_HELLO, &hello(0x1302, &RETRY, &tls13(&[0, 0x17]))));
    assert_eq!(
        flight.flight().retry.as_ref().map(|retry| (retry.suite, retry.group)),
        Some((0x1302, Some(23)))
    );
    assert_eq!(flight.flight().hello, None);
    flight.read(&[20, 3, 3, 0, 1, 1]);
    assert!(!flight.is_finished(), "the ServerHello is still to come");
}

#[test]
fn an_old_flight_is_read_up_to_the_change_of_cipher() {
    for cut in 1..old_flight().len() {
        let mut reader = FlightReader::default();
        let whole = old_flight();
        let (first, second) = whole.split_at(cut);
        reader.read(first);
        reader.read(second);
        let flight = reader.flight();
        assert_eq!(flight.version(), Some(0x0303), "cut at {cut}");
        assert_eq!(flight.certificates, [vec![1, 2], vec![3]]);
        assert_eq!(flight.group(), Some(0x0017));
        assert_eq!(flight.key_exchange.as_ref().and_then(|exchange| exchange.scheme), Some(0x0804));
        assert_eq!((flight.tickets, flight.done), (1, true));
        assert!(reader.is_finished());
    }
}

#[test]
fn a_finite_field_is_known_by_its_size() {
    let mut flight = FlightReader::default();
    flight.read(&handshake(SERVER_HELLO, &hello(0x0033, &[7; 32], &[])));
    let exchange = [&[0, 129, 0][..], &[0xff; 128], &[0, 1, 2, 0, 1, 9, 4, 1, 0, 0]].concat();
    flight.read(&handshake(SERVER_KEY_EXCHANGE, &exchange));
    let exchange = flight.flight().key_exchange.clone().expect("it is whole");
    assert_eq!((exchange.group, exchange.prime_bits, exchange.scheme), (None, Some(1024), Some(0x0401)));
}

#[test]
fn an_alert_and_another_protocol_are_named() {
    let mut refused = FlightReader::default();
    refused.read(&[21, 3, 1, 0, 2, 2, 40]);
    assert_eq!(refused.flight().alert, Some(40));
    let mut plain = FlightReader::default();
    plain.read(b"HTTP/1.1 400 Bad Request\r\n");
    assert!(plain.flight().not_tls && plain.is_finished());
}

#[test]
fn no_byte_changed_and_no_end_cut_off_breaks_it() {
    let whole = old_flight();
    for place in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff, whole[place] ^ 0x20] {
            let mut bytes = whole.clone();
            bytes[place] = value;
            FlightReader::default().read(&bytes);
            FlightReader::default().read(&bytes[..place]);
        }
    }
}

fn old_flight() -> Vec<u8> {
    let certificates = [0, 0, 9, 0, 0, 2, 1, 2, 0, 0, 1, 3];
    let exchange = [3, 0, 0x17, 1, 4, 8, 4, 0, 1, 9];
    [
        handshake(SERVER_HELLO, &hello(0xc02f, &[7; 32], &[])),
        // Two messages in one record.
        record(
            HANDSHAKE,
            &[message(CERTIFICATE, &certificates), message(SERVER_KEY_EXCHANGE, &exchange)].concat(),
        ),
        handshake(SERVER_HELLO_DONE, &[]),
        handshake(NEW_SESSION_TICKET, &[0, 0, 0, 9, 0, 1, 5]),
        record(CHANGE_CIPHER_SPEC, &[1]),
        record(HANDSHAKE, &[0xaa; 40]),
    ]
    .concat()
}

fn hello(suite: u16, random: &[u8; 32], extensions: &[u8]) -> Vec<u8> {
    let length = (extensions.len() as u16).to_be_bytes();
    [&[3, 3][..], random, &[2, 8, 9], &suite.to_be_bytes(), &[0], &length, extensions].concat()
}

/// `supported_versions`, and `key_share` with this content.
fn tls13(share: &[u8]) -> Vec<u8> {
    [&[0, 43, 0, 2, 3, 4, 0, 51, 0, share.len() as u8][..], share].concat()
}

fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    record(HANDSHAKE, &message(kind, body))
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 0, 0, body.len() as u8][..], body].concat()
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3], &(content.len() as u16).to_be_bytes()[..], content].concat()
}

const RETRY: [u8; 32] = message::RETRY;
