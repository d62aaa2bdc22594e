//! Requests as HTTP/2, held to the logs of nginx and HAProxy; servers that agree on it and do something else.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use courser_testkit::{
    Fault, FaultyServer, Finished, Folder, KeyType, PATIENCE, Process, Signal, TestCa, body, free_port,
    require,
};

use crate::support::{AT_ONCE, Judged, finished, judge, url};

/// The client that is sent first, with one request.
const PROBE: u64 = 1;

/// More than a window of HTTP/2 is by default.
const OBJECT: usize = 300_000;

/// A real server that logs each request as `request HTTP/2.0 200`.
struct Server {
    process: Process,
    address: SocketAddr,
    stop: Signal,
    _folder: Folder,
}

impl Server {
    /// nginx. `listen`: what stands after the address; `set`: more of its `server`.
    fn nginx(listen: &str, set: &str) -> Option<Self> {
        let (program, folder) = (require("nginx")?, Folder::new());
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        fs::write(folder.path().join("object"), body(OBJECT)).unwrap();
        let pair = TestCa::new().localhost(KeyType::EcdsaP256, &folder, "site");
        let text = format!(
            "daemon off; worker_processes 1; pid {folder}/pid; error_log stderr crit; user root; events {{}}
http {{
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  log_format protocols 'request $server_protocol $status $host $http_x_name';
  access_log /dev/stdout protocols;
  server {{
    listen {address} {listen}; {set}
    ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {pair}; ssl_certificate_key {pair};
    location / {{ return 200 'well'; }}
    location /object {{ root {folder}; }}
    location /broken {{ return 503; }}
  }}
}}
",
            folder = folder.path().display(),
            pair = pair.display(),
        );
        let configuration = folder.write("nginx.conf", text);
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-c").arg(configuration);
        Some(Self::start(&mut command, address, Signal::SIGQUIT, folder))
    }

    fn haproxy() -> Option<Self> {
        let (program, folder) = (require("haproxy")?, Folder::new());
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let pair = TestCa::new().localhost(KeyType::EcdsaP256, &folder, "site");
        let text = format!(
            "global
  nbthread 1
  log stdout format raw local0
defaults
  mode http
  log global
  timeout connect 10s
  timeout client 1m
  timeout server 1m
frontend tls
  bind {address} ssl crt {pair} alpn h2,http/1.1
  log-format 'request %HV %ST'
  http-request return status 200 content-type text/plain string well
",
            pair = pair.display(),
        );
        let mut command = Command::new(program);
        command.arg("-db").arg("-f").arg(folder.write("haproxy.cfg", text));
        Some(Self::start(&mut command, address, Signal::SIGUSR1, folder))
    }

    fn start(command: &mut Command, address: SocketAddr, stop: Signal, folder: Folder) -> Self {
        let mut process = Process::start(command);
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert!(process.is_running() && Instant::now() < deadline, "it does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Self { process, address, stop, _folder: folder }
    }

    /// Loads it for a second.
    fn load(&self, path: &str, arguments: &[&str]) -> Finished {
        let url = format!("https://localhost:{}{path}", self.address.port());
        let model: &[&str] = &["--rate", "40", "--duration", "1s", "--quiet"];
        finished(&[&["load", &url], model, &AT_ONCE, arguments].concat())
    }

    /// As [`Self::load`]; every request has to succeed.
    fn judge(&self, path: &str, arguments: &[&str]) -> Judged {
        let judged = Judged::of(&self.load(path, arguments));
        let (attempted, succeeded) =
            (judged.total("/requests/attempted"), judged.total("/requests/succeeded"));
        assert!(attempted > 0 && attempted == succeeded, "{arguments:?}: {:#}", judged.run());
        judged
    }

    /// Lets it end what it has begun. The requests of this version and their number; no other may be logged.
    fn logged(self, version: &str) -> u64 {
        self.process.signal(self.stop);
        let printed = self.process.finish().stdout;
        let requests: Vec<_> = printed.lines().filter(|line| line.starts_with("request ")).collect();
        // HAProxy logs a connection without a request, too: the test's own, that saw it listen.
        let requests =
            requests.into_iter().filter(|line| !line.contains("<BADREQ>") && !line.ends_with(" 0"));
        let requests: Vec<_> = requests.collect();
        let wanted = format!("request {version} 200");
        assert!(requests.iter().all(|line| line.starts_with(&wanted)), "{printed}");
        requests.len() as u64
    }
}

/// Sequential requests on connections that return with their sessions.
fn is_logged(server: Option<Server>, engine: &str, tls: &str) {
    let Some(server) = server else { return };
    let arguments = ["--alpn", "h2,http/1.1", "--requests", "3", "--reuse", "2", "--engine", engine];
    let judged = server.judge("/", &[&arguments[..], &["--tls", tls, "--expect-length", "4"]].concat());
    // Those that are under way when time is up end with fewer requests.
    assert!(judged.total("/requests/succeeded") > judged.total("/connections/succeeded"));
    assert_eq!(judged.run()["totals"]["alpn"]["h2"], judged.handshakes(|_| true));
    assert!(judged.handshakes(|row| row["handshake"] != "full") > 0, "{:#}", judged.run());
    assert_eq!(server.logged("HTTP/2.0"), requests(&judged) + PROBE, "{engine} {tls}");
}

/// Requests that succeeded, in whichever second.
fn requests(judged: &Judged) -> u64 {
    let seconds = judged.run()["seconds"].as_array().unwrap();
    seconds.iter().map(|second| second["requests"].as_u64().unwrap()).sum()
}

#[test]
fn nginx_logs_as_many_http_2_requests_as_are_counted() {
    for (engine, tls) in [("lean", "1.3"), ("lean", "1.2"), ("real", "1.3")] {
        is_logged(Server::nginx("ssl http2", ""), engine, tls);
    }
    #[cfg(feature = "openssl")]
    is_logged(Server::nginx("ssl http2", ""), "openssl", "1.3");
}

#[test]
fn haproxy_logs_as_many_http_2_requests_as_are_counted() {
    for (engine, tls) in [("lean", "1.3"), ("real", "1.2")] {
        is_logged(Server::haproxy(), engine, tls);
    }
}

#[test]
fn authority_and_fields_arrive() {
    let Some(server) = Server::nginx("ssl http2", "") else { return };
    server.judge("/", &["--alpn", "h2", "--header", "X-Name: a b"]);
    server.process.wait_stdout("name and field", |lines| {
        lines.iter().any(|line| line == "request HTTP/2.0 200 localhost a b").then_some(())
    });
}

/// Both ways, and every byte is checked one way.
#[test]
fn bodies_larger_than_a_window_pass() {
    let Some(server) = Server::nginx("ssl http2", "") else { return };
    let length = OBJECT.to_string();
    let taken = ["--alpn", "h2", "--expect-length", &length, "--expect-sha256", "first", "--requests", "2"];
    server.judge("/object", &taken);
    server.judge("/", &["--alpn", "h2", "--post", &length]);
}

/// nginx ends a connection after so many requests with GOAWAY, and has answered them.
#[test]
fn goaway_after_the_last_answer_is_no_failure() {
    let Some(server) = Server::nginx("ssl http2", "keepalive_requests 2;") else { return };
    let judged = server.judge("/", &["--alpn", "h2", "--keepalive"]);
    let connections = judged.total("/connections/succeeded");
    // The run may be over after the first one, and before the connection has ended.
    let (requests, attempted) = (judged.total("/requests/succeeded"), judged.total("/connections/attempted"));
    assert!(connections < requests && requests <= 2 * attempted, "{:#}", judged.run());
}

#[test]
fn a_wrong_status_or_length_is_a_wrong_answer() {
    let Some(server) = Server::nginx("ssl http2", "") else { return };
    for (path, expected) in [("/broken", "4"), ("/", "5")] {
        let judged = Judged::of(&server.load(path, &["--alpn", "h2", "--expect-length", expected]));
        assert_eq!(judged.classes(), ["wrong-answer"], "{path}: {:#}", judged.run());
        assert!(judged.is_inconclusive(), "{path}: no success, and a verdict");
    }
}

/// HTTP/2 alone has to be agreed on; beside HTTP/1.1 it need not.
#[test]
fn a_server_without_http_2_is_asked_in_http_1_or_refused() {
    let Some(server) = Server::nginx("ssl", "") else { return };
    for verb in ["load", "handshake"] {
        let url = format!("https://{}/", server.address);
        let run = finished(&[&[verb, &url, "--rate", "20", "--alpn", "h2"], &AT_ONCE[..]].concat());
        assert_eq!((run.status.code(), run.stdout.as_str()), (Some(5), ""), "{run:?}");
        // nginx refuses by an alert what it has nothing in common with (RFC 7301, section 3.2).
        assert!(run.stderr.contains("alert") && run.stderr.contains("NoApplicationProtocol"), "{run:?}");
    }
    let judged = server.judge("/", &["--alpn", "h2,http/1.1", "--requests", "2"]);
    assert_eq!(server.logged("HTTP/1.1"), requests(&judged) + PROBE);
}

#[test]
fn a_server_that_ignores_alpn_has_not_agreed() {
    let server = FaultyServer::start(Fault::None);
    for verb in ["load", "handshake"] {
        let run = finished(
            &[&[verb, &url(server.address()), "--rate", "20", "--alpn", "h2"], &AT_ONCE[..]].concat(),
        );
        assert_eq!((run.status.code(), run.stdout.as_str()), (Some(5), ""), "{run:?}");
        assert!(run.stderr.contains("has not chosen HTTP/2"), "{run:?}");
    }
}

#[test]
fn what_breaks_http_2_is_named() {
    let faults = [
        (Fault::Http2AsHttp1, "not-http2", "speaks HTTP/1"),
        (Fault::GoAway, "goaway-no-error", "GOAWAY: NO_ERROR"),
        (Fault::RstStream, "rst-stream-refused-stream", "RST_STREAM: REFUSED_STREAM"),
    ];
    for (fault, class, words) in faults {
        let server = FaultyServer::start(fault);
        let judged = judge("load", &server, &["--rate", "20", "--alpn", "h2,http/1.1"]);
        assert_eq!(judged.classes(), [class], "{fault:?}: {:#}", judged.run());
        assert_eq!(judged.failed_as(class), judged.total("/requests/attempted"), "{fault:?}");
        let samples = judged.run()["totals"]["failure_samples"].to_string();
        assert!(samples.contains(words), "{fault:?}: {samples}");
        assert!(judged.is_inconclusive(), "{fault:?}: no success, and a verdict");
        let handshakes = judge("handshake", &server, &["--rate", "20", "--alpn", "h2"]);
        assert_eq!(handshakes.run()["totals"]["alpn"]["h2"], handshakes.total("/connections/succeeded"));
    }
}

#[test]
fn early_data_and_http_2_exclude_each_other() {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let run = finished(&["load", &url(address), "--rate", "20", "--early-data", "--alpn", "h2"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("early data is sent as HTTP/1.1"), "{run:?}");
}

/// `openssl s_server` prints what it is sent: SETTINGS and an answer (`:status` 200, RFC 7541, appendix A) are its input.
#[test]
fn the_client_ends_with_goaway() {
    let (Some(program), folder) = (require("openssl"), Folder::new()) else { return };
    let pair = TestCa::new().localhost(KeyType::EcdsaP256, &folder, "site").display().to_string();
    let mut command = Command::new(program);
    command.args(["s_server", "-accept", "127.0.0.1:0", "-cert", &pair, "-alpn", "h2", "-naccept", "1"]);
    let (server, mut input) = Process::start_with_stdin(&mut command);
    let address: SocketAddr = server.wait_stdout("ACCEPT and its port", |lines| {
        lines.iter().find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok())
    });
    input.write_all(b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x05\0\0\0\x01\x88").unwrap();
    // It is the probe that is answered; the load finds nobody.
    let loaded = finished(&[&["load", &url(address), "--rate", "20", "--alpn", "h2"], &AT_ONCE[..]].concat());
    const GOAWAY: &str = "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
    server.wait_stdout("PRI and GOAWAY", |lines| {
        let printed = lines.join("\n");
        let ended = printed.split_once("PRI * HTTP/2.0").is_some_and(|(_, then)| then.contains(GOAWAY));
        ended.then_some(()).or_else(|| {
            assert!(!printed.contains("ERROR"), "{printed} {loaded:?}");
            None
        })
    });
}
