//! The line of each connection, and the lines for people.

use std::collections::HashSet;
use std::io::Write;
use std::net::TcpStream;

use courser_telemetry::connection::FIELDS;
use courser_testkit::{OriginServer, client::Version, free_port, require};
use serde_json::Value;

use crate::stage::{Stage, content, courser, eventually, only_line, run, run_courser};
use crate::support::text;

#[test]
fn a_line_in_json_has_every_field_in_its_type() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.courser().backend(origin.backend()).args(["--alpn", "http/1.1"]).start();
    if require("curl").is_none() {
        return;
    }
    content(run(stage.curl(&courser, "/?s=5000").args(["--http1.1", "--tlsv1.3"])));
    let line = only_line(&courser);
    let names: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
    let expected: HashSet<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.iter().copied().collect::<HashSet<_>>(), expected);
    for (name, value) in [
        ("listener", "default"),
        ("host", "default"),
        ("sni", "localhost"),
        ("alpn", "http/1.1"),
        ("version", "TLSv1.3"),
        ("suite", "TLS_AES_128_GCM_SHA256"),
        ("group", "X25519"),
        ("scheme", "ecdsa_secp256r1_sha256"),
        ("key", "EC256"),
        ("session", "full"),
        ("backend", origin.backend()),
        ("close_reason", "done"),
        ("cause", "none"),
    ] {
        assert_eq!(line[name], value, "{name}");
    }
    for name in ["not_resumed", "detail"] {
        assert_eq!(line[name], Value::Null, "{name}");
    }
    for name in ["hello_us", "handshake_us", "connect_us", "total_us"] {
        assert!(line[name].is_u64(), "{name} is {}", line[name]);
    }
    assert!(line["bytes_out"].as_u64() > Some(5000) && line["bytes_in"].as_u64() > Some(50), "{line}");
}

#[test]
fn status_counts_what_the_log_has() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let control = stage.folder.join("control.sock");
    let courser = stage.courser().backend(origin.backend()).arg("--control").arg(&control).start();
    let client = stage.client(&courser, Version::Tls13);
    (0..3).for_each(|_| client.connect().unwrap().get(5000, true).unwrap());
    TcpStream::connect(courser.address()).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let lines: Vec<Value> =
        (courser.connections(4).iter()).map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = run_courser(&["fleet", "status", "--json", "--control", text(&control)]).stdout;
    let status: Value = serde_json::from_str(&told).unwrap();
    let connections = &status["connections"];
    for reason in ["done", "not_tls"] {
        let logged = lines.iter().filter(|line| line["close_reason"] == reason).count();
        assert_eq!(connections["closed"][reason], logged, "{status:#}");
    }
    for field in ["bytes_in", "bytes_out"] {
        let logged: u64 = lines.iter().map(|line| line[field].as_u64().unwrap()).sum();
        assert_eq!(connections[field], logged, "{status:#}");
    }
    for (step, field) in [("hello", "hello_us"), ("handshake", "handshake_us"), ("connect", "connect_us")] {
        let mut logged: Vec<u64> = lines.iter().filter_map(|line| line[field].as_u64()).collect();
        logged.sort_unstable();
        let counted = &connections["steps"][step];
        let (median, found) = (logged[1], counted["p50_us"].as_u64().unwrap());
        assert_eq!((counted["count"].as_u64(), logged.len()), (Some(3), 3), "{status:#}");
        assert!(median < found && found <= median + median / 8 + 1, "{step}: {found} of {logged:?}");
    }
}

#[test]
fn a_line_in_text_has_the_same_fields_in_order() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = courser().cert(&stage.certificate).backend(origin.backend()).start();
    stage.client(&courser, Version::Tls12).connect().unwrap().get(10, true).unwrap();
    let line = courser.connections(1).remove(0);
    let names: Vec<&str> = line.split(' ').map(|pair| pair.split_once('=').unwrap().0).collect();
    let expected: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected, "{line}");
    for part in [" version=TLSv1.2 ", " sni=", " retries=0 ", " close_reason=done cause=none detail=-"] {
        assert!(line.contains(part), "{part} is missing in {line}");
    }
}

#[test]
fn the_parts_of_a_connection_s_time_add_up_to_no_more_than_the_whole() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    stage.client(&courser, Version::Tls13).connect().unwrap().get(10, true).unwrap();
    let line = only_line(&courser);
    let parts: u64 =
        ["hello_us", "handshake_us", "connect_us"].iter().filter_map(|name| line[name].as_u64()).sum();
    assert!(parts > 0 && parts <= line["total_us"].as_u64().unwrap(), "{line}");
}

#[test]
fn the_log_may_be_off() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let setup = courser().cert(&stage.certificate).backend(origin.backend());
    let mut courser = setup.args(["--log", "off"]).start();
    stage.client(&courser, Version::Tls13).connect().unwrap().get(10, true).unwrap();
    assert!(courser.stop().success());
    assert_eq!(courser.stdout(), [""; 0]);
}

#[test]
fn a_server_name_cannot_forge_a_line() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    // Python sends what it is told, spaces and line ends included, when it is told in bytes that are a name to it.
    let script = r#"
name = b'a" close_reason="done\r\nb'
names = bytes([0]) + len(name).to_bytes(2, 'big') + name
names = len(names).to_bytes(2, 'big') + names
extensions = bytes([0, 0]) + len(names).to_bytes(2, 'big') + names
body = bytes([3, 3]) + bytes(32) + bytes([0, 0, 2, 0x13, 1, 1, 0]) + len(extensions).to_bytes(2, 'big') + extensions
message = bytes([1]) + len(body).to_bytes(3, 'big') + body
plain = socket.create_connection(('127.0.0.1', int(os.environ['PORT'])))
plain.sendall(bytes([22, 3, 1]) + len(message).to_bytes(2, 'big') + message)
print(list(plain.recv(100)))"#;
    let Some(done) = stage.python(&courser, script) else { return };
    assert_eq!(content(done), "[21, 3, 3, 0, 2, 2, 47]");
    let line = only_line(&courser);
    assert_eq!(
        (line["close_reason"].as_str(), line["sni"].as_str()),
        (Some("malformed_hello"), None),
        "{line}"
    );
}

#[test]
fn an_application_protocol_cannot_forge_a_line() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let setup = courser().cert(&stage.certificate).backend(origin.backend());
    let courser = setup.args(["--alpn", "p\" close_reason=\"done"]).start();
    let script = "
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(['p\" close_reason=\"done'])
context.wrap_socket(socket.create_connection(('127.0.0.1', int(os.environ['PORT']))))";
    let Some(done) = stage.python(&courser, script) else { return };
    content(done);
    let line = courser.connections(1).remove(0);
    assert!(line.contains(r#" alpn="p\" close_reason=\"done" version="#), "{line}");
}

#[test]
fn a_server_name_is_logged_in_lower_case() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    let script = "
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.wrap_socket(socket.create_connection(('127.0.0.1', int(os.environ['PORT']))), server_hostname='LocalHost')";
    let Some(done) = stage.python(&courser, script) else { return };
    content(done);
    assert_eq!(only_line(&courser)["sni"], "localhost");
}

#[test]
fn a_flood_of_error_lines_is_limited_and_what_is_left_out_is_counted() {
    let stage = Stage::new();
    let courser = stage.serve(format!("127.0.0.1:{}", free_port()));
    let client = stage.client(&courser, Version::Tls13);
    let knock = || assert!(client.connect().unwrap().get(10, true).is_err());
    let warnings = || courser.stderr().iter().filter(|line| line.contains("warning: backend")).count();
    for _ in 0..100 {
        knock();
    }
    let _ = courser.connections(100);
    let written = warnings();
    assert!((10..=20).contains(&written), "{written} lines for 100 errors");
    let mut asked = 0;
    eventually("a line that counts", || {
        // Lines are written again in the next window of time; now and then is enough to notice.
        asked += 1;
        if asked % 20 == 0 {
            knock();
        }
        courser.stderr().iter().any(|line| line.contains("more `backend` lines suppressed before"))
    });
}
