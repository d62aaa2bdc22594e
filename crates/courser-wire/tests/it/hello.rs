//! ClientHellos built field by field, each with one thing changed.

use courser_wire::hello::*;

fn vector8(content: &[u8]) -> Vec<u8> {
    [&[u8::try_from(content.len()).unwrap()], content].concat()
}

fn vector16(content: &[u8]) -> Vec<u8> {
    [&u16::try_from(content.len()).unwrap().to_be_bytes()[..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector16(content)].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    extension(0, &vector16(&[&[0], &vector16(name)[..]].concat()))
}

/// A hello with these extensions, before the extension block a plain TLS 1.2 one.
fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    [bare(), vector16(&extensions.concat())].concat()
}

fn bare() -> Vec<u8> {
    [&[3, 3][..], &[7; 32], &vector8(&[9; 32]), &vector16(&[0x0a, 0x0a, 0xc0, 0x2f]), &vector8(&[0])].concat()
}

#[test]
fn a_hello_without_extensions_is_one_of_tls12() {
    let bytes = bare();
    let hello = ClientHello::parse(&bytes).unwrap();
    assert_eq!(hello.random, &[7; 32]);
    assert_eq!(hello.session_id, [9; 32]);
    assert_eq!(hello.cipher_suites.iter().collect::<Vec<_>>(), [0x0a0a, 0xc02f]);
    assert_eq!(hello.cipher_suites.without_grease().collect::<Vec<_>>(), [0xc02f]);
    assert_eq!((hello.server_name, hello.session_ticket), (None, None));
    assert_eq!((hello.offers_tls13(), hello.legacy_version), (false, TLS12));
}

#[test]
fn every_extension_lands_in_its_field() {
    let identities = [vector16(b"ticket"), vec![0; 4], vector16(b"other"), vec![0; 4]].concat();
    let binders = [vector8(&[1; 32]), vector8(&[2; 48])].concat();
    let bytes = hello(&[
        extension(0x1a1a, b"?"),
        server_name(b"Example.org"),
        extension(5, &[1, 0, 0, 0, 0]),
        extension(10, &vector16(&[0x11, 0xec, 0, 29])),
        extension(13, &vector16(&[4, 3])),
        extension(16, &vector16(&[vector8(b"h2"), vector8(b"http/1.1")].concat())),
        extension(23, b""),
        extension(35, b""),
        extension(42, b""),
        extension(43, &vector8(&[0x2a, 0x2a, 3, 4, 3, 3])),
        extension(45, &vector8(&[1])),
        extension(50, &vector16(&[8, 4])),
        extension(
            51,
            &vector16(&[&[0x2a, 0x2a][..], &vector16(b"0"), &[0, 29], &vector16(&[5; 32])].concat()),
        ),
        extension(41, &[vector16(&identities), vector16(&binders)].concat()),
    ]);
    let hello = ClientHello::parse(&bytes).unwrap();
    assert_eq!(hello.server_name, Some("Example.org"));
    assert!(hello.extended_master_secret && hello.early_data);
    assert_eq!(hello.groups.iter().collect::<Vec<_>>(), [0x11ec, 29]);
    assert_eq!(hello.signature_schemes.unwrap().iter().collect::<Vec<_>>(), [0x0403]);
    assert_eq!(hello.alpn.iter().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
    assert!(hello.alpn.contains(b"h2") && !hello.alpn.contains(b"h3"));
    assert_eq!(hello.session_ticket, Some(&[][..]));
    assert!(hello.offers_tls13());
    assert_eq!(hello.psk_key_exchange_modes, Some(&[1][..]));
    assert_eq!(hello.key_shares.groups().collect::<Vec<_>>(), [0x2a2a, 29]);
    assert_eq!(hello.psk_identities.iter().collect::<Vec<_>>(), [&b"ticket"[..], b"other"]);
}

#[test]
fn names_of_other_types_are_passed_over() {
    let other = [&[9][..], &vector16(b"\0?")].concat();
    let host = [&[0][..], &vector16(b"a.example")].concat();
    let alone = hello(&[extension(0, &vector16(&other))]);
    assert_eq!(ClientHello::parse(&alone).unwrap().server_name, None);
    let both = hello(&[extension(0, &vector16(&[other, host].concat()))]);
    assert_eq!(ClientHello::parse(&both).unwrap().server_name, Some("a.example"));
}

#[test]
fn versions_that_nobody_knows_are_no_offer() {
    let bytes = hello(&[extension(43, &vector8(&[0x7f, 0x1c, 0x0a, 0x0a]))]);
    assert!(!ClientHello::parse(&bytes).unwrap().offers_tls13());
}

#[test]
fn a_cut_hello_is_truncated_wherever_it_is_cut() {
    let bytes = hello(&[server_name(b"example.org"), extension(35, b"ticket")]);
    let whole_without_extensions = bare().len();
    for end in (0..bytes.len()).filter(|&end| end != whole_without_extensions) {
        assert!(matches!(ClientHello::parse(&bytes[..end]), Err(Malformed::Truncated(_))), "cut at {end}");
    }
}

#[test]
fn faults_are_named() {
    let names = [&[0][..], &vector16(b"a"), &[0], &vector16(b"b")].concat();
    let psk = [vector16(&[vector16(b"t"), vec![0; 4]].concat()), vector16(&vector8(&[1; 32]))].concat();
    let (nameless, ticket) = ([vector16(b""), vec![0; 4]].concat(), [vector16(b"t"), vec![0; 4]].concat());
    let binder = vector16(&vector8(&[1; 32]));
    let (shareless, two_binders) = ([&[0, 29][..], &vector16(b"")].concat(), vector8(&[1; 32]).repeat(2));
    let cases: [(&[Vec<u8>], Malformed); 17] = [
        (&[extension(0, &vector16(b""))], Malformed::BadLength("server_name")),
        (&[extension(45, &vector8(b""))], Malformed::BadLength("psk_key_exchange_modes")),
        (&[extension(41, &[vector16(&nameless), binder].concat())], Malformed::BadLength("pre_shared_key")),
        (
            &[extension(41, &[vector16(&ticket), vector16(&two_binders)].concat())],
            Malformed::Trailing("pre_shared_key"),
        ),
        (&[extension(51, &vector16(&shareless))], Malformed::BadLength("key_share")),
        (&[extension(35, b""), extension(35, b"")], Malformed::DuplicateExtension(35)),
        (&[extension(65_281, b""), extension(65_281, b"")], Malformed::DuplicateExtension(65_281)),
        (&[server_name(b"a\0b")], Malformed::ServerName),
        (&[extension(0, &vector16(&names))], Malformed::SeveralServerNames),
        (&[extension(0, b"")], Malformed::Truncated("server_name")),
        (&[extension(10, &vector16(&[0, 29, 0]))], Malformed::BadLength("supported_groups")),
        (&[extension(43, &vector8(b""))], Malformed::BadLength("supported_versions")),
        (&[extension(43, &[2, 3, 4, 0])], Malformed::Trailing("supported_versions")),
        (&[extension(23, b"x")], Malformed::Trailing("extended_master_secret")),
        (
            &[extension(16, &vector16(&vector8(b"")))],
            Malformed::BadLength("application_layer_protocol_negotiation"),
        ),
        (&[extension(41, &psk), extension(35, b"")], Malformed::PreSharedKeyNotLast),
        (&[extension(41, &[0, 0, 0, 0])], Malformed::Truncated("pre_shared_key")),
    ];
    for (extensions, expected) in cases {
        assert_eq!(ClientHello::parse(&hello(extensions)).unwrap_err(), expected);
    }
}

#[test]
fn bytes_behind_the_extensions_are_refused() {
    let bytes = [hello(&[]), vec![0]].concat();
    assert_eq!(ClientHello::parse(&bytes), Err(Malformed::Trailing("client_hello")));
}

#[test]
fn a_session_id_beyond_32_bytes_is_refused() {
    let bytes = [&[3, 3][..], &[7; 32], &vector8(&[9; 33]), &vector16(&[0, 1]), &vector8(&[0])].concat();
    assert_eq!(ClientHello::parse(&bytes), Err(Malformed::BadLength("session_id")));
}

#[test]
fn a_client_without_compression_methods_is_refused() {
    let bytes = [&[3, 3][..], &[7; 32], &vector8(b""), &vector16(&[0, 1]), &vector8(b"")].concat();
    assert_eq!(ClientHello::parse(&bytes), Err(Malformed::BadLength("compression_methods")));
}

#[test]
fn only_the_sixteen_values_are_grease() {
    assert_eq!((0..=u16::MAX).filter(|&value| is_grease(value)).count(), 16);
    assert!(is_grease(0x0a0a) && is_grease(0xfafa) && !is_grease(0x0a1a));
}
