//! Extensions of a ClientHello that the library has written: it does not report otherwise what it offers.

/// Session ticket (RFC 5077, section 3.2).
pub(crate) const SESSION_TICKET: u16 = 35;

/// Pre-shared keys (RFC 8446, section 4.2.11).
pub(crate) const PRE_SHARED_KEY: u16 = 41;

/// Bytes before the session ID: headers of record and handshake message, version, random (RFC 8446, section 4.1.2).
const FIXED: usize = 5 + 4 + 2 + 32;

/// The content of an extension of a ClientHello, given as the record it is in.
pub(crate) fn extension(record: &[u8], wanted: u16) -> Option<&[u8]> {
    let (_session_id, rest) = vector(record.get(FIXED..)?, 1)?;
    let (_suites, rest) = vector(rest, 2)?;
    let (_compressions, rest) = vector(rest, 1)?;
    let (mut extensions, _) = vector(rest, 2)?;
    while let Some((kind, rest)) = extensions.split_at_checked(2) {
        let (content, rest) = vector(rest, 2)?;
        if kind == wanted.to_be_bytes() {
            return Some(content);
        }
        extensions = rest;
    }
    None
}

/// A vector behind its length of `width` bytes, and what follows (RFC 8446, section 3.4).
fn vector(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(width)?;
    let length = length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut hello = vec![0; FIXED];
        hello.extend([2, 7, 7, 0, 2, 0x13, 1, 1, 0]);
        hello.extend([0, u8::try_from(extensions.len()).expect("short")]);
        hello.extend(extensions);
        hello
    }

    #[test]
    fn an_extension_is_found_wherever_it_stands() {
        let hello = hello(&[0, 35, 0, 0, 0, 1, 0, 1, 9, 0, 41, 0, 2, 5, 6]);
        assert_eq!(extension(&hello, SESSION_TICKET), Some(&[][..]));
        assert_eq!(extension(&hello, PRE_SHARED_KEY), Some(&[5, 6][..]));
        assert_eq!(extension(&hello, 2), None);
    }

    #[test]
    fn a_hello_that_is_cut_has_none() {
        let hello = hello(&[0, 41, 0, 2, 5, 6]);
        assert!((0..hello.len()).all(|length| extension(&hello[..length], PRE_SHARED_KEY).is_none()));
    }
}
