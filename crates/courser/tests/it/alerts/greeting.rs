//! Conversations that begin with a ClientHello that the server cannot or may not answer.

use courser_testkit::client::Version::{Tls12, Tls13};
use courser_testkit::client::hostile::{HANDSHAKE, plain_record};

use super::hello::{
    ALPN, Hello, KEY_SHARE, SERVER_NAME, SIGNATURE_ALGORITHMS, SUPPORTED_GROUPS, SUPPORTED_VERSIONS,
};
use super::*;
use crate::stage::only_line;
use crate::support::openssl;

/// A ClientHello, and how the server refuses it.
struct Refusal {
    what: &'static str,
    version: Version,
    change: fn(Hello) -> Vec<u8>,
    demanded: u8,
    instead: Option<u8>,
    end: &'static str,
}

const fn refusal(
    what: &'static str,
    version: Version,
    change: fn(Hello) -> Vec<u8>,
    demanded: u8,
    end: &'static str,
) -> Refusal {
    Refusal { what, version, change, demanded, instead: None, end }
}

impl Refusal {
    /// The server sends this alert in place of what is demanded.
    const fn but(self, instead: u8) -> Self {
        Self { instead: Some(instead), ..self }
    }
}

/// RFC 8446, sections 4.1.2, 4.1.3, 4.2, 4.2.8, 4.2.9, 9.2; RFC 5246, section 7.4.1.2; RFC 7301, section 3.2; RFC 6066.
const REFUSALS: &[Refusal] = &[
    refusal(
        "no common suite",
        Tls13,
        |mut h| {
            h.suites = vec![0x13, 0x7f];
            h.record()
        },
        HANDSHAKE_FAILURE,
        "no_common_suite",
    ),
    refusal(
        "no common suite",
        Tls12,
        |mut h| {
            h.suites = vec![0, 0x0a];
            h.record()
        },
        HANDSHAKE_FAILURE,
        "no_common_suite",
    ),
    refusal(
        "TLS 1.1",
        Tls12,
        |mut h| {
            h.head[1] = 2;
            h = h.without(SUPPORTED_VERSIONS);
            h.record()
        },
        PROTOCOL_VERSION,
        "no_common_version",
    ),
    refusal(
        "versions that are none",
        Tls13,
        |h| h.with(SUPPORTED_VERSIONS, &[2, 3, 2]).record(),
        PROTOCOL_VERSION,
        "no_common_version",
    ),
    refusal(
        "no signature algorithms",
        Tls13,
        |h| h.without(SIGNATURE_ALGORITHMS).record(),
        MISSING_EXTENSION,
        "no_usable_certificate",
    )
    .but(HANDSHAKE_FAILURE),
    refusal(
        "no groups",
        Tls13,
        |h| h.without(SUPPORTED_GROUPS).record(),
        MISSING_EXTENSION,
        "handshake_failed",
    )
    .but(HANDSHAKE_FAILURE),
    refusal("no key share", Tls13, |h| h.without(KEY_SHARE).record(), MISSING_EXTENSION, "handshake_failed")
        .but(HANDSHAKE_FAILURE),
    refusal(
        "a compression",
        Tls13,
        |mut h| {
            h.compressions = vec![1];
            h.record()
        },
        ILLEGAL_PARAMETER,
        "handshake_failed",
    ),
    refusal(
        "no null compression",
        Tls12,
        |mut h| {
            h.compressions = vec![1];
            h.record()
        },
        ILLEGAL_PARAMETER,
        "handshake_failed",
    ),
    refusal(
        "an extension twice",
        Tls13,
        |mut h| {
            let again = h.extensions[0].clone();
            h.extensions.push(again);
            h.record()
        },
        ILLEGAL_PARAMETER,
        "malformed_hello",
    ),
    refusal(
        "a share whose length is wrong",
        Tls13,
        |h| h.with(KEY_SHARE, &[0, 6, 0, 29, 0, 32, 1, 2]).record(),
        DECODE_ERROR,
        "malformed_hello",
    ),
    refusal(
        "a share that is no point",
        Tls13,
        |h| h.with(KEY_SHARE, &[0, 6, 0, 29, 0, 2, 1, 2]).record(),
        ILLEGAL_PARAMETER,
        "handshake_failed",
    ),
    refusal(
        "a hello cut short",
        Tls13,
        |h| {
            let whole = h.record();
            let mut cut = whole[5..60].to_vec();
            cut[1..4].copy_from_slice(&[0, 0, 51]);
            plain_record(HANDSHAKE, &cut)
        },
        DECODE_ERROR,
        "malformed_hello",
    ),
    refusal(
        "another message",
        Tls13,
        |_| plain_record(HANDSHAKE, &[2, 0, 0, 1, 0]),
        UNEXPECTED_MESSAGE,
        "malformed_hello",
    ),
];

/// The orderly client's ClientHello.
pub(super) fn hello(client: &Client) -> Hello {
    let mut record = Vec::new();
    client.session().write_tls(&mut record).unwrap();
    Hello::read(&record)
}

fn unkeyed(client: &Client) -> Hostile {
    Hostile::unkeyed(Hostile::socket(client).unwrap())
}

#[test]
fn each_hello_that_cannot_be_answered_has_its_alert() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    let mut wrong = Vec::new();
    for (index, refusal) in REFUSALS.iter().enumerate() {
        let client = stage.client(&courser, refusal.version);
        let mut hostile = unkeyed(&client);
        hostile.send_raw(&(refusal.change)(hello(&client))).unwrap();
        let expected = refusal.instead.unwrap_or(refusal.demanded);
        if let Err(told) = ended(&courser, index + 1, &mut hostile, (FATAL, expected), refusal.end) {
            wrong.push(format!(
                "{:?}, {}: {told}; demanded: {}",
                refusal.version, refusal.what, refusal.demanded
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The alert is under the keys of the handshake: OpenSSL reads it.
#[test]
fn a_protocol_that_nobody_serves_has_its_alert_in_tls_1_3() {
    let stage = Stage::new();
    let courser = stage.courser().backend("127.0.0.1:9").args(["--alpn", "http/1.1"]).start();
    let Some(said) = openssl(courser.address(), "-tls1_3 -alpn h9") else { return };
    said.has("no application protocol");
    assert_eq!(only_line(&courser)["close_reason"], "handshake_failed");
}

/// RFC 6066, section 3; RFC 7301, section 3.2.
#[test]
fn a_name_and_a_protocol_that_nobody_serves_have_their_alerts() {
    let stage = Stage::new();
    let setup = stage.courser().backend("127.0.0.1:9");
    let courser = setup.args(["--unknown-name", "refuse", "--alpn", "http/1.1"]).start();
    let name = [&[0, 16, 0, 0, 13][..], b"other.example"].concat();
    let conversations: [(u16, &[u8], u8, &str); 2] = [
        (SERVER_NAME, &name, UNRECOGNIZED_NAME, "unknown_name"),
        (ALPN, &[0, 3, 2, b'h', b'9'], NO_APPLICATION_PROTOCOL, "handshake_failed"),
    ];
    let mut number = 0;
    for version in [Tls12, Tls13] {
        for (extension, content, alert, end) in conversations {
            if version == Tls13 && extension == ALPN {
                continue; // it is sent encrypted there, see the test below
            }
            number += 1;
            let client = stage.client(&courser, version);
            let mut hostile = unkeyed(&client);
            hostile.send_raw(&hello(&client).with(extension, content).record()).unwrap();
            ended(&courser, number, &mut hostile, (FATAL, alert), end).unwrap();
        }
    }
}
