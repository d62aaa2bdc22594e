//! A false resumption: the ServerHello accepts the session, and a certificate follows. No library does that, so the bytes
//! are made by hand (RFC 5246, sections 7.4.1.3 and 7.4.2; RFC 5077, section 3.4).

use courser_wire::hello::ClientHello;

use super::script::FaultScript;

/// What a client offers to resume, as far as the false answer has to fit it.
#[derive(Debug)]
pub(super) struct OfferedSession {
    session_id: Vec<u8>,
    ticket: bool,
    extended_master_secret: bool,
}

impl OfferedSession {
    pub(super) fn of(hello: &ClientHello<'_>) -> Self {
        Self {
            session_id: hello.session_id.to_vec(),
            ticket: hello.session_ticket.is_some_and(|ticket| !ticket.is_empty()),
            extended_master_secret: hello.extended_master_secret,
        }
    }
}

/// ServerHello with the client's session ID, Certificate and ServerHelloDone in a record; `None` for a client that offers
/// no session of ours.
pub(super) fn greeting(script: &FaultScript, offer: &OfferedSession) -> Option<Vec<u8>> {
    let offers = !offer.session_id.is_empty() && (offer.ticket || script.knows(&offer.session_id));
    if !offers {
        return None;
    }
    let certificate = vector24(&script.certificate);
    let messages = [
        message(SERVER_HELLO, &server_hello(offer, script.last_suite())),
        message(CERTIFICATE, &vector24(&certificate)),
        message(SERVER_HELLO_DONE, &[]),
    ]
    .concat();
    let length = u16::try_from(messages.len()).expect("a test certificate has below 1 KiB");
    Some([&[HANDSHAKE, 3, 3], &length.to_be_bytes()[..], &messages].concat())
}

/// A session is resumed with the suite that it began with (RFC 5246, section 7.4.1.3).
fn server_hello(offer: &OfferedSession, suite: u16) -> Vec<u8> {
    let mut hello = vec![3, 3];
    // Any random will do, but not one that ends in the mark of a downgrade (RFC 8446, section 4.1.3).
    hello.extend_from_slice(&[0x5a; 32]);
    hello.push(u8::try_from(offer.session_id.len()).expect("a session ID has 32 bytes at most"));
    hello.extend_from_slice(&offer.session_id);
    hello.extend_from_slice(&suite.to_be_bytes());
    hello.push(0);
    // renegotiation_info and, if it was offered, extended_master_secret.
    let mut extensions = vec![0xff, 0x01, 0, 1, 0];
    if offer.extended_master_secret {
        extensions.extend_from_slice(&[0, 23, 0, 0]);
    }
    hello.extend_from_slice(&[0, u8::try_from(extensions.len()).expect("nine bytes at most")]);
    hello.extend_from_slice(&extensions);
    hello
}

const HANDSHAKE: u8 = 22;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;
const SERVER_HELLO_DONE: u8 = 14;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &vector24(body)[..]].concat()
}

fn vector24(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("a test certificate has below 1 KiB").to_be_bytes();
    [&length[1..], bytes].concat()
}
