//! What a backend is told of the client, as nginx, HAProxy and a parser from a registry understand it.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
};

use courser_testkit::{Behaviour, Folder, OriginServer, Process, free_port, require, skip};
use serde_json::{Value, json};

use crate::stage::{Stage, content, eventually, only_line, run};

#[test]
fn nginx_learns_the_addresses_from_v1() {
    told(&nginx, "v1", "127.0.0.1:0");
}

#[test]
fn nginx_learns_the_addresses_from_v2() {
    told(&nginx, "v2", "127.0.0.1:0");
}

#[test]
fn haproxy_learns_the_addresses_from_v1() {
    told(&haproxy, "v1", "127.0.0.1:0");
}

#[test]
fn haproxy_learns_the_addresses_from_v2() {
    told(&haproxy, "v2", "127.0.0.1:0");
}

#[test]
fn ipv6_addresses_are_told_in_both_versions() {
    told(&haproxy, "v1", "[::1]:0");
    told(&haproxy, "v2", "[::1]:0");
}

#[test]
fn haproxy_learns_the_server_name_and_the_id_of_the_log() {
    let stage = Stage::new();
    let Some((_haproxy, address)) = haproxy(&stage) else { return };
    let courser = stage.courser().backend(address.to_string()).args(["--send-proxy", "v2"]).start();
    let said = content(run(&mut stage.curl(&courser, "/")));
    let line = only_line(&courser);
    assert!(said.ends_with(&format!(" localhost {}", line["id"].as_str().unwrap())), "{said}");
}

#[test]
fn an_independent_parser_reads_every_field_of_v2() {
    let stage = Stage::new();
    let origin = OriginServer::setup(Behaviour::Http).proxy().start();
    let courser = stage
        .courser()
        .backend(origin.backend())
        .args(["--send-proxy", "v2", "--alpn", "h2,http/1.1"])
        .start();
    if require("curl").is_none() {
        return;
    }
    content(run(stage.curl(&courser, "/").args(["--http1.1", "--curves", "X25519"])));
    let Some(parsed) = parse(&stage.folder, &origin.headers()[0]) else { return };
    let line = only_line(&courser);
    let expected = json!({
        "source": line["client"],
        "destination": courser.address().to_string(),
        "alpn": "http/1.1",
        "authority": "localhost",
        "unique_id": line["id"],
        "checksum": true,
        "over_tls": true,
        "on_connection": false,
        "in_session": false,
        "common_name": null,
        "verified": false,
        "version": line["version"],
        "cipher": line["suite"],
        "signature": "SHA256",
        "key": "EC256",
        "group": line["group"],
        "scheme": line["scheme"],
        "client_certificate": null,
        "others": {},
    });
    assert_eq!(parsed, expected);
}

#[test]
fn a_client_without_name_and_protocol_has_neither_in_the_header() {
    let stage = Stage::new();
    let origin = OriginServer::setup(Behaviour::Http).proxy().start();
    let courser = stage.courser().backend(origin.backend()).args(["--send-proxy", "v2"]).start();
    if require("curl").is_none() {
        return;
    }
    // curl sends no server name when it is given an address.
    let url = format!("https://{}/", courser.address());
    content(run(Command::new("curl").args(["--silent", "--no-alpn", "--cacert"]).arg(&stage.root).arg(url)));
    let Some(parsed) = parse(&stage.folder, &origin.headers()[0]) else { return };
    assert_eq!((&parsed["authority"], &parsed["alpn"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_client_on_a_unix_socket_has_no_address_to_tell() {
    let stage = Stage::new();
    let origin = OriginServer::setup(Behaviour::Http).proxy().start();
    let socket = stage.folder.join("front.sock");
    let listen = format!("unix:{}", socket.display());
    let courser =
        stage.courser().listen(listen).backend(origin.backend()).args(["--send-proxy", "v1"]).start();
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--cacert"])
        .arg(&stage.root)
        .arg("--unix-socket")
        .arg(&socket)
        .arg("https://localhost/");
    content(run(&mut curl));
    assert_eq!(String::from_utf8_lossy(&origin.headers()[0]), "PROXY UNKNOWN\r\n");
    drop(courser);
}

#[test]
fn version_2_may_have_the_addresses_alone() {
    let stage = Stage::new();
    let origin = OriginServer::setup(Behaviour::Http).proxy().start();
    let courser = stage.courser().backend(origin.backend()).args(["--send-proxy", "v2-addresses"]).start();
    if require("curl").is_none() {
        return;
    }
    content(run(&mut stage.curl(&courser, "/")));
    assert_eq!(origin.headers()[0].len(), 16 + 12);
    let Some((_haproxy, address)) = haproxy(&stage) else { return };
    let courser = stage.courser().backend(address.to_string()).args(["--send-proxy", "v2-addresses"]).start();
    let said = content(run(&mut stage.curl(&courser, "/")));
    let client = only_line(&courser)["client"].as_str().unwrap().replace(':', " ");
    let here = courser.address();
    assert_eq!(
        said.trim_end(),
        format!("{client} {} {}", here.ip(), here.port()),
        "neither a name nor an ID"
    );
}

#[test]
fn a_client_on_a_unix_socket_is_of_that_family_in_version_2() {
    for (kind, flags) in [("unix", ["--unix-socket"]), ("abstract", ["--abstract-unix-socket"])] {
        let stage = Stage::new();
        let origin = OriginServer::setup(Behaviour::Http).proxy().start();
        let path = stage.folder.join("front.sock").display().to_string();
        let courser = stage
            .courser()
            .listen(format!("{kind}:{path}"))
            .backend(origin.backend())
            .args(["--send-proxy", "v2"])
            .start();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--cacert"]).arg(&stage.root).args(flags).args([&path, "https://localhost/"]);
        content(run(&mut curl));
        let expected = if kind == "unix" { path } else { format!("\0{path}") };
        let header = &origin.headers()[0];
        assert_eq!((header[12], header[13]), (0x21, 0x31), "PROXY, AF_UNIX and SOCK_STREAM");
        assert!(header[16..124].iter().all(|byte| *byte == 0), "clients have no path");
        assert_eq!(String::from_utf8_lossy(&header[124..232]).trim_end_matches('\0'), expected);
        let Some(parsed) = parse(&stage.folder, header) else { return };
        assert_eq!((&parsed["authority"], &parsed["checksum"]), (&json!("localhost"), &json!(true)));
        drop(courser);
    }
}

#[test]
fn the_header_does_not_wait_for_the_client_to_speak() {
    for version in ["v1", "v2"] {
        let stage = Stage::new();
        let origin = OriginServer::setup(Behaviour::Greet(b"220 ready".into())).proxy().start();
        let courser = stage.courser().backend(origin.backend()).args(["--send-proxy", version]).start();
        let Some(done) = stage.python(&courser, "print(connect().recv(100))") else { return };
        assert_eq!(content(done), "b'220 ready'");
        assert_eq!(origin.headers().len(), 1);
    }
}

/// A backend in another's words: its process and where it listens.
type Judge = dyn Fn(&Stage) -> Option<(Process, SocketAddr)>;

/// Asserts that a backend answers with the client's address and port, and the terminator's.
#[track_caller]
fn told(judge: &Judge, version: &str, listen: &str) {
    let stage = Stage::new();
    let Some((_judge, backend)) = judge(&stage) else { return };
    let courser =
        stage.courser().listen(listen).backend(backend.to_string()).args(["--send-proxy", version]).start();
    let said = content(run(&mut stage.curl(&courser, "/")));
    let peer: SocketAddr = only_line(&courser)["client"].as_str().unwrap().parse().unwrap();
    let here = courser.address();
    let expected = format!("{} {} {} {}", peer.ip(), peer.port(), here.ip(), here.port());
    assert!(said.starts_with(&expected), "{said:?} instead of {expected:?}");
}

fn nginx(stage: &Stage) -> Option<(Process, SocketAddr)> {
    let program = require("nginx")?;
    let address = free_address();
    let folder = stage.folder.path().display();
    let configuration = format!(
        "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen {address} proxy_protocol;
    location / {{
      return 200 \"$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port\";
    }}
  }}
}}"
    );
    let file = stage.folder.write("nginx.conf", configuration);
    Some(listening(Command::new(program).arg("-p").arg(stage.folder.path()).arg("-c").arg(file), address))
}

fn haproxy(stage: &Stage) -> Option<(Process, SocketAddr)> {
    let program = require("haproxy")?;
    let address = free_address();
    let configuration = format!(
        "defaults
  mode http
  timeout client 30s
frontend judge
  bind {address} accept-proxy
  http-request return status 200 content-type text/plain lf-string \
\"%[src] %[src_port] %[dst] %[dst_port] %[fc_pp_authority] %[fc_pp_unique_id]\"
"
    );
    let file = stage.folder.write("haproxy.cfg", configuration);
    Some(listening(Command::new(program).args(["-db", "-q", "-f"]).arg(file), address))
}

fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

fn listening(command: &mut Command, address: SocketAddr) -> (Process, SocketAddr) {
    let process = Process::start(command);
    eventually("the backend listens", || TcpStream::connect(address).is_ok());
    (process, address)
}

/// What PyPI's proxy-protocol reads in a header; `None`, with the reason printed, where it cannot be had.
pub(crate) fn parse(folder: &Folder, header: &[u8]) -> Option<Value> {
    let (python, package) = (require("python3")?, proxy_protocol_package()?);
    let file = folder.write("header", header);
    let judge = include_str!("judges/proxy_v2.py");
    let mut command = Command::new(python);
    command.env("PYTHONPATH", package).arg("-c").arg(judge).arg(file);
    Some(serde_json::from_str(&content(run(&mut command))).unwrap())
}

/// The folder of the package, installed at the first call of all test runs.
fn proxy_protocol_package() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("proxy-protocol-0.11.3");
    if !folder.exists() {
        let unfinished = folder.with_extension(std::process::id().to_string());
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "proxy-protocol==0.11.3", "crc32c==2.7.1", "--target"]);
        let installed = run(pip.arg(&unfinished));
        if !installed.status.success() {
            skip(format!("pip cannot install proxy-protocol: {}", installed.stderr));
            return None;
        }
        if fs::rename(&unfinished, &folder).is_err() {
            // Another test was faster.
            let _ = fs::remove_dir_all(&unfinished);
        }
    }
    Some(folder)
}
