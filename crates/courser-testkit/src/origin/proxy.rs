//! Cuts a PROXY header, version 1 or 2, off the start of a connection, without understanding what is in it.
//! (HAProxy's specification, sections 2.1 and 2.2.)

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Reads until the header is complete and returns it; what came after it stays in `received`.
pub(super) async fn take_header(
    stream: &mut (impl AsyncRead + Unpin),
    received: &mut Vec<u8>,
) -> io::Result<Vec<u8>> {
    loop {
        if let Some(length) = header_length(received)? {
            let rest = received.split_off(length);
            return Ok(std::mem::replace(received, rest));
        }
        if stream.read_buf(received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The length of the header that `received` starts with, `None` while it is not complete.
fn header_length(received: &[u8]) -> io::Result<Option<usize>> {
    let whole = if received.starts_with(b"PROXY ") {
        received.windows(2).position(|pair| pair == b"\r\n").map(|end| end + 2)
    } else if received.starts_with(V2_SIGNATURE) {
        received.get(14..16).map(|length| 16 + usize::from(u16::from_be_bytes([length[0], length[1]])))
    } else if received.len() >= V2_SIGNATURE.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no PROXY header"));
    } else {
        None
    };
    Ok(whole.filter(|&length| received.len() >= length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_recognised_only_when_complete() {
        let v1 = b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET";
        assert_eq!(header_length(&v1[..20]).unwrap(), None);
        assert_eq!(header_length(v1).unwrap(), Some(v1.len() - 3));
        let v2 = [V2_SIGNATURE.as_slice(), &[0x20, 0, 0, 2, 9, 9], b"GET"].concat();
        assert_eq!(header_length(&v2[..17]).unwrap(), None);
        assert_eq!(header_length(&v2).unwrap(), Some(18));
        assert!(header_length(b"GET / HTTP/1.1\r\n").is_err());
    }
}
