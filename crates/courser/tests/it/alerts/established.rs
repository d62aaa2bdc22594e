//! Conversations after the handshake.

use courser_testkit::OriginServer;
use courser_testkit::client::Version::{self, Tls12, Tls13};
use courser_testkit::client::hostile::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, MAX_PLAINTEXT, key_update, plain_record,
};

use super::*;

const END: &str = "bad_record";

/// A NewSessionTicket: lifetime, age_add, no nonce, a ticket of one byte, no extensions (RFC 8446, section 4.6.1).
const TICKET: [u8; 18] = [4, 0, 0, 14, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 7, 0, 0];

/// A message of this type with so many zero bytes.
fn message(kind: u8, length: u8) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, length];
    message.resize(4 + usize::from(length), 0);
    message
}

fn send(client: &mut Hostile, kind: u8, content: &[u8]) {
    client.send(kind, content).unwrap();
}

/// Sends a thing until the server refuses it; it may close in the middle of that.
fn flood(client: &mut Hostile, kind: u8, content: &[u8]) {
    // Fewer than would fill what the server drains before it closes.
    (0..100).for_each(|_| {
        let _ = client.send(kind, content);
    });
}

/// RFC 8446, section 6.2 "unexpected_message", and where it is demanded: 4 (messages out of order), 4.6.3, 5 (record
/// types, change_cipher_spec), 5.1 (interleaving, empty fragments), 5.4 (no content type).
const UNEXPECTED: &[Row] = &[
    row("NewSessionTicket", Tls13, |c| send(c, HANDSHAKE, &TICKET), UNEXPECTED_MESSAGE, END),
    row("Finished", Tls13, |c| send(c, HANDSHAKE, &message(20, 32)), UNEXPECTED_MESSAGE, END),
    row("EndOfEarlyData", Tls13, |c| send(c, HANDSHAKE, &message(5, 0)), UNEXPECTED_MESSAGE, END),
    row("HelloRequest", Tls13, |c| send(c, HANDSHAKE, &message(0, 0)), UNEXPECTED_MESSAGE, END),
    row("a message of no type", Tls13, |c| send(c, HANDSHAKE, &message(99, 1)), UNEXPECTED_MESSAGE, END),
    row("no content type", Tls13, |c| c.send_padded(0, &[], 20).unwrap(), UNEXPECTED_MESSAGE, END),
    row("a content type that is none", Tls13, |c| send(c, 99, b"x"), UNEXPECTED_MESSAGE, END)
        .but(DECODE_ERROR),
    row(
        "an encrypted change_cipher_spec",
        Tls13,
        |c| send(c, CHANGE_CIPHER_SPEC, &[1]),
        UNEXPECTED_MESSAGE,
        END,
    ),
    row(
        "a change_cipher_spec",
        Tls13,
        |c| c.send_raw(&plain_record(CHANGE_CIPHER_SPEC, &[1])).unwrap(),
        UNEXPECTED_MESSAGE,
        END,
    ),
    row("an empty handshake record", Tls13, |c| flood(c, HANDSHAKE, &[]), UNEXPECTED_MESSAGE, END),
    row(
        "data within a message",
        Tls13,
        |c| {
            send(c, HANDSHAKE, &key_update(0)[..2]);
            send(c, APPLICATION_DATA, b"x");
        },
        UNEXPECTED_MESSAGE,
        END,
    ),
    row(
        "an alert within a message",
        Tls13,
        |c| {
            send(c, HANDSHAKE, &key_update(0)[..2]);
            send(c, ALERT, &[1, USER_CANCELED]);
        },
        UNEXPECTED_MESSAGE,
        END,
    ),
    row(
        "a key update that is not the last message of its record",
        Tls13,
        |c| send(c, HANDSHAKE, &[key_update(0), key_update(0)].concat()),
        UNEXPECTED_MESSAGE,
        END,
    ),
    row("empty records", Tls13, |c| flood(c, APPLICATION_DATA, &[]), UNEXPECTED_MESSAGE, END),
    row("too many user_canceled", Tls13, |c| flood(c, ALERT, &[1, USER_CANCELED]), UNEXPECTED_MESSAGE, END),
    row(
        "too many key updates",
        Tls13,
        |c| (0..100).for_each(|_| drop(c.update_keys(true, 5, 0))),
        UNEXPECTED_MESSAGE,
        END,
    ),
    row("Finished", Tls12, |c| send(c, HANDSHAKE, &message(20, 12)), UNEXPECTED_MESSAGE, END),
    row("ClientKeyExchange", Tls12, |c| send(c, HANDSHAKE, &message(16, 33)), UNEXPECTED_MESSAGE, END),
    row("a content type that is none", Tls12, |c| send(c, 99, b"x"), UNEXPECTED_MESSAGE, END)
        .but(DECODE_ERROR),
    row("change_cipher_spec", Tls12, |c| send(c, CHANGE_CIPHER_SPEC, &[1]), UNEXPECTED_MESSAGE, END)
        .but(DECODE_ERROR),
    row(
        "data within a message",
        Tls12,
        |c| {
            send(c, HANDSHAKE, &[1, 0]);
            send(c, APPLICATION_DATA, b"x");
        },
        UNEXPECTED_MESSAGE,
        END,
    ),
    row("empty records", Tls12, |c| flood(c, APPLICATION_DATA, &[]), UNEXPECTED_MESSAGE, END),
    row("too many warnings", Tls12, |c| flood(c, ALERT, &[1, USER_CANCELED]), UNEXPECTED_MESSAGE, END),
];

fn tampered(client: &mut Hostile, at: usize) {
    let mut record = client.record(APPLICATION_DATA, b"tampered with", 0);
    record[at] ^= 1;
    client.send_raw(&record).unwrap();
}

/// The record layer and what is read in messages (RFC 8446, sections 4.6.3, 5.1, 5.2, 6; RFC 5246, section 6.2).
const MALFORMED: &[Row] = &[
    row("a wrong byte", Tls13, |c| tampered(c, 8), BAD_RECORD_MAC, END),
    row("a wrong byte", Tls12, |c| tampered(c, 15), BAD_RECORD_MAC, END),
    row("a record shorter than its tag", Tls13, short, BAD_RECORD_MAC, END),
    row("a record shorter than its tag", Tls12, short, BAD_RECORD_MAC, END),
    row(
        "one byte too many",
        Tls13,
        |c| send(c, APPLICATION_DATA, &[0; MAX_PLAINTEXT + 1]),
        RECORD_OVERFLOW,
        END,
    ),
    row(
        "one byte too many of padding",
        Tls13,
        |c| c.send_padded(APPLICATION_DATA, b"x", MAX_PLAINTEXT).unwrap(),
        RECORD_OVERFLOW,
        END,
    ),
    row(
        "one byte too many",
        Tls12,
        |c| send(c, APPLICATION_DATA, &[0; MAX_PLAINTEXT + 1]),
        RECORD_OVERFLOW,
        END,
    ),
    row("too long a record", Tls13, too_long, RECORD_OVERFLOW, END).but(DECODE_ERROR),
    row("too long a record", Tls12, too_long, RECORD_OVERFLOW, END).but(DECODE_ERROR),
    row(
        "a key update that asks for 2",
        Tls13,
        |c| send(c, HANDSHAKE, &key_update(2)),
        ILLEGAL_PARAMETER,
        END,
    ),
    row("a key update of two bytes", Tls13, |c| send(c, HANDSHAKE, &message(24, 2)), DECODE_ERROR, END),
    row("a key update of no byte", Tls13, |c| send(c, HANDSHAKE, &message(24, 0)), DECODE_ERROR, END),
    row("an alert of one byte", Tls13, |c| send(c, ALERT, &[1]), DECODE_ERROR, END),
    row("an alert of three bytes", Tls13, |c| send(c, ALERT, &[1, USER_CANCELED, 0]), DECODE_ERROR, END),
    row("an alert of one byte", Tls12, |c| send(c, ALERT, &[1]), DECODE_ERROR, END),
];

fn short(client: &mut Hostile) {
    client.send_raw(&plain_record(APPLICATION_DATA, &[0; 10])).unwrap();
}

/// A record that is longer than any may be (RFC 8446, section 5.2; RFC 5246, section 6.2.3 allows more).
fn too_long(client: &mut Hostile) {
    client.send_raw(&plain_record(APPLICATION_DATA, &[0; MAX_PLAINTEXT + 2049])).unwrap();
}

/// One that has got an answer: whatever it sends next does not come with its Finished.
fn connect(client: &Client) -> Hostile {
    let mut client = Hostile::connect(client).expect("an honest handshake");
    client.send_data(b"hello").expect("the server listens");
    assert_eq!(client.receive_data(5).expect("the server answers"), b"hello");
    client
}

#[test]
fn what_was_not_to_come_is_an_unexpected_message() {
    hold(UNEXPECTED, connect);
}

#[test]
fn what_cannot_be_opened_or_read_has_its_alert() {
    hold(MALFORMED, connect);
}

/// RFC 8446, section 6.1: the closing side answers; data before it has arrived.
#[test]
fn close_notify_is_answered_with_close_notify() {
    each_version(|client, what| {
        client.send_data(b"data").unwrap();
        client.send_close_notify().unwrap();
        let answer = client.receive_all().unwrap();
        assert_eq!(answer.data, b"data", "{what:?}");
        assert_eq!((answer.alerts, answer.reset), (vec![(WARNING, CLOSE_NOTIFY)], false), "{what:?}");
        "done"
    });
}

/// RFC 8446, section 6.1: user_canceled is followed by close_notify, and means nothing by itself.
#[test]
fn user_canceled_alone_changes_nothing() {
    each_version(|client, what| {
        client.send_alert(WARNING, USER_CANCELED).unwrap();
        client.send_data(b"data").unwrap();
        assert_eq!(client.receive_data(4).unwrap(), b"data", "{what:?}");
        client.send_close_notify().unwrap();
        assert_eq!(client.receive_all().unwrap().alerts, [(WARNING, CLOSE_NOTIFY)], "{what:?}");
        "done"
    });
}

/// RFC 8446, section 6.2: whoever is told of an error closes, and says nothing to it.
#[test]
fn a_fatal_alert_is_not_answered() {
    each_version(|client, what| {
        client.send_alert(FATAL, HANDSHAKE_FAILURE).unwrap();
        let answer = client.receive_all().unwrap();
        assert_eq!((answer.alerts, answer.reset), (vec![], false), "{what:?}");
        "client_alert"
    });
}

/// RFC 5246, section 7.2.2: a warning, and the connection goes on.
#[test]
fn a_renegotiation_is_declined_with_a_warning() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    let orderly = stage.client(&courser, Tls12);
    let mut client = connect(&orderly);
    client.send(HANDSHAKE, &greeting::hello(&orderly).record()[5..]).unwrap();
    client.send_data(b"data").unwrap();
    client.send_close_notify().unwrap();
    let answer = client.receive_all().unwrap();
    assert_eq!(answer.data, b"data");
    assert_eq!(answer.alerts, [(WARNING, NO_RENEGOTIATION), (WARNING, CLOSE_NOTIFY)]);
}

/// RFC 8446, section 4.1.2: there is none in TLS 1.3.
#[test]
fn a_renegotiation_of_tls_1_3_is_an_unexpected_message() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    let orderly = stage.client(&courser, Tls13);
    let mut client = connect(&orderly);
    client.send(HANDSHAKE, &greeting::hello(&orderly).record()[5..]).unwrap();
    ended(&courser, 1, &mut client, (FATAL, UNEXPECTED_MESSAGE), END).unwrap();
}

/// Holds a conversation in either version, and asserts the end that it returns.
fn each_version(converse: fn(&mut Hostile, Version) -> &'static str) {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.serve(origin.backend());
    for (index, version) in [Tls12, Tls13].into_iter().enumerate() {
        let mut client = connect(&stage.client(&courser, version));
        let end = converse(&mut client, version);
        let _ = client.stream().shutdown(Shutdown::Write);
        let line = courser.connections_json(index + 1).swap_remove(index);
        assert_eq!(line["close_reason"], end, "{line}");
    }
}
