//! Sessions that are resumed.

use std::collections::HashSet;

use courser_testkit::KeyType::{EcdsaP256, Rsa2048};
use courser_testkit::{Courser, require};

use super::visitor::Visitor;
use crate::stage::{content, run};
use crate::support::{
    SESSION_ID, Site, TICKET, WAYS, Way, assert_line, client, later_line, line, openssl, text,
};

const RETURNS: usize = 20;

#[test]
fn openssl_reconnects_into_its_session_by_ticket_and_by_session_id() {
    for way in [TICKET, SESSION_ID] {
        let site = Site::new();
        let courser = site.serve(&[EcdsaP256]).start();
        let Some(said) = openssl(courser.address(), &format!("{} -reconnect", way.flags)) else { return };
        said.has_page();
        let count = |what: &str| said.text.matches(what).count();
        assert_eq!((count("New, TLSv1.2"), count("Reused, TLSv1.2")), (1, 5), "{}", said.text);
        assert_eq!(resumed(&courser, 6, way), 5);
    }
}

#[test]
fn twenty_returns_by_ticket_are_resumed_by_every_worker() {
    twenty_returns(WAYS[0]);
}

#[test]
fn twenty_returns_by_session_id_are_resumed_by_every_worker() {
    twenty_returns(WAYS[1]);
}

#[test]
fn twenty_returns_by_pre_shared_key_are_resumed_by_every_worker() {
    twenty_returns(WAYS[2]);
}

#[track_caller]
fn twenty_returns(way: Way) {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).start();
    let visitor = Visitor::new(&site, way);
    if visitor.come(&courser, "").is_none() {
        return;
    }
    for _ in 0..RETURNS {
        visitor.is_resumed(&courser, "");
    }
    assert_eq!(resumed(&courser, RETURNS + 1, way), RETURNS);
    let lines = courser.connections_json(RETURNS + 1);
    let resumed = lines.iter().filter(|line| line["session"] == way.session);
    let workers: HashSet<_> = resumed.filter_map(|line| line["worker"].as_u64()).collect();
    assert_eq!(workers, HashSet::from([0, 1]));
}

/// How many of `count` connections were resumed in this way.
fn resumed(courser: &Courser, count: usize, way: Way) -> usize {
    courser.connections_json(count).iter().filter(|line| line["session"] == way.session).count()
}

#[test]
fn a_resumed_session_keeps_its_suite_and_needs_no_signature() {
    let site = Site::new();
    let courser = site.serve(&[Rsa2048]).start();
    for (index, way) in WAYS.into_iter().enumerate() {
        let visitor = Visitor::new(&site, way);
        if visitor.come(&courser, "").and_then(|_| visitor.is_resumed(&courser, "")).is_none() {
            return;
        }
        let [full, resumed] = [2 * index + 1, 2 * index + 2].map(|number| line(&courser, number));
        assert_eq!(full["suite"], resumed["suite"]);
        assert!(full["scheme"].is_string() && resumed["scheme"].is_null(), "{resumed}");
        assert!(resumed["not_resumed"].is_null(), "{resumed}");
    }
}

#[test]
fn a_name_and_an_application_protocol_are_no_hindrance() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).args(["--alpn", "http/1.1"]).start();
    for way in WAYS {
        let visitor = Visitor::new(&site, way);
        let more = "-servername localhost -alpn http/1.1";
        if visitor.come(&courser, more).and_then(|_| visitor.is_resumed(&courser, more)).is_none() {
            return;
        }
    }
}

#[test]
fn gnutls_resumes_too() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).start();
    let port = courser.address().port().to_string();
    let versions = [("NORMAL:-VERS-ALL:+VERS-TLS1.2", "ticket"), ("NORMAL:-VERS-ALL:+VERS-TLS1.3", "psk")];
    let by_id = ("NORMAL:-VERS-ALL:+VERS-TLS1.2:%NO_TICKETS", "session_id");
    for (index, (priority, session)) in versions.into_iter().chain([by_id]).enumerate() {
        let arguments =
            ["--insecure", "--resume", "--waitresumption", "--priority", priority, "-p", &port, "127.0.0.1"];
        let Some(said) = client("gnutls-cli", &arguments, "GET / HTTP/1.0\r\n\r\n") else { return };
        said.has("*** This is a resumed session");
        assert_line(&later_line(&courser, 2 * index + 2), &[("session", session)]);
    }
}

#[test]
fn python_resumes_too() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).start();
    let Some(python) = require("python3") else { return };
    for (index, (version, session)) in [("TLSv1_2", "ticket"), ("TLSv1_3", "psk")].into_iter().enumerate() {
        let mut command = std::process::Command::new(&python);
        command.args(["-c", PYTHON, text(&site.root()), &courser.address().port().to_string(), version]);
        assert_eq!(content(run(&mut command)).trim(), "False True");
        assert_line(&later_line(&courser, 2 * index + 2), &[("session", session), ("close_reason", "done")]);
    }
}

const PYTHON: &str = r#"
import socket, ssl, sys
root, port, version = sys.argv[1:]
context = ssl.create_default_context(cafile=root)
context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
def visit(session):
    plain = socket.create_connection(("127.0.0.1", int(port)), timeout=15)
    tls = context.wrap_socket(plain, server_hostname="localhost", session=session)
    tls.sendall(b"GET / HTTP/1.0\r\n\r\n")
    while tls.recv(65536): pass
    kept, reused = tls.session, tls.session_reused
    tls.unwrap()
    return kept, reused
session, first = visit(None)
print(first, visit(session)[1])
"#;
