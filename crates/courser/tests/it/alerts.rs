//! Every alert that RFC 8446 (section 6.2, and where it says how to terminate) and RFC 5246 (section 7.2.2) demand of a
//! server, as far as a client can provoke it; those about certificates are in `client_certificates/admission.rs`. It
//! arrives in front of the FIN, and no RST comes.
//!
//! Where the library sends another alert than the one that is demanded, the row says so beside it.

mod established;
mod greeting;
mod halfway;
mod hello;

use std::net::{Shutdown, TcpStream};

use courser_testkit::client::hostile::{FATAL, HostileClient, ReceivedAll, WARNING};
use courser_testkit::client::{Client, Version};
use courser_testkit::{Courser, OriginServer};
use serde_json::Value;

use crate::stage::Stage;

/// Descriptions (RFC 8446, section 6).
const CLOSE_NOTIFY: u8 = 0;
const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const HANDSHAKE_FAILURE: u8 = 40;
const ILLEGAL_PARAMETER: u8 = 47;
const DECODE_ERROR: u8 = 50;
const DECRYPT_ERROR: u8 = 51;
const PROTOCOL_VERSION: u8 = 70;
const USER_CANCELED: u8 = 90;
const NO_RENEGOTIATION: u8 = 100;
const MISSING_EXTENSION: u8 = 109;
const UNRECOGNIZED_NAME: u8 = 112;
const CERTIFICATE_REQUIRED: u8 = 116;
const NO_APPLICATION_PROTOCOL: u8 = 120;

type Hostile = HostileClient<TcpStream>;

/// A conversation, and how it has to end.
struct Row {
    what: &'static str,
    version: Version,
    send: fn(&mut Hostile),
    /// What RFC 8446 or RFC 5246 demands.
    demanded: u8,
    /// What comes instead.
    instead: Option<u8>,
    end: &'static str,
}

const fn row(
    what: &'static str,
    version: Version,
    send: fn(&mut Hostile),
    demanded: u8,
    end: &'static str,
) -> Row {
    Row { what, version, send, demanded, instead: None, end }
}

impl Row {
    /// The library sends this alert in place of what is demanded.
    const fn but(self, instead: u8) -> Self {
        Self { instead: Some(instead), ..self }
    }
}

/// Holds each conversation after `begin`, and tells of all that end differently.
fn hold(rows: &[Row], begin: fn(&Client) -> Hostile) {
    let stage = Stage::new();
    let origin = OriginServer::echo();
    let courser = stage.serve(origin.backend());
    let mut wrong = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let mut client = begin(&stage.client(&courser, row.version));
        (row.send)(&mut client);
        let expected = row.instead.unwrap_or(row.demanded);
        if let Err(told) = ended(&courser, index + 1, &mut client, (FATAL, expected), row.end) {
            wrong.push(format!("{:?}, {}: {told}; demanded: {}", row.version, row.what, row.demanded));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Listens to the end: this alert and no other, FIN, no RST behind it, and this end in the log.
fn ended(
    courser: &Courser,
    number: usize,
    client: &mut Hostile,
    alert: (u8, u8),
    end: &str,
) -> Result<Value, String> {
    let heard = client.receive_all();
    let socket = client.stream();
    let _ = socket.shutdown(Shutdown::Write);
    let line = courser.connections_json(number).swap_remove(number - 1);
    let ReceivedAll { alerts, reset, .. } = heard.map_err(|error| format!("{error}, {line}"))?;
    if reset || socket.take_error().map_err(|error| error.to_string())?.is_some() {
        return Err(format!("a reset, after {alerts:?}"));
    }
    if alerts != [alert] || line["close_reason"] != end {
        return Err(format!("{alerts:?} {}, not {alert:?} {end}: {}", line["close_reason"], line["detail"]));
    }
    Ok(line)
}
