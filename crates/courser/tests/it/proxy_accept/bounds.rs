//! Who may send a header, who has to, and what of it is too much.

use std::{
    io::Write,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
};

use courser_testkit::{
    KeyType, OriginServer,
    client::{Client, Connection, Resume, Version},
};

use super::serve;
use crate::routing::{captured, read_all};
use crate::stage::{Stage, assert_closed};
use crate::support::line;

const V1: &[u8] = b"PROXY TCP4 203.0.113.9 198.51.100.1 5 443\r\n";
const V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x12\xcb\x00\x71\x09\xc6\x33\x64\x01\x00\x05\x01\xbb\xea\x00\x03abc";

/// Gets a page with `header` in front of the handshake.
pub(super) fn get(stage: &Stage, address: SocketAddr, header: &[u8]) {
    let _ = stage;
    let client = Client::new(address, Version::Tls13, KeyType::EcdsaP256, Resume::Never);
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(header).unwrap();
    Connection::complete(client.session(), socket).unwrap().get(100, true).unwrap();
}

/// What comes back for these bytes.
fn answer(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(bytes).unwrap();
    read_all(&socket).unwrap_or_default()
}

#[test]
fn a_listed_source_has_to_send_a_header() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = serve(&stage, "'127.0.0.0/8'", &format!("backend = '{}'", origin.backend()));
    let cases: [(&[u8], &str); 6] = [
        (&captured("curl"), "no PROXY header"),
        (b"GET / HTTP/1.1\r\n\r\n", "no PROXY header"),
        (b"PROXY TCP4 1.2.3.4\r\n", "address"),
        (b"PROXY TCP9 1.2.3.4 1.2.3.4 1 2\r\n", "protocol"),
        (b"\r\n\r\n\0\r\nQUIT\n\x31", "version 3"),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x04\x01\x02\x03\x04", "addresses"),
    ];
    for (number, (bytes, why)) in cases.into_iter().enumerate() {
        assert_eq!(answer(courser.address(), bytes), b"", "{why}");
        let line = line(&courser, number + 1);
        assert_closed(&line, "bad_proxy_header", "client");
        assert!(line["detail"].as_str().unwrap().contains(why), "{line}");
    }
    assert_eq!(origin.accepted(), 0);
}

#[test]
fn other_sources_may_not_send_one_and_are_served_without() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser =
        serve(&stage, "['10.0.0.0/8', 'unix', '::1']", &format!("backend = '{}'", origin.backend()));
    stage.client(&courser, Version::Tls13).connect().unwrap().get(10, true).unwrap();
    assert_closed(&line(&courser, 1), "done", "none");
    for (number, header) in [V1, V2].into_iter().enumerate() {
        answer(courser.address(), &[header, &captured("curl")].concat());
        let line = line(&courser, number + 2);
        assert_closed(&line, "unexpected_proxy_header", "client");
        assert!(
            line["client"].as_str().unwrap().starts_with("127.0.0.1:") && line["via"].is_null(),
            "{line}"
        );
    }
    assert_eq!(origin.accepted(), 1);
}

#[test]
fn a_header_may_be_cut_at_every_byte() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let _ = std::io::copy(&mut socket.as_ref().unwrap(), &mut socket.as_ref().unwrap());
        }
    });
    let more = format!("route = {{ relay = 'all' }}\n[pool.all]\nservers = '{backend}'");
    let courser = serve(&stage, "'127.0.0.1'", &more);
    let mut number = 0;
    for header in [V1, V2, b"PROXY UNKNOWN\r\n"] {
        let whole = [header, &captured("curl")].concat();
        for cut in 1..header.len() + 10 {
            let mut socket = TcpStream::connect(courser.address()).unwrap();
            socket.set_nodelay(true).unwrap();
            socket.write_all(&whole[..cut]).unwrap();
            socket.write_all(&whole[cut..]).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            assert_eq!(read_all(&socket).unwrap(), captured("curl"), "cut at {cut}");
            number += 1;
            let line = line(&courser, number);
            assert_eq!(line["client"] == "203.0.113.9:5", !line["via"].is_null(), "{line}");
            assert_eq!(line["via"].is_null(), header.starts_with(b"PROXY UNKNOWN"), "{line}");
        }
    }
}

#[test]
fn a_header_has_its_bounds() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let more = format!("handshake_timeout = '300ms'\nbackend = '{}'", origin.backend());
    let courser = serve(&stage, "'127.0.0.1'", &more);
    let long_line = [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 200]].concat();
    let long = |fields: u16| {
        let length = (fields + 15).to_be_bytes();
        let head = [&V2[..14], &length[..], &V2[16..28], &[0xea], &fields.to_be_bytes()[..]].concat();
        [head, vec![0; usize::from(fields)]].concat()
    };
    // As long as may be: a page is served.
    get(&stage, courser.address(), &long(16 * 1024 - 16 - 15));
    assert_closed(&line(&courser, 1), "done", "none");
    let cases = [
        (long_line, "bad_proxy_header"),
        (long(17_000), "bad_proxy_header"),
        (long(65_000), "bad_proxy_header"),
        (V2[..20].to_vec(), "hello_timeout"),
        (b"PROXY TCP4".to_vec(), "hello_timeout"),
        (V1.to_vec(), "hello_timeout"),
    ];
    for (number, (bytes, reason)) in cases.into_iter().enumerate() {
        answer(courser.address(), &bytes);
        assert_closed(&line(&courser, number + 2), reason, "client");
    }
}

#[test]
fn a_source_that_says_nothing_is_a_probe() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = serve(&stage, "'127.0.0.1'", &format!("backend = '{}'", origin.backend()));
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";
    for (number, (bytes, reason)) in
        [(&b""[..], "probe"), (local, "probe"), (&V2[..9], "closed_in_hello"), (V1, "probe")]
            .into_iter()
            .enumerate()
    {
        let mut socket = TcpStream::connect(courser.address()).unwrap();
        socket.write_all(bytes).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&socket).unwrap(), b"");
        assert_closed(&line(&courser, number + 1), reason, "client");
    }
}
