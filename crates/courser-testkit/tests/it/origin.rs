//! The origin, spoken to over plain sockets.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    os::unix::net::UnixStream,
};

use courser_testkit::{Behaviour, Folder, OriginServer, body};

/// Sends `request`, then reads until the origin closes.
fn answer_to(origin: &OriginServer, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(origin.address()).expect("the origin accepts");
    stream.write_all(request).expect("the origin reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the origin answers and closes");
    answer
}

fn body_of(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an answer has a head");
    &answer[end + 4..]
}

#[test]
fn objects_have_the_wanted_size_and_bytes() {
    let origin = OriginServer::http();
    for size in [0, 1, 1024, 65_520, 65_521, 1_000_000] {
        let request = format!("GET /?s={size} HTTP/1.1\r\nConnection: close\r\n\r\n");
        assert!(body_of(&answer_to(&origin, request.as_bytes())) == body(size), "size {size}");
    }
    assert_eq!(origin.accepted(), 6);
}

#[test]
fn a_connection_serves_several_requests() {
    let origin = OriginServer::http();
    let requests =
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET /?s=3 HTTP/1.1\r\nConnection: close\r\n\r\n";
    let answers = String::from_utf8(answer_to(&origin, requests)).unwrap();
    assert_eq!(answers.matches("200 OK").count(), 2);
    assert!(answers.contains("received 5\n"));
    assert!(answers.ends_with("\r\n\r\nabc"));
}

#[test]
fn a_proxy_header_is_kept_and_given_back() {
    let origin = OriginServer::setup(Behaviour::Http).proxy().start();
    let header = b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\n";
    let request = [header.as_slice(), b"GET /proxy HTTP/1.0\r\n\r\n"].concat();
    assert_eq!(body_of(&answer_to(&origin, &request)), header);
    assert_eq!(origin.headers(), [header]);
}

#[test]
fn an_echo_ends_after_the_peer_has() {
    let origin = OriginServer::setup(Behaviour::Greet(b"220 ready\r\n".to_vec())).start();
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    stream.write_all(b"hello").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "220 ready\r\nhello");
}

#[test]
fn a_unix_socket_serves_too() {
    let folder = Folder::new();
    let origin = OriginServer::setup(Behaviour::Http).unix(folder.join("origin.sock")).start();
    let mut stream = UnixStream::connect(origin.backend().strip_prefix("unix:").unwrap()).unwrap();
    stream.write_all(b"GET /?s=4 HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nabcd"), "{answer}");
}

#[test]
fn a_reset_is_a_reset() {
    let origin = OriginServer::setup(Behaviour::Reset).start();
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}
