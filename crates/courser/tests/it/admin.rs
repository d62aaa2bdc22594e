//! What operators and monitoring see over HTTP, with curl.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use courser_testkit::client::Version;
use courser_testkit::process::{Finished, Signal};
use courser_testkit::{Courser, OriginServer, require};
use serde_json::Value;

use crate::stage::{Stage, courser, eventually, run};

/// What precedes an address in the line that tells it.
const TOLD: &str = "for operators and monitoring: ";

/// Where the program is seen.
pub(crate) fn url(courser: &Courser) -> String {
    let line = courser.wait_stderr_line(TOLD);
    line.split_once(TOLD).unwrap().1.to_owned()
}

/// The status and the body of an answer.
struct Seen {
    status: String,
    body: String,
}

/// Runs curl; `None`, after saying so, where it is not installed.
fn curl(arguments: &[&str]) -> Option<Seen> {
    let mut command = Command::new(require("curl")?);
    command.args(["--silent", "--show-error", "--max-time", "30", "--write-out", "\n%{http_code}"]);
    let Finished { stdout, stderr, .. } = run(command.args(arguments));
    let (body, status) = stdout.rsplit_once('\n').unwrap_or_else(|| panic!("{stdout}{stderr}"));
    Some(Seen { status: status.to_owned(), body: body.to_owned() })
}

#[test]
fn what_is_there_is_answered_and_nothing_is_changed() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage.courser().backend(origin.backend()).args(["--admin", "127.0.0.1:0"]).start();
    let url = url(&courser);
    let at = |path: &str| format!("{url}{path}");
    let Some(health) = curl(&[&at("/healthz")]) else { return };
    assert_eq!((health.status.as_str(), health.body.as_str()), ("200", "ok\n"));
    eventually("it is ready", || curl(&[&at("/readyz")]).unwrap().status == "200");
    let status = curl(&[&at("/status.json")]).unwrap();
    let status: Value = serde_json::from_str(&status.body).unwrap();
    assert_eq!(status["schema"], 1, "{status}");
    assert_eq!(status["generation"]["number"], 1, "{status}");
    let head = curl(&["--head", &at("/healthz")]).unwrap();
    assert!(head.status == "200" && head.body.contains("content-length: 3"), "{}", head.body);
    assert_eq!(curl(&[&at("/nothing")]).unwrap().status, "404");
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let refused = curl(&["--request", method, "--include", &at("/status.json")]).unwrap();
        assert!(refused.status == "405" && refused.body.contains("allow: GET, HEAD"), "{}", refused.body);
    }
}

#[test]
fn a_page_of_another_site_reads_nothing() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage
        .courser()
        .backend(origin.backend())
        .args(["--admin", "127.0.0.1:0", "--admin-server-name", "edge-1.internal"])
        .start();
    let url = format!("{}/status.json", url(&courser));
    for (host, status) in
        [("evil.example", "421"), ("", "421"), ("localhost", "200"), ("Edge-1.internal:9440", "200")]
    {
        let Some(seen) = curl(&["--header", &format!("Host: {host}"), &url]) else { return };
        assert_eq!(seen.status, status, "{host}: {}", seen.body);
    }
}

#[test]
fn a_unix_socket_is_for_the_user_and_the_group_and_goes_with_the_program() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let path = stage.folder.join("admin.sock");
    let admin = format!("unix:{}", path.display());
    let mut courser = stage.courser().backend(origin.backend()).args(["--admin", &admin]).start();
    let Some(seen) = curl(&["--unix-socket", path.to_str().unwrap(), "http://any/healthz"]) else { return };
    assert_eq!(seen.status, "200");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    assert!(courser.stop().success());
    assert!(!path.exists());
}

#[test]
fn while_it_drains_it_lives_and_is_not_ready() {
    let (stage, origin) = (Stage::new(), OriginServer::echo());
    let courser = stage.courser().backend(origin.backend()).args(["--admin", "127.0.0.1:0"]).start();
    let url = url(&courser);
    let connection = stage.client(&courser, Version::Tls13).connect().unwrap();
    eventually("its backend has it", || origin.accepted() == 1);
    let Some(_) = curl(&[&url]) else { return };
    courser.signal(Signal::SIGTERM);
    eventually("it says that it drains", || {
        let ready = curl(&[&format!("{url}/readyz")]).unwrap();
        ready.status == "503" && ready.body == "draining\n"
    });
    assert_eq!(curl(&[&format!("{url}/healthz")]).unwrap().status, "200");
    drop(connection);
}

#[test]
fn with_a_token_only_probes_go_without() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let token = stage.folder.write("admin.token", "a-token-of-some-length\n");
    fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let setup = || {
        let setup =
            stage.courser().backend(origin.backend()).args(["--admin", "127.0.0.1:0", "--admin-token"]);
        setup.arg(&token)
    };
    let refused = setup().launch().finish();
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--admin-token"), "{}", refused.stderr);
    fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let courser = setup().start();
    let url = url(&courser);
    let with = |header: &str, path: &str| {
        Some(curl(&["--header", &format!("Authorization: {header}"), &format!("{url}{path}")])?.status)
    };
    let Some(status) = with("Bearer a-token-of-some-length", "/status.json") else { return };
    assert_eq!(status, "200");
    assert_eq!(with("Bearer a-token-of-some-lengtx", "/status.json").unwrap(), "401");
    assert_eq!(with("", "/status.json").unwrap(), "401");
    assert_eq!(with("", "/readyz").unwrap(), "200");
}

#[test]
fn other_machines_are_let_in_by_name_alone() {
    let refused = courser().backend("127.0.0.1:1").args(["--admin", "0.0.0.0:0"]).launch().finish();
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("other machines can reach"), "{}", refused.stderr);
}

/// Silent clients take every place; who is served over TLS does not notice, and places come back.
#[test]
fn clients_that_say_nothing_are_in_nobodys_way() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = stage.courser().backend(origin.backend()).args(["--admin", "127.0.0.1:0"]).start();
    let url = url(&courser);
    let address = url.strip_prefix("http://").unwrap();
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut connection = stage.client(&courser, Version::Tls13).connect().unwrap();
    connection.get(1000, true).unwrap();
    drop(silent);
    let Some(seen) = curl(&[&format!("{url}/healthz")]) else { return };
    assert_eq!(seen.status, "200");
}
