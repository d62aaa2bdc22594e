//! Where the plaintext goes: every kind of address, each backend in turn, and what happens when one is not there.

mod affinity;
mod attempts;
mod families;
mod faults;
mod names;
mod pools;
mod services;

use std::{
    io::Write,
    net::SocketAddr,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr as UnixAddr, UnixListener},
    },
    thread,
};

use courser_testkit::{Behaviour, Courser, Folder, OriginServer, client::Version, free_port};

use crate::stage::{Stage, Stuck, assert_closed, content, courser, only_line};

#[test]
fn a_backend_on_ipv4_is_reached() {
    reached(&OriginServer::http(), None);
}

#[test]
fn a_backend_on_ipv6_is_reached() {
    let loopback: SocketAddr = "[::1]:0".parse().unwrap();
    reached(&OriginServer::setup(Behaviour::Http).listen(loopback).start(), None);
}

#[test]
fn a_backend_by_name_is_reached() {
    let origin = OriginServer::http();
    reached(&origin, Some(&format!("localhost:{}", origin.address().port())));
}

#[test]
fn a_backend_on_a_unix_socket_is_reached() {
    let folder = Folder::new();
    reached(&OriginServer::setup(Behaviour::Http).unix(folder.join("app.sock")).start(), None);
}

#[test]
fn a_backend_on_an_abstract_socket_is_reached() {
    let stage = Stage::new();
    let name = format!("courser-test-backend-{}", std::process::id());
    let listener = UnixListener::bind_addr(&UnixAddr::from_abstract_name(&name).unwrap()).unwrap();
    let served = thread::spawn(move || listener.accept().unwrap().0.write_all(b"from the void").unwrap());
    let courser = stage.serve(format!("abstract:{name}"));
    let Some(done) = stage.python(&courser, "print(rest(connect()))") else { return };
    assert_eq!(content(done), "b'from the void'");
    served.join().unwrap();
    assert_eq!(only_line(&courser)["backend"], format!("abstract:{name}"));
}

#[test]
fn backends_take_turns() {
    let stage = Stage::new();
    let origins = [OriginServer::http(), OriginServer::http(), OriginServer::http()];
    let courser =
        origins.iter().fold(stage.courser(), |setup, origin| setup.backend(origin.backend())).start();
    let client = stage.client(&courser, Version::Tls13);
    for _ in 0..9 {
        client.connect().unwrap().get(10, true).unwrap();
    }
    assert_eq!(origins.each_ref().map(OriginServer::accepted), [3, 3, 3]);
    let named = |line: &serde_json::Value| line["backend"].as_str().unwrap().to_owned();
    let lines: Vec<String> = courser.connections_json(9).iter().map(named).collect();
    let expected: Vec<&str> = origins.iter().map(OriginServer::backend).cycle().take(9).collect();
    assert_eq!(lines, expected);
}

#[test]
fn each_host_has_its_own_round() {
    let stage = Stage::new();
    let origins: [OriginServer; 4] = std::array::from_fn(|_| OriginServer::http());
    let listener = |name: &str, pair: &[OriginServer]| {
        let (certificate, [first, second]) =
            (stage.certificate.display(), [&pair[0], &pair[1]].map(OriginServer::backend));
        format!(
            "[[listener]]\nname = '{name}'\nlisten = '127.0.0.1:0'\ncert = '{certificate}'\n\
             backend = ['{first}', '{second}']\n"
        )
    };
    let config = [listener("first", &origins[..2]), listener("second", &origins[2..])].concat();
    let file = stage.folder.write("courser.toml", format!("workers = 1\n{config}"));
    let courser = courser().config(&file).sockets(2).start();
    let client = stage.client(&courser, Version::Tls13);
    for _ in 0..6 {
        for address in courser.addresses() {
            client.at(address.parse().unwrap()).connect().unwrap().get(10, true).unwrap();
        }
    }
    assert_eq!(origins.each_ref().map(OriginServer::accepted), [3, 3, 3, 3]);
}

#[test]
fn a_backend_that_refuses_is_passed_over() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.courser().backend(nobody()).backend(origin.backend()).start();
    served_after_one_retry(&stage, &courser, &origin);
    courser.wait_stderr_line("refused");
}

#[test]
fn a_backend_that_does_not_answer_is_passed_over() {
    let stage = Stage::new();
    let (stuck, origin) = (Stuck::new(), OriginServer::http());
    let courser = stage
        .courser()
        .backend(stuck.address())
        .backend(origin.backend())
        .args(["--connect-timeout", "200ms"])
        .start();
    served_after_one_retry(&stage, &courser, &origin);
    courser.wait_stderr_line("timed out");
}

#[test]
fn without_any_backend_the_client_gets_a_clean_end() {
    let stage = Stage::new();
    let courser = stage.courser().backend(nobody()).backend(nobody()).start();
    let Some(done) = stage.python(&courser, "assert rest(connect()) == b''") else { return };
    content(done);
    let line = only_line(&courser);
    assert_closed(&line, "no_backend", "backend");
    assert_eq!(line["retries"], 2, "{line}");
    assert!(line["detail"].as_str().unwrap().contains("refused"), "{line}");
    courser.wait_stderr_line("warning: backend");
}

#[test]
fn a_name_without_an_address_is_warned_of_at_the_start_and_does_not_stop_the_others() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.courser().backend("nowhere.invalid:80").backend(origin.backend()).start();
    courser.wait_stderr_line("nowhere.invalid");
    let client = stage.client(&courser, Version::Tls13);
    for _ in 0..2 {
        client.connect().unwrap().get(10, true).unwrap();
    }
    assert_eq!(origin.accepted(), 2);
}

#[test]
fn a_backend_that_comes_back_is_used_again() {
    let stage = Stage::new();
    let address = nobody();
    let courser = stage.serve(&address);
    let client = stage.client(&courser, Version::Tls13);
    assert!(client.connect().unwrap().get(10, true).is_err());
    let _origin = OriginServer::setup(Behaviour::Http).listen(address.parse().unwrap()).start();
    client.connect().unwrap().get(10, true).unwrap();
}

#[test]
fn a_client_that_has_gone_already_troubles_no_backend() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    let script = "
context = ssl.create_default_context(cafile=os.environ['CA'])
context.maximum_version = ssl.TLSVersion.TLSv1_3
plain = socket.create_connection(('127.0.0.1', int(os.environ['PORT'])))
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(incoming, outgoing, server_hostname='localhost')
while True:
    try:
        tls.do_handshake()
        break
    except ssl.SSLWantReadError:
        plain.sendall(outgoing.read())
        incoming.write(plain.recv(65536))
try:
    tls.unwrap()
except ssl.SSLWantReadError:
    pass
plain.sendall(outgoing.read())  # Finished and close_notify together
while plain.recv(65536):
    pass";
    let Some(done) = stage.python(&courser, script) else { return };
    content(done);
    assert_closed(&only_line(&courser), "closed_after_handshake", "none");
    assert_eq!(origin.accepted(), 0);
}

/// Asserts that the page of `origin`, which the terminator is told of as `address`, comes through.
#[track_caller]
fn reached(origin: &OriginServer, address: Option<&str>) {
    let stage = Stage::new();
    let address = address.unwrap_or_else(|| origin.backend());
    let courser = stage.serve(address);
    stage.client(&courser, Version::Tls13).connect().unwrap().get(1000, true).unwrap();
    let line = only_line(&courser);
    assert_closed(&line, "done", "none");
    assert!(line["backend"].as_str().unwrap().starts_with(address), "{line}");
}

#[track_caller]
fn served_after_one_retry(stage: &Stage, courser: &Courser, origin: &OriginServer) {
    stage.client(courser, Version::Tls13).connect().unwrap().get(10, true).unwrap();
    let line = only_line(courser);
    assert_closed(&line, "done", "none");
    assert_eq!(
        (line["retries"].as_u64(), line["backend"].as_str()),
        (Some(1), Some(origin.backend())),
        "{line}"
    );
}

/// An address where nobody listens.
pub(crate) fn nobody() -> String {
    format!("127.0.0.1:{}", free_port())
}
