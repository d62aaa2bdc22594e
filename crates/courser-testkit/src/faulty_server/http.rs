//! Requests to a faulty server, and its answers.

use std::io::{self, Read};

use super::Fault;
use crate::{body, origin::http::wanted_size};

/// What a plain HTTP server makes of a ClientHello.
pub(super) const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What counts in a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    size: usize,
    pub(super) close: bool,
}

/// The next request; `None` when the client has closed. Requests have no bodies here.
pub(super) fn next_request(stream: &mut impl Read, received: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
            received.drain(..end + 4);
            let target = head.split([' ', '\r']).nth(1).unwrap_or_default();
            return Ok(Some(Request {
                size: wanted_size(target),
                close: head.contains("\r\nconnection: close"),
            }));
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            // A client that goes without close_notify.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// The bytes of an answer, and whether they are wrong.
pub(super) fn answer(fault: Fault, request: &Request) -> (Vec<u8>, bool) {
    let mut object = body(request.size);
    match fault {
        Fault::ShortBody => object.truncate(request.size / 2),
        Fault::WrongByte => {
            if let Some(byte) = object.get_mut(request.size / 2) {
                *byte = b'?';
            }
        }
        _ => {}
    }
    let connection = if request.close { "Connection: close\r\n" } else { "" };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{connection}\r\n", object.len());
    if fault == Fault::Truncate {
        object.truncate(request.size / 2);
    }
    let wrong = matches!(fault, Fault::ShortBody | Fault::WrongByte | Fault::Truncate);
    ([head.as_bytes(), &object].concat(), wrong)
}
