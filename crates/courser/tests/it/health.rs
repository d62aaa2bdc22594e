//! Active checks: what makes a server down and up, and what an operator reads of it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use courser_testkit::client::Version;
use courser_testkit::{Behaviour, Courser, OriginServer, Process, TestCa, free_port, require};

use crate::stage::{Stage, courser, eventually, run_courser};

/// A terminator with the pool `shop` of these servers, one listener, and a check.
fn serve(stage: &Stage, servers: &[&str], check: &str, listener: &str) -> Courser {
    let certificate = stage.certificate.display();
    let text = format!(
        "workers = 1\nlog = 'json'\n[pool.shop]\nservers = {servers:?}\ncheck = {check}\n\
         [[listener]]\nlisten = '127.0.0.1:0'\ncert = '{certificate}'\npool = 'shop'\n{listener}\n"
    );
    courser().config(&stage.folder.write("courser.toml", text)).start()
}

fn get(stage: &Stage, courser: &Courser) -> bool {
    stage.client(courser, Version::Tls13).connect().unwrap().get(10, true).is_ok()
}

fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

#[test]
fn a_server_that_is_gone_is_down_before_a_client_finds_out_and_up_when_it_is_back() {
    let (stage, other, address) = (Stage::new(), OriginServer::http(), free_address());
    let servers = [&address.to_string(), other.backend()];
    let courser = serve(&stage, &servers, "{ kind = 'tcp', interval = '50ms' }", "");
    courser.wait_stderr_line(&format!("pool shop: server {address}: down: tcp check: connection refused"));
    for _ in 0..10 {
        assert!(get(&stage, &courser));
    }
    let lines = courser.connections_json(10);
    assert!(lines.iter().all(|line| line["retries"] == 0), "{lines:#?}");
    let _back = OriginServer::setup(Behaviour::Http).listen(address).start();
    courser.wait_stderr_line("up after 0 s: tcp check: connected");
    let warnings = courser.stderr();
    assert_eq!(
        warnings.iter().filter(|line| line.contains(": down:")).count(),
        1,
        "one line for each change"
    );
}

#[test]
fn the_last_server_that_goes_down_is_told_loudly_and_gets_connections_all_the_same() {
    let (stage, address) = (Stage::new(), free_address());
    let courser = serve(&stage, &[&address.to_string()], "{ kind = 'tcp', interval = '50ms' }", "");
    courser.wait_stderr_line("error: pool shop: NO SERVER IS GOOD");
    assert!(!get(&stage, &courser));
    let origin = OriginServer::setup(Behaviour::Http).listen(address).start();
    courser.wait_stderr_line("pool shop: a server is good again");
    assert!(get(&stage, &courser));
    drop(origin);
    // Three checks have to fail: till then connections are tried.
    courser.wait_stderr_line("connection refused after");
    courser.wait_stderr("the second time", |lines| {
        (lines.iter().filter(|line| line.contains("NO SERVER IS GOOD")).count() == 2).then_some(())
    });
    let told = courser.stderr();
    assert!(told.iter().any(|line| line.contains(", 3 times in a row; 0 of 1 left")), "{told:#?}");
}

#[test]
fn nginx_is_down_while_its_page_for_checks_says_503() {
    let (stage, other) = (Stage::new(), OriginServer::http());
    let Some((_nginx, address)) = nginx(&stage, "") else { return };
    let check = "{ kind = 'http', path = '/health', host = 'shop.test', interval = '50ms' }";
    let courser = serve(&stage, &[&address.to_string(), other.backend()], check, "");
    let requests = || fs::read_to_string(stage.folder.join("access.log")).unwrap_or_default();
    eventually("two checks", || requests().lines().count() >= 2);
    assert!(requests().lines().all(|line| line == "shop.test GET /health HTTP/1.1 200"), "{}", requests());
    stage.folder.write("ill", "");
    courser.wait_stderr_line(&format!("pool shop: server {address}: down: http check: HTTP 503 after"));
    for _ in 0..4 {
        assert!(get(&stage, &courser));
    }
    fs::remove_file(stage.folder.join("ill")).unwrap();
    courser.wait_stderr_line(": up after");
    // A check is no client: there are as many lines as clients.
    let lines = courser.connections_json(4);
    assert!(lines.len() == 4 && lines.iter().all(|line| line["backend"] == other.backend()), "{lines:#?}");
}

#[test]
fn a_check_of_a_server_that_expects_a_proxy_header_begins_with_one() {
    for version in ["v1", "v2"] {
        let stage = Stage::new();
        let Some((_nginx, address)) = nginx(&stage, "proxy_protocol") else { return };
        let sent = format!("send_proxy = '{version}'");
        let check = "{ kind = 'http', path = '/health', interval = '50ms' }";
        let courser = serve(&stage, &[&address.to_string()], check, &sent);
        let log = || fs::read_to_string(stage.folder.join("access.log")).unwrap_or_default();
        eventually("checks", || log().lines().count() >= 2);
        let whole = format!("{address} GET /health HTTP/1.1 200");
        assert!(log().lines().all(|line| line == whole), "{}", log());
        assert!(!courser.stderr().iter().any(|line| line.contains("down")), "{:#?}", courser.stderr());
    }
}

#[test]
fn a_server_that_accepts_and_hangs_is_down() {
    let (stage, hung) = (Stage::new(), OriginServer::setup(Behaviour::Silent).start());
    let check = "{ kind = 'http', interval = '50ms', timeout = '100ms' }";
    let courser = serve(&stage, &[hung.backend()], check, "");
    courser.wait_stderr_line("down: http check: no answer after 1");
}

#[test]
fn what_is_no_http_is_told_as_that() {
    let (stage, greets) =
        (Stage::new(), OriginServer::setup(Behaviour::Greet(b"SSH-2.0-x\r\n".into())).start());
    let courser = serve(&stage, &[greets.backend()], "{ kind = 'http', interval = '50ms' }", "");
    courser.wait_stderr_line("down: http check: the answer is not HTTP/1");
}

#[test]
fn a_server_that_flaps_faster_than_its_limits_changes_nothing_and_writes_nothing() {
    let (stage, listener) = (Stage::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (address, checks) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&checks);
    thread::spawn(move || {
        for stream in listener.incoming() {
            // Well, ill, ill, well and so on: never ill three times in a row.
            let status = if seen.fetch_add(1, Ordering::Relaxed) % 3 == 0 { "200 OK" } else { "500 No" };
            answer(&mut stream.unwrap(), &format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    let courser =
        serve(&stage, &[&address.to_string()], "{ kind = 'http', interval = '10ms', timeout = '5s' }", "");
    eventually("checks", || checks.load(Ordering::Relaxed) > 30);
    assert!(!courser.stderr().iter().any(|line| line.contains("pool shop")), "{:#?}", courser.stderr());
}

/// Reads a request and answers it.
fn answer(stream: &mut TcpStream, answer: &str) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
        request.push(byte[0]);
    }
    let _ = stream.write_all(answer.as_bytes());
}

/// nginx with a page for checks, which says 503 while there is a file `ill`, and a log of requests.
fn nginx(stage: &Stage, listen: &str) -> Option<(Process, SocketAddr)> {
    let (program, address) = (require("nginx")?, free_address());
    let folder = stage.folder.path().display();
    let configuration = format!(
        "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;
events {{}}
http {{
  log_format checks '$http_host $request $status';
  access_log {folder}/access.log checks;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen {address} {listen};
    location = /health {{ if (-f {folder}/ill) {{ return 503; }} return 200; }}
    location / {{ access_log off; return 200 0123456789; }}
  }}
}}"
    );
    let file = stage.folder.write("nginx.conf", configuration);
    let process =
        Process::start(Command::new(program).arg("-p").arg(stage.folder.path()).arg("-c").arg(file));
    eventually("nginx listens", || TcpStream::connect(address).is_ok());
    Some((process, address))
}

/// A pool of one server that speaks TLS: openssl with the stage's certificate, in which `trusted` has to be among the issuers.
fn served_by_openssl(stage: &Stage, check: &str, trusted: &Path) -> Option<(Process, Courser)> {
    let (openssl, port) = (require("openssl")?, free_port());
    let mut command = Command::new(openssl);
    command.args(["s_server", "-quiet", "-www", "-accept", &format!("127.0.0.1:{port}"), "-cert"]);
    let server = Process::start(command.arg(&stage.certificate).arg("-key").arg(&stage.certificate));
    let (certificate, trusted) = (stage.certificate.display(), trusted.display());
    let control = stage.folder.join("control.sock").display().to_string();
    let text = format!(
        "workers = 1\ncontrol = '{control}'\n[pool.shop]\nservers = '127.0.0.1:{port}'\ncheck = {check}\n\
         tls = {{ verify = ['{trusted}'], server_name = 'localhost' }}\n\
         [[listener]]\nlisten = '127.0.0.1:0'\ncert = '{certificate}'\npool = 'shop'\n"
    );
    eventually("openssl listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    Some((server, courser().config(&stage.folder.write("courser.toml", text)).start()))
}

#[test]
fn a_check_by_handshake_and_one_by_https_pass_where_the_server_proves_who_it_is() {
    for (kind, seen) in [("tls", "TLSv1.3"), ("http", "HTTP 200")] {
        let stage = Stage::new();
        let check = format!("{{ kind = '{kind}', interval = '50ms' }}");
        let Some((_server, courser)) = served_by_openssl(&stage, &check, &stage.root) else { return };
        let control = stage.folder.join("control.sock").display().to_string();
        let list = || run_courser(&["backend", "list", "--json", "--control", &control]).stdout;
        eventually("a check has passed", || list().contains(&format!("\"seen\":\"{seen}\"")));
        assert!(list().contains("\"state\":\"up\""), "{}", list());
        assert!(!courser.stderr().iter().any(|line| line.contains("down")), "{:?}", courser.stderr());
    }
}

#[test]
fn a_server_that_cannot_prove_who_it_is_is_down_by_its_handshake() {
    let (stage, other) = (Stage::new(), TestCa::named("other"));
    let stranger = stage.folder.write("other.pem", other.root_pem());
    let check = "{ kind = 'tls', interval = '50ms' }";
    let Some((_server, courser)) = served_by_openssl(&stage, check, &stranger) else { return };
    let line = courser.wait_stderr_line("down: tls check: ");
    assert!(line.contains("unknown authority"), "{line}");
}
