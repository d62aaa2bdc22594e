//! Headers byte by byte.

use super::field::next_field;
use super::header::{ALPN, AUTHORITY, CRC32C, MAX_UNIQUE_ID, SIGNATURE};
use super::ssl::SSL;
use super::*;
use crate::bytes::Reader;
use crate::proxy::{Addresses, Malformed};

fn addresses(source: &str, destination: &str) -> Addresses<'static> {
    Addresses::Ip { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
}

fn written(header: &ProxyHeader<'_>) -> Vec<u8> {
    let mut out = b"before".to_vec();
    write(header, &mut out).unwrap();
    out.split_off(6)
}

/// A header of a TCP connection over IPv4 with these bytes behind the addresses.
fn header(fields: &[u8]) -> Vec<u8> {
    let length = u16::try_from(12 + fields.len()).unwrap().to_be_bytes();
    [&SIGNATURE[..], &[0x21, 0x11], &length, &[192, 0, 2, 1, 192, 0, 2, 2, 0, 1, 0, 2], fields].concat()
}

fn full() -> ProxyHeader<'static> {
    ProxyHeader {
        command: Command::Proxy,
        addresses: addresses("[2001:db8::1]:50000", "[2001:db8::2]:443"),
        alpn: Some(b"h2"),
        authority: Some("example.org"),
        unique_id: Some(b"id"),
        ssl: Some(Ssl {
            over_tls: true,
            certificate_on_connection: true,
            certificate_in_session: true,
            verify: 0,
            version: Some("TLSv1.3"),
            common_name: Some("b\u{fc}cher"),
            cipher: Some("TLS_AES_128_GCM_SHA256"),
            signature_algorithm: Some("SHA256"),
            key_algorithm: Some("EC256"),
            group: Some("X25519MLKEM768"),
            signature_scheme: Some("ecdsa_secp256r1_sha256"),
            client_certificate: Some(&[0x30, 0x00]),
        }),
        crc32c: true,
    }
}

#[test]
fn bare_addresses_are_28_bytes() {
    let sent = ProxyHeader { addresses: addresses("192.0.2.1:1", "192.0.2.2:2"), ..ProxyHeader::default() };
    assert_eq!(written(&sent), header(b""));
}

#[test]
fn fields_are_written_with_type_and_length() {
    let sent = ProxyHeader {
        addresses: addresses("192.0.2.1:1", "192.0.2.2:2"),
        authority: Some("a.b"),
        ssl: Some(Ssl { over_tls: true, version: Some("TLSv1.2"), ..Ssl::default() }),
        ..ProxyHeader::default()
    };
    let expected = b"\x02\0\x03a.b\x20\0\x0f\x01\0\0\0\x01\x21\0\x07TLSv1.2";
    assert_eq!(written(&sent), header(expected));
}

#[test]
fn a_local_connection_says_nothing_else() {
    let sent = ProxyHeader { command: Command::Local, ..full() };
    assert_eq!(written(&sent), [&SIGNATURE[..], &[0x20, 0, 0, 0]].concat());
}

#[test]
fn everything_reads_as_it_was_written() {
    let bytes = written(&full());
    let (parsed, consumed) = parse(&bytes).unwrap().unwrap();
    assert_eq!((parsed, consumed), (full(), bytes.len()));
}

#[test]
fn fields_have_the_registered_types() {
    let bytes = written(&full());
    let mut rest = Reader::new(&bytes[HEADER + 36..]);
    let fields: Vec<_> = std::iter::from_fn(|| next_field(&mut rest).unwrap()).collect();
    let kinds = |fields: &[(u8, &[u8])]| fields.iter().map(|&(kind, _)| kind).collect::<Vec<_>>();
    assert_eq!(kinds(&fields), [0x01, 0x02, 0x05, 0x20, 0x03]);
    let (flags_and_verify, mut within) = fields[3].1.split_at(5);
    assert_eq!(flags_and_verify, [7, 0, 0, 0, 0]);
    let mut kinds = Vec::new();
    while let [kind, high, low, rest @ ..] = within {
        kinds.push(*kind);
        within = &rest[usize::from(u16::from_be_bytes([*high, *low]))..];
    }
    assert_eq!(kinds, [0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28]);
}

#[test]
fn a_header_is_incomplete_until_its_last_byte() {
    let bytes = written(&full());
    for end in 0..bytes.len() {
        assert_eq!(parse(&bytes[..end]), Ok(None), "{end} bytes");
    }
}

#[test]
fn unix_paths_are_padded_and_trimmed() {
    for path in [&b""[..], b"/run/courser.sock", b"\0abstract", &[b'x'; 108]] {
        let addresses = Addresses::Unix { source: b"", destination: path };
        let bytes = written(&ProxyHeader { addresses, ..ProxyHeader::default() });
        assert_eq!(bytes.len(), 16 + 216);
        assert_eq!(parse(&bytes).unwrap().unwrap().0.addresses, addresses);
    }
}

#[test]
fn mixed_families_are_promoted() {
    let sent =
        ProxyHeader { addresses: addresses("192.0.2.1:1", "[2001:db8::2]:2"), ..ProxyHeader::default() };
    let bytes = written(&sent);
    let read = parse(&bytes).unwrap().unwrap().0.addresses;
    assert_eq!(read, addresses("[::ffff:192.0.2.1]:1", "[2001:db8::2]:2"));
}

#[test]
fn any_flipped_bit_of_the_content_is_noticed() {
    let bytes = written(&full());
    // All but the type of the checksum, without which there is nothing to notice with.
    for at in (HEADER..bytes.len()).filter(|&at| at != bytes.len() - 7) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert!(parse(&flipped).is_err(), "byte {at}");
    }
}

#[test]
fn the_local_command_ignores_addresses_and_fields() {
    let mut bytes = header(b"\x03\0\x04wrong");
    bytes[12] = 0x20;
    let (parsed, consumed) = parse(&bytes).unwrap().unwrap();
    assert_eq!(parsed, ProxyHeader { command: Command::Local, ..ProxyHeader::default() });
    assert_eq!(consumed, bytes.len());
}

#[test]
fn unknown_fields_are_skipped() {
    let bytes = header(b"\xe0\0\x01x\x04\0\0\x04\0\x02..\x01\0\x02h2");
    let (parsed, _) = parse(&bytes).unwrap().unwrap();
    assert_eq!(parsed.alpn, Some(&b"h2"[..]));
}

#[test]
fn addresses_of_datagrams_are_read() {
    let mut bytes = header(b"");
    bytes[13] = 0x12;
    let parsed = parse(&bytes).unwrap().unwrap().0;
    assert_eq!(parsed.addresses, addresses("192.0.2.1:1", "192.0.2.2:2"));
}

#[test]
fn a_second_checksum_is_refused_though_the_first_is_right() {
    let mut bytes = header(b"\x03\0\x04\0\0\0\0\x03\0\x04\0\0\0\0");
    let sum = crate::proxy::crc32c::checksum(&[&bytes]);
    bytes[31..35].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(parse(&bytes), Err(Malformed::Repeated(CRC32C)));
}

#[test]
fn addresses_of_an_unspecified_transport_are_skipped() {
    let mut bytes = header(b"\x01\0\x02h2");
    bytes[13] = 0x10;
    let header = parse(&bytes).unwrap().unwrap().0;
    assert_eq!((header.addresses, header.alpn), (Addresses::Unspecified, Some(&b"h2"[..])));
}

#[test]
fn faults_are_named() {
    let short = [&SIGNATURE[..], &[0x21, 0x21, 0, 12], &[0; 12]].concat();
    let cases: [(&[u8], Malformed); 14] = [
        (b"PROXY TCP4", Malformed::Signature),
        (b"\r\n\r\n\0\r\nQUIT\r", Malformed::Signature),
        (b"\r\n\r\n\0\r\nQUIT\n\x11", Malformed::Version(1)),
        (b"\r\n\r\n\0\r\nQUIT\n\x22", Malformed::Command(2)),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x41", Malformed::Family(0x41)),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x13", Malformed::Family(0x13)),
        (&short, Malformed::ShortAddresses),
        (&header(b"\x01\0\x03h2"), Malformed::ShortField(ALPN)),
        (&header(b"\x01\0"), Malformed::ShortField(ALPN)),
        (&header(b"\x02\0\x01\xff"), Malformed::NotText(AUTHORITY)),
        (&header(b"\x02\0\x01a\x02\0\x01a"), Malformed::Repeated(AUTHORITY)),
        (&header(b"\x20\0\x04\x01\0\0\0"), Malformed::ShortField(SSL)),
        (&header(b"\x03\0\x04\0\0\0\0"), Malformed::Checksum),
        (&header(b"\x03\0\x03\0\0\0"), Malformed::ShortField(CRC32C)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(parse(bytes), Err(expected), "{bytes:?}");
    }
}

#[test]
fn what_does_not_fit_is_an_error_and_writes_nothing() {
    let (certificate, path, id) = ([0; 65_500], [b'x'; 109], [0; 129]);
    let ssl = Some(Ssl { client_certificate: Some(&certificate), ..Ssl::default() });
    let unix = Addresses::Unix { source: &path, destination: b"" };
    let cases = [
        (ProxyHeader { ssl, ..ProxyHeader::default() }, Unwritable::TooLong),
        (ProxyHeader { unique_id: Some(&id), ..ProxyHeader::default() }, Unwritable::UniqueIdTooLong),
        (ProxyHeader { addresses: unix, ..ProxyHeader::default() }, Unwritable::PathTooLong),
    ];
    for (header, expected) in cases {
        let mut out = b"before".to_vec();
        assert_eq!(write(&header, &mut out), Err(expected));
        assert_eq!(out, b"before");
    }
}

#[test]
fn a_header_is_filled_to_the_last_byte_and_not_beyond() {
    let id = [7; MAX_UNIQUE_ID];
    let unix = Addresses::Unix { source: b"/a", destination: b"/b" };
    let largest = ProxyHeader { addresses: unix, unique_id: Some(&id), ..full() };
    let with = |certificate| {
        let ssl = largest.ssl.map(|ssl| Ssl { client_certificate: Some(certificate), ..ssl });
        ProxyHeader { ssl, ..largest }
    };
    let certificate = vec![7; MAX_LENGTH - written(&with(&[])).len() + 1];
    let fits = with(&certificate[1..]);
    let bytes = written(&fits);
    assert_eq!(bytes.len(), MAX_LENGTH);
    assert_eq!(parse(&bytes).unwrap().unwrap().0, fits);
    assert_eq!(write(&with(&certificate), &mut Vec::new()), Err(Unwritable::TooLong));
}

#[test]
fn what_came_goes_on_behind_what_is_ours_and_no_type_comes_twice() {
    let came =
        header(&[&[0xea, 0, 1, 7][..], &[AUTHORITY, 0, 1, b'x'], &[4, 0, 2, 0, 0], &[0xe0, 0, 0]].concat());
    let passed_on = fields(&came);
    assert_eq!(passed_on, [&[0xea, 0, 1, 7][..], &[AUTHORITY, 0, 1, b'x'], &[0xe0, 0, 0]].concat());
    let ours = ProxyHeader { authority: Some("ours"), ..full() };
    let mut out = Vec::new();
    write_with(&ours, &passed_on, &mut out).unwrap();
    assert_eq!(parse(&out), Ok(Some((ours, out.len()))));
    assert_eq!(fields(&out)[fields(&out).len() - 7..], [0xea, 0, 1, 7, 0xe0, 0, 0]);
    let without = ProxyHeader { authority: None, ..full() };
    out.clear();
    write_with(&without, &passed_on, &mut out).unwrap();
    assert_eq!(parse(&out).unwrap().unwrap().0.authority, Some("x"));
}

#[test]
fn a_header_of_a_health_check_passes_nothing_on() {
    let mut local = header(&[0xea, 0, 1, 7]);
    local[12] = 0x20;
    assert_eq!((fields(&local), fields(b"short")), (Vec::new(), Vec::new()));
}

#[test]
fn fields_of_another_header_that_leave_no_room_are_an_error() {
    let long = [&[0xea, 0xff, 0x00][..], &[0; 0xff00]].concat();
    let mut out = Vec::new();
    assert_eq!(write_with(&full(), &long, &mut out), Err(Unwritable::TooLong));
    assert!(out.is_empty());
}
