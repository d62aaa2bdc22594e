//! Conversations between the server's first flight and the client's Finished.

use courser_testkit::client::Version::{Tls12, Tls13};
use courser_testkit::client::hostile::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, plain_record};

use super::*;

const END: &str = "handshake_failed";

fn send(client: &mut Hostile, kind: u8, content: &[u8]) {
    client.send(kind, content).unwrap();
}

/// Finished with a wrong byte, where an honest one would come.
fn bad_finished(client: &mut Hostile) {
    let flight = client.flight().clone();
    let mut finished = flight.finished;
    *finished.last_mut().expect("it is not empty") ^= 1;
    if !flight.messages.is_empty() {
        send(client, HANDSHAKE, &flight.messages);
        client.send_change_cipher_spec().unwrap();
    }
    send(client, HANDSHAKE, &finished);
}

fn raw(client: &mut Hostile, kind: u8, content: &[u8]) {
    client.send_raw(&plain_record(kind, content)).unwrap();
}

/// RFC 8446, sections 4.4.4, 5 and 6.2; RFC 5246, sections 7.1, 7.2.2 and 7.4.9.
const ROWS: &[Row] = &[
    row("a wrong Finished", Tls13, bad_finished, DECRYPT_ERROR, END),
    row("a wrong Finished", Tls12, bad_finished, DECRYPT_ERROR, END),
    row(
        "a Finished of 12 bytes",
        Tls13,
        |c| send(c, HANDSHAKE, &[20, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        DECODE_ERROR,
        END,
    )
    .but(DECRYPT_ERROR),
    row("data before Finished", Tls13, |c| send(c, APPLICATION_DATA, b"x"), UNEXPECTED_MESSAGE, END),
    row(
        "a key update before Finished",
        Tls13,
        |c| send(c, HANDSHAKE, &[24, 0, 0, 1, 0]),
        UNEXPECTED_MESSAGE,
        END,
    ),
    row(
        "a certificate that nobody asked for",
        Tls13,
        |c| send(c, HANDSHAKE, &[11, 0, 0, 4, 0, 0, 0, 0]),
        UNEXPECTED_MESSAGE,
        END,
    ),
    row("a wrong change_cipher_spec", Tls13, |c| raw(c, CHANGE_CIPHER_SPEC, &[2]), UNEXPECTED_MESSAGE, END),
    row("a long change_cipher_spec", Tls13, |c| raw(c, CHANGE_CIPHER_SPEC, &[1, 1]), UNEXPECTED_MESSAGE, END),
    row("a record in the clear", Tls13, |c| raw(c, HANDSHAKE, &[20, 0, 0, 0]), UNEXPECTED_MESSAGE, END)
        .but(BAD_RECORD_MAC),
    row("a wrong tag", Tls13, |c| raw(c, APPLICATION_DATA, &[0; 40]), BAD_RECORD_MAC, END),
    row(
        "data within a message",
        Tls13,
        |c| {
            send(c, HANDSHAKE, &[20, 0]);
            send(c, APPLICATION_DATA, b"x");
        },
        UNEXPECTED_MESSAGE,
        END,
    ),
    row(
        "Finished before the key exchange",
        Tls12,
        |c| send(c, HANDSHAKE, &[20, 0, 0, 0]),
        UNEXPECTED_MESSAGE,
        END,
    ),
    row("data before the key exchange", Tls12, |c| send(c, APPLICATION_DATA, b"x"), UNEXPECTED_MESSAGE, END),
    row(
        "change_cipher_spec before the key exchange",
        Tls12,
        |c| raw(c, CHANGE_CIPHER_SPEC, &[1]),
        UNEXPECTED_MESSAGE,
        END,
    ),
    row("a key exchange cut short", Tls12, |c| send(c, HANDSHAKE, &[16, 0, 0, 2, 32, 0]), DECODE_ERROR, END),
    row(
        "a point that is none",
        Tls12,
        |c| send(c, HANDSHAKE, &[16, 0, 0, 3, 2, 0, 0]),
        ILLEGAL_PARAMETER,
        END,
    ),
];

#[test]
fn each_fault_in_a_handshake_has_its_alert() {
    hold(ROWS, |client| {
        Hostile::start_handshake(client, Hostile::socket(client).unwrap()).expect("an honest beginning")
    });
}

/// RFC 8446, section 4.4.2.4: certificate_required; RFC 5246, section 7.4.6: handshake_failure.
#[test]
fn who_has_to_show_a_certificate_and_shows_none_is_told_so() {
    let stage = Stage::new();
    let origin = OriginServer::echo();
    let setup = stage.courser().backend(origin.backend());
    let courser = setup.args(["--client-auth", "required", "--client-ca"]).arg(&stage.root).start();
    for (index, (version, alert)) in
        [(Tls13, CERTIFICATE_REQUIRED), (Tls12, HANDSHAKE_FAILURE)].into_iter().enumerate()
    {
        let client = stage.client(&courser, version);
        let mut client = Hostile::start_handshake(&client, Hostile::socket(&client).unwrap()).unwrap();
        let _ = client.finish();
        ended(&courser, index + 1, &mut client, (FATAL, alert), "no_client_certificate").unwrap();
    }
}
