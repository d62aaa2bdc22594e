//! Connections built byte by byte, each with one thing changed.

use std::borrow::Cow;

use courser_wire::record::*;

const LIMIT: usize = 1 << 16;
/// Type, and a length of three bytes (RFC 8446 section 4).
const MESSAGE_HEADER: usize = 4;
/// The most that a record in the clear may carry (RFC 8446 section 5.1).
const MAX_FRAGMENT: usize = 1 << 14;

/// A handshake message, cut into records of at most `size` bytes.
fn records(kind: u8, body: &[u8], size: usize) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[kind], &length[1..], body].concat();
    let mut bytes = Vec::new();
    for fragment in message.chunks(size) {
        bytes.extend_from_slice(&[22, 3, 1]);
        bytes.extend_from_slice(&u16::try_from(fragment.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(fragment);
    }
    bytes
}

#[test]
fn one_record_is_borrowed() {
    let bytes = records(1, b"body", 100);
    assert!(matches!(assemble(&bytes, LIMIT), Ok(Assembly::Complete(Cow::Borrowed(b"body")))));
}

#[test]
fn several_records_are_joined() {
    for size in 1..8 {
        let bytes = records(1, b"body", size);
        let Ok(Assembly::Complete(Cow::Owned(body))) = assemble(&bytes, LIMIT) else {
            panic!("records of {size} bytes were not joined");
        };
        assert_eq!(body, b"body");
    }
}

#[test]
fn every_prefix_is_incomplete_and_the_last_byte_completes() {
    for size in [1, 3, 100] {
        let bytes = records(1, b"a longer body", size);
        let mut assembler = Assembler::new(LIMIT);
        for end in 0..bytes.len() {
            assert_eq!(assembler.assemble(&bytes[..end]), Ok(Assembly::Incomplete), "{end} of {size}");
        }
        assert!(matches!(assembler.assemble(&bytes), Ok(Assembly::Complete(_))));
    }
}

#[test]
fn what_follows_in_the_record_is_left_alone() {
    let mut bytes = records(1, b"body", 100);
    bytes[4] += 3;
    bytes.extend_from_slice(b"...and the next record");
    assert_eq!(assemble(&bytes, LIMIT), Ok(Assembly::Complete(Cow::Borrowed(b"body"))));
}

#[test]
fn an_empty_body_is_complete() {
    assert_eq!(assemble(&records(1, b"", 9), LIMIT), Ok(Assembly::Complete(Cow::Borrowed(b""))));
}

#[test]
fn other_protocols_are_named() {
    let cases: [(&[u8], NotHello); 8] = [
        (b"GET / HTTP/1.1\r\n", NotHello::PlainHttp),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NotHello::PlainHttp),
        (b"PROXY TCP4 ", NotHello::ProxyHeader),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11", NotHello::ProxyHeader),
        (&[0x80, 0x2e, 1, 3, 1], NotHello::Sslv2),
        (&[0x80, 0x2e, 2], NotHello::NotTls),
        (b"SSH-2.0-x\r\n", NotHello::NotTls),
        (&[22, 2, 0], NotHello::NotTls),
    ];
    for (bytes, expected) in cases {
        assert_eq!(assemble(bytes, LIMIT), Err(expected), "{bytes:?}");
    }
}

#[test]
fn a_beginning_that_could_be_http_is_waited_for_and_no_longer() {
    for prefix in [&b"G"[..], b"PR", b"OPT", b"\r\n\r\n", &[0x80, 0x2e]] {
        assert_eq!(assemble(prefix, LIMIT), Ok(Assembly::Incomplete), "{prefix:?}");
    }
    for odd in [&b"X"[..], b"GO", b"PROP", b"\r\nA"] {
        assert_eq!(assemble(odd, LIMIT), Err(NotHello::NotTls), "{odd:?}");
    }
}

#[test]
fn records_that_may_not_come_are_named() {
    let cases: [(&[u8], NotHello); 7] = [
        (&[21, 3, 1, 0, 2, 2, 40], NotHello::Alert(40)),
        (&[21, 3, 1, 0, 3, 2, 40, 0], NotHello::UnexpectedType(21)),
        (&[23, 3, 3, 0, 1], NotHello::UnexpectedType(23)),
        (&[20, 3, 3, 0, 1], NotHello::UnexpectedType(20)),
        (&[22, 3, 1, 0, 0], NotHello::ZeroLengthRecord),
        (&[22, 3, 1, 0x40, 1], NotHello::OversizedRecord),
        (&[22, 3, 1, 0, 9, 2], NotHello::NotClientHello(2)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(assemble(bytes, LIMIT), Err(expected), "{bytes:?}");
    }
}

#[test]
fn nothing_may_come_between_the_parts() {
    let mut bytes = records(1, b"body", 3)[..8].to_vec();
    bytes.extend_from_slice(&[20, 3, 3, 0, 1, 1]);
    assert_eq!(assemble(&bytes, LIMIT), Err(NotHello::UnexpectedType(20)));
}

#[test]
fn the_largest_record_is_accepted() {
    let body = vec![7; MAX_FRAGMENT - MESSAGE_HEADER];
    assert!(matches!(assemble(&records(1, &body, MAX_FRAGMENT), LIMIT), Ok(Assembly::Complete(_))));
}

#[test]
fn a_declared_length_beyond_the_limit_is_refused_with_its_last_byte() {
    assert_eq!(assemble(&[22, 3, 1, 0, 200, 1, 0, 1, 0], 100), Err(NotHello::TooLong));
    assert_eq!(assemble(&[22, 3, 1, 0, 200, 1, 0, 1], 100), Ok(Assembly::Incomplete));
}

#[test]
fn the_limit_holds_however_the_bytes_arrive() {
    let bytes = records(1, b"body", 1);
    let needed = bytes.len();
    assert!(matches!(assemble(&bytes, needed), Ok(Assembly::Complete(_))));
    assert_eq!(assemble(&bytes, needed - 1), Err(NotHello::TooLong));
    assert_eq!(assemble(&bytes[..needed - 1], needed - 1), Err(NotHello::TooLong));
    assert_eq!(assemble(&bytes[..needed - 2], needed - 1), Ok(Assembly::Incomplete));
}

#[test]
fn a_hello_that_just_fits_is_waited_for() {
    let bytes = records(1, b"body", 100);
    assert_eq!(assemble(&bytes[..9], bytes.len()), Ok(Assembly::Incomplete));
    assert!(matches!(assemble(&bytes, bytes.len()), Ok(Assembly::Complete(_))));
    assert_eq!(assemble(&bytes[..9], bytes.len() - 1), Err(NotHello::TooLong));
}
