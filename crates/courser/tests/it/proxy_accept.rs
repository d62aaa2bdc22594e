//! PROXY headers of whoever stands in front: HAProxy, curl, another courser; and of those who only say so.

mod bounds;
mod chain;

use std::{
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
};

use courser_testkit::{Behaviour, Courser, OriginServer, Process, free_port, require};
use serde_json::Value;

use crate::proxy_header::parse;
use crate::stage::{Stage, content, courser, eventually, run};
use crate::support::line;

/// A terminator that accepts headers from these sources, with further settings.
fn serve(stage: &Stage, from: &str, more: &str) -> Courser {
    let toml = format!(
        "workers = 1\nlog = 'json'\n[[listener]]\nname = 'web'\nlisten = '127.0.0.1:0'\ncert = '{}'\nproxy_protocol = {{ from = {from} }}\n{more}\n",
        stage.certificate.display()
    );
    courser().config(&stage.folder.write("courser.toml", toml)).start()
}

/// HAProxy that passes TCP connections on with these settings of the server.
fn haproxy(stage: &Stage, server: &str) -> Option<(Process, SocketAddr)> {
    let program = require("haproxy")?;
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let configuration = format!(
        "global\n  stats socket {}/stats.sock\ndefaults\n  mode tcp\n  timeout client 30s\n  timeout server 30s\n  timeout connect 5s\n\
         listen front\n  bind {address}\n  server behind {server}\n",
        stage.folder.path().display()
    );
    let file = stage.folder.write("haproxy.cfg", configuration);
    let process = Process::start(Command::new(program).args(["-db", "-q", "-f"]).arg(file));
    let listens =
        || std::fs::exists(stage.folder.join("stats.sock")).unwrap() && TcpStream::connect(address).is_ok();
    eventually("HAProxy listens", listens);
    Some((process, address))
}

/// curl for `localhost` at an address; what it prints is its own address and port.
fn curl(root: &Path, address: SocketAddr, flags: &[&str]) -> String {
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--max-time", "30", "--output", "/dev/null", "--cacert"])
        .arg(root);
    command.args(["--write-out", "%{local_ip}:%{local_port}"]).args(flags);
    command.arg("--resolve").arg(format!("localhost:{}:{}", address.port(), address.ip()));
    content(run(command.arg(format!("https://localhost:{}/", address.port()))))
}

/// The first line of a connection that got its answer.
fn served(courser: &Courser) -> Value {
    let lines = courser.connections_json(1);
    let done = |lines: &[Value]| lines.iter().find(|line| line["close_reason"] == "done").cloned();
    let mut found = done(&lines);
    eventually("a connection is served", || {
        found = done(&courser.connections_json(1));
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn haproxy_names_the_client_in_both_versions() {
    for send in ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,authority,unique-id"] {
        let (stage, origin) = (Stage::new(), OriginServer::setup(Behaviour::Http).proxy().start());
        let courser =
            serve(&stage, "'127.0.0.1'", &format!("send_proxy = 'v1'\nbackend = '{}'", origin.backend()));
        let Some((_haproxy, front)) = haproxy(&stage, &format!("{} {send}", courser.address())) else {
            return;
        };
        let client = curl(&stage.root, front, &[]);
        let line = served(&courser);
        assert_eq!(line["client"], client, "{line}");
        assert!(
            line["via"].as_str().unwrap().starts_with("127.0.0.1:") && line["via"] != line["client"],
            "{line}"
        );
        let expected = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {}\r\n", &client[10..], front.port());
        assert_eq!(String::from_utf8_lossy(origin.headers().last().unwrap()), expected);
    }
}

#[test]
fn haproxys_check_is_no_client() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = serve(&stage, "'127.0.0.1'", &format!("backend = '{}'", origin.backend()));
    let server = format!("{} send-proxy-v2 check check-send-proxy inter 100ms", courser.address());
    let Some((_haproxy, _)) = haproxy(&stage, &server) else { return };
    let checks =
        || courser.connections_json(1).into_iter().filter(|line| line["via"].is_null()).collect::<Vec<_>>();
    eventually("it is checked three times", || checks().len() > 2);
    for line in checks() {
        assert!(line["client"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
        // HAProxy ends a check with a reset.
        assert!(["probe", "client_reset"].contains(&line["close_reason"].as_str().unwrap()), "{line}");
    }
    assert_eq!(origin.accepted(), 0);
}

#[test]
fn curl_sends_a_header_of_its_own() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser =
        serve(&stage, "['10.0.0.0/8', '127.0.0.0/8']", &format!("backend = '{}'", origin.backend()));
    if require("curl").is_none() {
        return;
    }
    let client = curl(&stage.root, courser.address(), &["--haproxy-protocol"]);
    let line = line(&courser, 1);
    assert_eq!((&line["client"], &line["via"]), (&Value::from(&*client), &Value::from(&*client)), "{line}");
}

#[test]
fn what_came_in_the_header_goes_on_behind_our_own() {
    let (stage, origin) = (Stage::new(), OriginServer::setup(Behaviour::Http).proxy().start());
    let more = format!("send_proxy = 'v2'\nbackend = '{}'", origin.backend());
    let courser = serve(&stage, "'127.0.0.1'", &more);
    // 203.0.113.9:5 and 198.51.100.1:443, a name and an identifier that are ours to say, and a cloud's own field.
    let fields = [&[2, 0, 5][..], b"other", &[5, 0, 2, 7, 7], &[0xea, 0, 3, 1, 2, 3], &[4, 0, 1, 0]].concat();
    let length = u16::try_from(12 + fields.len()).unwrap().to_be_bytes();
    let addresses = [203, 0, 113, 9, 198, 51, 100, 1, 0, 5, 1, 187];
    let header = [b"\r\n\r\n\0\r\nQUIT\n\x21\x11", &length[..], &addresses, &fields].concat();
    bounds::get(&stage, courser.address(), &header);
    let line = line(&courser, 1);
    assert_eq!(line["client"], "203.0.113.9:5");
    let Some(parsed) = parse(&stage.folder, origin.headers().last().unwrap()) else { return };
    assert_eq!((&parsed["source"], &parsed["destination"]), (&line["client"], &"198.51.100.1:443".into()));
    assert_eq!((&parsed["authority"], &parsed["unique_id"]), (&"localhost".into(), &line["id"]));
    assert_eq!(parsed["others"], serde_json::json!({ "234": "010203" }));
    assert_eq!(parsed["checksum"], true);
}
