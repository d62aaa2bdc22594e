//! What goes through TLS with a backend, and how it ends.

use std::io::{ErrorKind, Read, Write};
use std::process::Command;

use courser_testkit::{OriginServer, Process, free_port, require};

use super::{Site, client, get, wait_for_port};
use crate::stage::{assert_closed, backend, content, courser, only_line, run};

/// `verify` of a server that has the site's certificate.
const TLS: &str = "{ verify = ['CA'] }";

/// A TLS server in Python that serves one connection, `tls`, by this script; `None` where there is no Python.
fn python(site: &Site, script: &str) -> Option<(Process, String)> {
    let program = require("python3")?;
    let pem = site.issue().write_combined(&site.folder, "python");
    let script = format!(
        "import socket, ssl, sys\n\
         context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
         context.load_cert_chain({:?})\n\
         listener = socket.create_server(('127.0.0.1', 0))\n\
         print(listener.getsockname()[1], flush=True)\n\
         plain, _ = listener.accept()\n\
         tls = context.wrap_socket(plain, server_side=True, suppress_ragged_eofs=False)\n\
         def rest():\n    return b''.join(iter(lambda: tls.recv(65536), b''))\n{script}\n",
        pem.to_str().unwrap()
    );
    let process = Process::start(Command::new(program).args(["-c", &script]));
    let port = process.wait_stdout("its port", |lines| lines.first().cloned());
    Some((process, format!("127.0.0.1:{port}")))
}

#[test]
fn plain_bytes_before_the_handshake_reach_no_client() {
    for speaks_first in [true, false] {
        let site = Site::new();
        let (address, served) = backend(move |mut stream| {
            if !speaks_first {
                let _ = stream.read(&mut [0; 16]).unwrap();
            }
            // The terminator may have reset it by then.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let courser = site.serve(&address, TLS);
        let mut connection = client(&courser).connect().unwrap();
        let mut answer = Vec::new();
        connection.stream().read_to_end(&mut answer).expect("a clean end");
        assert!(answer.is_empty());
        served.join().unwrap();
        let line = only_line(&courser);
        assert_closed(&line, "backend_handshake_failed", "backend");
    }
}

#[test]
fn a_client_that_has_ended_gets_the_answer_to_all_it_has_sent() {
    let site = Site::new();
    let script = "tls.sendall(b'%d bytes' % len(rest())); tls.unwrap()";
    let Some((_server, address)) = python(&site, script) else { return };
    let courser = site.serve(&address, TLS);
    let mut connection = client(&courser).connect().unwrap();
    connection.stream().write_all(&[7; 100_000]).unwrap();
    connection.tls().send_close_notify();
    let mut answer = String::new();
    connection.stream().read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "100000 bytes");
    assert_closed(&only_line(&courser), "done", "none");
}

#[test]
fn a_backend_that_ends_first_may_be_sent_more() {
    let site = Site::new();
    let script = "tls.sendall(b'first'); tls.unwrap()";
    let Some((_server, address)) = python(&site, script) else { return };
    let courser = site.serve(&address, TLS);
    let mut connection = client(&courser).connect().unwrap();
    let mut answer = String::new();
    connection.stream().read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "first");
    connection.close().unwrap();
    assert_closed(&only_line(&courser), "done", "none");
}

/// The backend's FIN comes without close_notify: whoever is on the path could have sent it.
#[test]
fn a_backend_that_is_cut_off_is_no_whole_answer() {
    let site = Site::new();
    let script =
        "tls.sendall(b'half'); plain = socket.socket(fileno=tls.detach()); plain.shutdown(1); plain.close()";
    let Some((_server, address)) = python(&site, script) else { return };
    let courser = site.serve(&address, TLS);
    let mut connection = client(&courser).connect().unwrap();
    let mut answer = Vec::new();
    let cut = connection.stream().read_to_end(&mut answer).unwrap_err();
    assert_eq!((cut.kind(), answer.as_slice()), (ErrorKind::UnexpectedEof, &b"half"[..]));
    assert_closed(&only_line(&courser), "backend_truncated", "backend");
}

#[test]
fn a_client_that_is_cut_off_is_no_whole_request_to_the_backend() {
    let site = Site::new();
    let script = "
try:
    rest()
    print('whole', flush=True)
except ssl.SSLEOFError:
    print('cut', flush=True)";
    let Some((server, address)) = python(&site, script) else { return };
    let courser = site.serve(&address, TLS);
    let mut connection = client(&courser).connect().unwrap();
    connection.stream().write_all(b"half").unwrap();
    connection.socket().shutdown(std::net::Shutdown::Write).unwrap();
    let seen = server.wait_stdout("its verdict", |lines| lines.get(1).cloned());
    assert_eq!(seen, "cut");
    assert_closed(&only_line(&courser), "truncated", "client");
}

/// `K` makes openssl send a KeyUpdate that asks for one (RFC 8446, section 4.6.3).
#[test]
fn keys_are_updated_when_openssl_asks_for_it() {
    let site = Site::new();
    let Some((server, mut input, port)) = site.openssl_with_input(&site.issue(), &["-tls1_3", "-msg"]) else {
        return;
    };
    let wait = |direction: &str, what: &str, count: usize| {
        let is_it = |line: &&String| line.starts_with(direction) && line.contains(what);
        server.wait_stdout(what, |lines| (lines.iter().filter(is_it).count() == count).then_some(()));
    };
    let courser = site.serve(&format!("127.0.0.1:{port}"), TLS);
    let mut connection = client(&courser).connect().unwrap();
    connection.stream().write_all(b"begin\n").unwrap();
    wait("begin", "", 1);
    for turn in 1..=3 {
        input.write_all(b"K\n").unwrap();
        wait(">>>", "KeyUpdate", turn);
        input.write_all(format!("answer {turn}\n").as_bytes()).unwrap();
        let mut answer = [0; 9];
        connection.stream().read_exact(&mut answer).unwrap();
        assert_eq!(answer, format!("answer {turn}\n").as_bytes());
        connection.stream().write_all(format!("question {turn}\n").as_bytes()).unwrap();
        wait("<<<", "KeyUpdate", turn);
        wait("question", &turn.to_string(), 1);
    }
}

/// Two of the program, one behind the other.
#[test]
fn much_goes_both_ways_through_two_terminators() {
    let (site, origin) = (Site::new(), OriginServer::echo());
    let certificate = site.issue().write_combined(&site.folder, "inner");
    let inner = courser().cert(&certificate).backend(origin.backend()).args(["--log", "json"]).start();
    let outer = site.serve(&inner.address().to_string(), TLS);
    let mut connection = client(&outer).connect().unwrap();
    let block: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[1]).collect();
    for _ in 0..20 {
        connection.stream().write_all(&block).unwrap();
        let mut echo = vec![0; block.len()];
        connection.stream().read_exact(&mut echo).unwrap();
        assert!(echo == block, "the same bytes come back");
    }
    connection.close().unwrap();
    for line in [only_line(&outer), only_line(&inner)] {
        assert_closed(&line, "done", "none");
        assert_eq!((line["bytes_in"].as_u64(), line["bytes_out"].as_u64()), (Some(20 << 20), Some(20 << 20)));
    }
    let outer = only_line(&outer);
    assert_eq!(outer["backend_suite"], "TLS_AES_128_GCM_SHA256", "{outer}");
}

#[test]
fn the_protocol_of_the_client_is_the_one_that_the_backend_is_offered() {
    let (site, port, Some(_)) = (Site::new(), free_port(), require("curl")) else { return };
    let server =
        format!("server {{ listen 127.0.0.1:{port} ssl; CERT return 200 'got <$ssl_alpn_protocol>'; }}");
    let Some(_nginx) = site.nginx(&server) else { return };
    wait_for_port(port);
    let courser = site.serve_all(&format!("'127.0.0.1:{port}'"), TLS, "alpn = ['h2', 'http/1.1']");
    let url = format!("https://localhost:{}/", courser.address().port());
    let page = content(run(Command::new("curl").args(["-sSk", "--http1.1", "--ipv4", &url])));
    assert_eq!(page, "got <http/1.1>");
    assert!(get(&courser).ends_with("got <>"));
}
