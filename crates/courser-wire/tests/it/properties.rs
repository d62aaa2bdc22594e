//! What has to hold for bytes and values that nobody thought of.

use std::borrow::Cow;
use std::net::SocketAddr;

use courser_wire::hello::ClientHello;
use courser_wire::proxy::v2::{self, Command, ProxyHeader, Ssl};
use courser_wire::proxy::{Addresses, v1};
use courser_wire::record::{Assembler, Assembly, assemble};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::{captured, exercise};

/// The room that 2 KiB of hello need in records of one byte.
const ROOM: usize = 16 * 1024;

fn hellos() -> impl Strategy<Value = Vec<u8>> {
    select(vec!["openssl", "openssl-psk", "go", "chrome", "firefox", "gnutls", "openssl-split"])
        .prop_map(captured::body)
}

proptest! {
    #[test]
    fn a_hello_cut_anywhere_is_the_same_hello(
        body in hellos(),
        records in vec(1_usize..600, 1..8),
        reads in vec(1_usize..600, 1..8),
    ) {
        let bytes = exercise::split(&body, &records);
        let mut assembler = Assembler::new(ROOM);
        let mut end = 0;
        for read in reads.into_iter().cycle() {
            prop_assert_eq!(assembler.assemble(&bytes[..end]), Ok(Assembly::Incomplete));
            end += read;
            if end >= bytes.len() {
                break;
            }
        }
        prop_assert_eq!(assembler.assemble(&bytes), Ok(Assembly::Complete(Cow::Borrowed(&body[..]))));
    }

    #[test]
    fn a_changed_hello_is_refused_or_understood(
        body in hellos(),
        changes in vec((any::<Index>(), any::<u8>()), 1..6),
        cut in any::<Index>(),
    ) {
        let mut bytes = exercise::split(&body, &[body.len() + 4]);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        exercise::client_hello(&bytes);
        exercise::client_hello(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in vec(any::<u8>(), 0..400)) {
        exercise::client_hello(&bytes);
        exercise::client_hello(&exercise::split(&bytes, &[7]));
        let _ = ClientHello::parse(&bytes);
        exercise::server_hello(&bytes);
        exercise::server_hello(&[&[22, 3, 3, 0, 90, 2, 0, 0, 86, 3, 3], &bytes[..]].concat());
        exercise::proxy_v1(&bytes);
        exercise::proxy_v1(&[b"PROXY TCP4 ", &bytes[..]].concat());
        exercise::proxy_v2(&bytes);
        exercise::proxy_v2(&binary(&bytes));
    }

    #[test]
    fn the_limit_decides_as_soon_as_it_is_reached(body in vec(any::<u8>(), 0..300), limit in 0_usize..400) {
        let bytes = exercise::split(&body, &[50]);
        let answer = assemble(&bytes, limit);
        prop_assert_eq!(matches!(answer, Ok(Assembly::Complete(_))), bytes.len() <= limit);
        prop_assert!(bytes.len() < limit || answer != Ok(Assembly::Incomplete));
    }

    #[test]
    fn version_1_reads_as_it_was_written((source, destination) in any::<(SocketAddr, SocketAddr)>()) {
        let mut line = Vec::new();
        v1::write(&Addresses::Ip { source, destination }, &mut line);
        prop_assert!(line.len() <= v1::MAX_LENGTH);
        let (read, consumed) = v1::parse(&line).unwrap().unwrap();
        prop_assert_eq!(plain(read), plain(Addresses::Ip { source, destination }));
        prop_assert_eq!(consumed, line.len());
    }

    #[test]
    fn version_2_reads_as_it_was_written(parts in parts(), rest in vec(any::<u8>(), 0..20)) {
        let header = parts.header();
        let mut bytes = Vec::new();
        v2::write(&header, &mut bytes).unwrap();
        let length = bytes.len();
        bytes.extend(rest);
        let (parsed, consumed) = v2::parse(&bytes).unwrap().unwrap();
        prop_assert_eq!(consumed, length);
        let read = ProxyHeader { addresses: plain(parsed.addresses), ..parsed };
        let expected = ProxyHeader { addresses: plain(header.addresses), ..header };
        prop_assert_eq!(read, expected);
    }
}

/// A version 2 header around `content`, whose checksum will hardly be right.
fn binary(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n\x21\x11", &length[..], content].concat()
}

/// The addresses without what no header carries: the family an IPv4 address dresses in, flow label and scope.
fn plain(addresses: Addresses<'_>) -> Addresses<'_> {
    let strip = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    match addresses {
        Addresses::Ip { source, destination } => {
            Addresses::Ip { source: strip(source), destination: strip(destination) }
        }
        other => other,
    }
}

/// What an [`Announcement`] borrows.
#[derive(Clone, Debug)]
struct Parts {
    ip: Option<(SocketAddr, SocketAddr)>,
    paths: Option<(Vec<u8>, Vec<u8>)>,
    bytes: [Option<Vec<u8>>; 3],
    texts: [Option<String>; 8],
    flags: (bool, bool, bool, bool, bool),
    verify: u32,
}

fn parts() -> impl Strategy<Value = Parts> {
    let path = || vec(1_u8.., 0..=108);
    (
        option::of(any::<(SocketAddr, SocketAddr)>()),
        option::of((path(), path())),
        [
            option::of(vec(any::<u8>(), 0..20)),
            option::of(vec(any::<u8>(), 0..=128)),
            option::of(vec(any::<u8>(), 0..3000)),
        ],
        proptest::array::uniform8(option::of(".{0,40}")),
        any::<(bool, bool, bool, bool, bool)>(),
        any::<u32>(),
    )
        .prop_map(|(ip, paths, bytes, texts, flags, verify)| Parts {
            ip,
            paths,
            bytes,
            texts,
            flags,
            verify,
        })
}

impl Parts {
    fn header(&self) -> ProxyHeader<'_> {
        let [alpn, unique_id, client_certificate] = self.bytes.each_ref().map(Option::as_deref);
        let [authority, texts @ ..] = self.texts.each_ref().map(Option::as_deref);
        ProxyHeader {
            command: Command::Proxy,
            addresses: self.addresses(),
            alpn,
            authority,
            unique_id,
            ssl: self.flags.3.then(|| Ssl { client_certificate, ..self.ssl(texts) }),
            crc32c: self.flags.4,
        }
    }

    fn addresses(&self) -> Addresses<'_> {
        match (self.ip, &self.paths) {
            (Some((source, destination)), _) => Addresses::Ip { source, destination },
            (None, Some((source, destination))) => Addresses::Unix { source, destination },
            (None, None) => Addresses::Unspecified,
        }
    }

    fn ssl<'a>(&self, texts: [Option<&'a str>; 7]) -> Ssl<'a> {
        let [version, common_name, cipher, signature_algorithm, key_algorithm, group, signature_scheme] =
            texts;
        let (over_tls, certificate_on_connection, certificate_in_session, ..) = self.flags;
        Ssl {
            over_tls,
            certificate_on_connection,
            certificate_in_session,
            verify: self.verify,
            version,
            common_name,
            cipher,
            signature_algorithm,
            key_algorithm,
            group,
            signature_scheme,
            client_certificate: None,
        }
    }
}
