//! ClientHellos that no library of today makes, and the first bytes of the answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use courser_testkit::PATIENCE;

/// A TLS 1.2 ClientHello in one record (RFC 5246, section 7.4.1.2).
pub(super) struct Hello {
    pub(super) suites: &'static [u16],
    pub(super) groups: &'static [u16],
    /// Empty: the extension is left out.
    pub(super) schemes: &'static [u16],
}

impl Hello {
    /// Sends it and returns the first record of the answer, with its header.
    pub(super) fn send(&self, address: SocketAddr) -> Vec<u8> {
        let mut socket = TcpStream::connect(address).expect("the terminator accepts");
        socket.set_read_timeout(Some(PATIENCE)).expect("the time is not zero");
        socket.write_all(&self.record()).expect("the terminator reads");
        let mut record = vec![0; 5];
        socket.read_exact(&mut record).expect("the terminator answers");
        let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
        record.resize(5 + length, 0);
        socket.read_exact(&mut record[5..]).expect("the terminator sends the whole record");
        record
    }

    fn record(&self) -> Vec<u8> {
        let mut extensions = extension(0x000a, &vector(&codes(self.groups)));
        if !self.schemes.is_empty() {
            extensions.extend(extension(0x000d, &vector(&codes(self.schemes))));
        }
        let body = [&[3, 3][..], &[7; 32], &[0], &vector(&codes(self.suites)), &[1, 0], &vector(&extensions)]
            .concat();
        let message = [&[1, 0][..], &vector(&body)].concat();
        [&[22, 3, 1][..], &vector(&message)].concat()
    }
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector(body)].concat()
}

fn codes(codes: &[u16]) -> Vec<u8> {
    codes.iter().flat_map(|code| code.to_be_bytes()).collect()
}

/// With its length in two bytes before it.
fn vector(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("what is written here is short");
    [&length.to_be_bytes()[..], bytes].concat()
}

/// The suite that a ServerHello, the first message of `record`, chooses (RFC 5246, section 7.4.1.3).
pub(super) fn chosen_suite(record: &[u8]) -> u16 {
    assert_eq!((record[0], record[5]), (22, 2), "not a ServerHello: {record:02x?}");
    let after_session_id = 44 + usize::from(record[43]);
    u16::from_be_bytes([record[after_session_id], record[after_session_id + 1]])
}
