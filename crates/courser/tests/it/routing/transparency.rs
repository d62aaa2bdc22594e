//! A relay changes nothing: whatever is sent, however it is cut, and whoever ends first.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::Command,
    thread,
};

use courser_testkit::{Folder, KeyType, Process, TestCa, require};
use socket2::SockRef;

use super::{Tap, captured, nginx, read_all, relay_to};
use crate::stage::{assert_closed, eventually, only_line, run};
use crate::support::{client, text};

#[test]
fn openssl_gets_byte_for_byte_what_it_gets_directly() {
    unchanged("openssl", |address| {
        let address = address.to_string();
        let tell = ["s_client", "-connect", &address, "-quiet", "-servername", "localhost"];
        client("openssl", &tell, "GET /large HTTP/1.0\r\n\r\n").map(|said| page(&said.text))
    });
}

#[test]
fn curl_gets_byte_for_byte_what_it_gets_directly() {
    unchanged("curl", |address| {
        let resolve = format!("localhost:{}:127.0.0.1", address.port());
        let url = format!("https://localhost:{}/large", address.port());
        let tell =
            ["--silent", "--show-error", "--insecure", "--max-time", "30", "--resolve", &resolve, &url];
        client("curl", &tell, "").map(|said| said.text)
    });
}

#[test]
fn gnutls_gets_byte_for_byte_what_it_gets_directly() {
    unchanged("gnutls-cli", |address| {
        let port = address.port().to_string();
        let tell = ["--insecure", "--sni-hostname", "localhost", "-p", &port, "127.0.0.1"];
        client("gnutls-cli", &tell, "GET /large HTTP/1.0\r\n\r\n").map(|said| page(&said.text))
    });
}

#[test]
fn chromium_gets_byte_for_byte_what_it_gets_directly() {
    let profile = Folder::new();
    unchanged("chromium", |address| {
        let mut command = Command::new(require("chromium")?);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--ignore-certificate-errors",
            "--dump-dom",
        ]);
        command.arg(format!("--user-data-dir={}", profile.join(&address.port().to_string()).display()));
        command.arg(format!("https://localhost:{}/", address.port()));
        Some(run(&mut command).stdout)
    });
}

/// What follows the head of an answer, which has the time in it.
fn page(said: &str) -> String {
    let answer = said.find("HTTP/1.1 200").expect("an answer");
    said[answer..].split_once("\n\n").expect("the end of its head").1.to_owned()
}

/// Asserts that a client prints the same of the server itself and of the relay, and that all that the wires in front of the
/// relay and behind it carry is the same.
#[track_caller]
fn unchanged(program: &str, fetch: impl Fn(SocketAddr) -> Option<String>) {
    if require(program).is_none() {
        return;
    }
    let (folder, ca) = (Folder::new(), TestCa::new());
    let certificate = ca.localhost(KeyType::EcdsaP256, &folder, "site");
    let Some((_nginx, addresses)) = nginx(&folder, &[(&certificate, "the page")]) else { return };
    let behind = Tap::before(addresses[0]);
    let courser = relay_to(&folder, &behind.address.to_string());
    let front = Tap::before(courser.address());
    let Some(direct) = fetch(addresses[0]) else { return };
    let relayed = fetch(front.address).unwrap();
    assert!(direct.contains("the page") || direct.len() > 1 << 20, "{direct}");
    assert!(direct == relayed, "{} and {} bytes", direct.len(), relayed.len());
    let connections = front.carried().len();
    courser.connections(connections);
    assert_eq!(front.carried().len(), connections);
    // A tap may be behind the connection's line in the log.
    eventually("both wires carry the same", || front.carried() == behind.carried());
    let line = &courser.connections_json(connections)[0];
    assert_eq!((line["tls_mode"].as_str(), line["sni"].as_str()), (Some("passthrough"), Some("localhost")));
    assert!(line["version"].is_null() && line["suite"].is_null() && line["host"].is_null(), "{line}");
}

/// Linux's value of it (send(2)).
const MSG_MORE: i32 = 0x8000;

/// A backend that echoes all it gets.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            thread::spawn(move || {
                std::io::copy(&mut &socket, &mut &socket).map(|_| socket.shutdown(Shutdown::Write))
            });
        }
    });
    address
}

/// Asserts that the parts, each sent by itself, come back from an echo behind the relay.
#[track_caller]
fn echoed(address: SocketAddr, parts: &[&[u8]]) {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    for part in parts {
        socket.write_all(part).unwrap();
    }
    socket.shutdown(Shutdown::Write).unwrap();
    let came = read_all(&socket).unwrap();
    assert!(came == parts.concat(), "{} of {} bytes", came.len(), parts.concat().len());
}

#[test]
fn a_hello_may_be_cut_at_every_byte() {
    let folder = Folder::new();
    let courser = relay_to(&folder, &echo().to_string());
    // Over 1,460 bytes with its post-quantum key share.
    let hello = captured("chrome");
    for cut in 1..hello.len() {
        let (front, rest) = hello.split_at(cut);
        echoed(courser.address(), &[front, rest]);
    }
    echoed(courser.address(), &hello.chunks(1).collect::<Vec<_>>());
}

#[test]
fn a_hello_may_be_cut_into_records_of_any_size() {
    let folder = Folder::new();
    let courser = relay_to(&folder, &echo().to_string());
    let hello = captured("chrome");
    let message = &hello[5..];
    for size in (1..message.len()).step_by(7) {
        let record = |part: &[u8]| {
            let length = u16::try_from(part.len()).unwrap().to_be_bytes();
            [&[22, 3, 1], &length[..], part].concat()
        };
        let records: Vec<u8> = message.chunks(size).flat_map(record).collect();
        echoed(courser.address(), &[&records, b"and what follows"]);
    }
}

#[test]
fn hello_data_and_fin_in_one_segment_all_reach_the_backend() {
    let folder = Folder::new();
    let courser = relay_to(&folder, &echo().to_string());
    for more in [0, 1, 100, 20_000, 40_000, 300_000] {
        let bytes = [captured("curl"), vec![b'x'; more]].concat();
        let socket = TcpStream::connect(courser.address()).unwrap();
        let mut sent = 0;
        while sent < bytes.len() {
            // The kernel keeps the last segment back until the FIN.
            sent += SockRef::from(&socket).send_with_flags(&bytes[sent..], MSG_MORE).unwrap();
        }
        socket.shutdown(Shutdown::Write).unwrap();
        assert!(read_all(&socket).unwrap() == bytes, "{more} bytes behind the hello");
    }
    let lines = courser.connections_json(6);
    for line in lines {
        assert_closed(&line, "done", "none");
        assert_eq!(line["bytes_in"], line["bytes_out"]);
    }
}

#[test]
fn a_client_that_has_ended_gets_its_answer() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let courser = relay_to(&folder, &listener.local_addr().unwrap().to_string());
    let mut socket = TcpStream::connect(courser.address()).unwrap();
    socket.write_all(&captured("openssl")).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut backend = listener.accept().unwrap().0;
    assert_eq!(read_all(&backend).unwrap(), captured("openssl"));
    backend.write_all(&[7; 200_000]).unwrap();
    drop(backend);
    assert!(read_all(&socket).unwrap() == [7; 200_000]);
    assert_closed(&only_line(&courser), "done", "none");
}

#[test]
fn a_backend_that_has_ended_may_still_listen() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let courser = relay_to(&folder, &listener.local_addr().unwrap().to_string());
    let mut socket = TcpStream::connect(courser.address()).unwrap();
    socket.write_all(&captured("openssl")).unwrap();
    let mut backend = listener.accept().unwrap().0;
    backend.write_all(b"all I have").unwrap();
    backend.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&socket).unwrap(), b"all I have");
    socket.write_all(&[9; 200_000]).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert!(read_all(&backend).unwrap() == [&captured("openssl")[..], &[9; 200_000]].concat());
    assert_closed(&only_line(&courser), "done", "none");
}

#[test]
fn a_client_that_resets_is_passed_on_as_a_reset() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let courser = relay_to(&folder, &listener.local_addr().unwrap().to_string());
    let mut socket = TcpStream::connect(courser.address()).unwrap();
    socket.write_all(&captured("openssl")).unwrap();
    let mut backend = listener.accept().unwrap().0;
    backend.read_exact(&mut vec![0; captured("openssl").len()]).unwrap();
    SockRef::from(&socket).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(socket);
    assert_eq!(read_all(&backend).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_closed(&only_line(&courser), "client_reset", "client");
}

#[test]
fn without_a_backend_the_client_gets_an_alert() {
    let folder = Folder::new();
    let courser = relay_to(&folder, &format!("127.0.0.1:{}", courser_testkit::free_port()));
    let address = courser.address().to_string();
    let Some(said) = client("openssl", &["s_client", "-connect", &address], "") else { return };
    said.has("tlsv1 alert internal error");
    let line = only_line(&courser);
    assert_closed(&line, "no_backend", "backend");
    assert_eq!(line["tls_mode"], "passthrough");
}

#[test]
fn a_session_with_the_server_is_resumed_through_the_relay() {
    let (folder, ca) = (Folder::new(), TestCa::new());
    let certificate = ca.localhost(KeyType::EcdsaP256, &folder, "site");
    let Some((_nginx, addresses)) = nginx(&folder, &[(&certificate, "the page")]) else { return };
    let courser = relay_to(&folder, &addresses[0].to_string());
    let (address, session) = (courser.address().to_string(), folder.join("session"));
    let visit = |flag: &str| {
        let tell = ["s_client", "-connect", &address, "-tls1_2", "-quiet", flag, text(&session)];
        client("openssl", &tell, "GET / HTTP/1.0\r\n\r\n").map(|said| {
            said.has("the page");
        })
    };
    if visit("-sess_out").is_none() {
        return;
    }
    let mut again = Command::new("openssl");
    again.args(["s_client", "-connect", &address, "-tls1_2", "-sess_in", text(&session)]);
    let mut openssl = Process::start_with_input(&mut again, "GET / HTTP/1.0\r\n\r\n");
    eventually("it ends", || !openssl.is_running());
    let said = openssl.finish().stdout;
    assert!(said.contains("Reused, TLSv1.2"), "{said}");
}
