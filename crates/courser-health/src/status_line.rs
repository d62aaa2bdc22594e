//! The first line of an HTTP answer, as far as a check needs it.

/// Bytes that decide: `HTTP/1.1 200` and the one after.
pub const LENGTH: usize = 13;

/// The bytes are not the beginning of an answer in HTTP/1.0 or HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHttp;

/// The status code at the front of `bytes` (RFC 9112, section 4); `None` until it is whole. [`LENGTH`] bytes always decide.
///
/// # Errors
/// As soon as they cannot become a status line.
pub fn read(bytes: &[u8]) -> Result<Option<u16>, NotHttp> {
    let fits = |(index, byte): (usize, &u8)| match index {
        0..=6 => *byte == b"HTTP/1."[index],
        7 | 10 | 11 => byte.is_ascii_digit(),
        8 => *byte == b' ',
        9 => (b'1'..=b'9').contains(byte),
        // Some servers send no space where there is no reason phrase.
        _ => matches!(byte, b' ' | b'\r' | b'\n'),
    };
    let front = &bytes[..bytes.len().min(LENGTH)];
    if !front.iter().enumerate().all(fits) {
        return Err(NotHttp);
    }
    let number = |digits: &[u8]| digits.iter().fold(0, |sum, digit| 10 * sum + u16::from(digit - b'0'));
    Ok((front.len() == LENGTH).then(|| number(&front[9..12])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_and_what_is_no_status_line_is_refused_as_soon_as_it_shows() {
        assert_eq!(read(b"HTTP/1.1 200 OK\r\n"), Ok(Some(200)));
        assert_eq!(read(b"HTTP/1.0 503\r\n"), Ok(Some(503)));
        assert_eq!(read(b"HTTP/1.1 200"), Ok(None), "it may be four digits");
        for wrong in ["SSH-2.0", "HTTP/2.0 200 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 020 OK", "http/1.1 200 OK"]
        {
            assert_eq!(read(wrong.as_bytes()), Err(NotHttp), "{wrong}");
        }
        assert_eq!(read(b"X"), Err(NotHttp));
    }
}
