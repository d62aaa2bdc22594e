//! Upgrades with many sockets, with sockets from systemd, on a full disk, and with a time of their own for what is left.

use std::fs;
use std::io::{Read, Write};
use std::process::Command;

use courser_testkit::client::{Resume, Version};
use courser_testkit::{OriginServer, Process, free_port, require, skip};
use nix::unistd::geteuid;
use serde_json::Value;

use super::{Service, is_gone, text};
use crate::stage::{Stage, content, courser, eventually, run, run_courser};

#[test]
fn what_is_open_is_cut_off_after_hard_stop_after_however_long_a_drain_may_take() {
    let origin = OriginServer::echo();
    let text = format!("hard_stop_after = '1s'\n{}", text(&origin).replace("'5s'", "'1h'"));
    let service = Service::start(&text);
    let mut open = service.client(Version::Tls13, Resume::Never).connect().unwrap();
    open.stream().write_all(b"?").unwrap();
    open.stream().read_exact(&mut [0]).unwrap();
    let old = service.pid();
    service.upgraded();
    eventually("the old process has ended", || is_gone(old));
    assert!(!matches!(open.stream().read(&mut [0]), Ok(1..)), "the connection is cut off");
}

#[test]
fn more_sockets_than_one_message_takes_go_over() {
    let origin = OriginServer::http();
    let more: Vec<_> = (1..=140).map(|number| format!("'127.0.1.{number}:0'")).collect();
    let text = text(&origin).replace("'127.0.0.1:0'", &format!("['127.0.0.1:0', {}]", more.join(", ")));
    let service = Service::start(&text);
    let done = service.upgrade(&["--json"]);
    let outcome: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr));
    // Two workers, a socket of each for every address.
    assert_eq!(outcome["done"]["sockets"], 282);
    service.serves();
    service.upgraded();
    service.serves();
}

#[test]
fn a_socket_from_systemd_goes_over_under_its_name() {
    let Some(activate) = require("systemd-socket-activate") else { return };
    let (stage, origin, port) = (Stage::new(), OriginServer::http(), free_port());
    let control = stage.folder.join("control.sock").display().to_string();
    let mut command = Command::new(activate);
    command.args(["-l", &format!("127.0.0.1:{port}"), "--fdname", "web"]).arg(env!("CARGO_BIN_EXE_courser"));
    command.args(["serve", "--listen", "systemd:web", "--workers", "2", "--backend", origin.backend()]);
    let _courser = Process::start(command.args(["--control", &control, "--cert"]).arg(&stage.certificate));
    let fetch = || {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "30", "--insecure"]);
        content(run(curl.arg(format!("https://127.0.0.1:{port}/?s=1000"))))
    };
    eventually("it is activated", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() && fs::metadata(&control).is_ok()
    });
    let first = fetch();
    for _ in 0..2 {
        let done = run_courser(&["upgrade", "--control", &control]);
        assert!(done.status.success(), "{}", done.stderr);
        assert_eq!(fetch(), first);
    }
}

#[test]
fn a_full_disk_holds_up_no_upgrade() {
    let Some(unshare) = require("unshare") else { return };
    if !geteuid().is_root() {
        return skip("a disk of its own needs root");
    }
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let control = stage.folder.join("control.sock").display().to_string();
    let state = stage.folder.join("state");
    fs::create_dir(&state).unwrap();
    let filled = "mount -t tmpfs -o size=16k,mode=0700 tmpfs \"$STATE\"; \
                  head -c 1M /dev/zero >\"$STATE/filling\" 2>/dev/null; exec \"$@\"";
    let setup =
        courser().cert(&stage.certificate).backend(origin.backend()).arg("--state-folder").arg(&state);
    let setup = setup.args(["--control", &control]).env("STATE", &state.display().to_string());
    let setup = setup.under(&[unshare.to_str().unwrap(), "--mount", "sh", "-c", filled, "sh"]);
    let courser = setup.start();
    courser.wait_stderr_line("the state of this host's ticket keys cannot be written");
    let client = stage.returning_client(&courser, Version::Tls13);
    client.connect().unwrap().get(1000, true).unwrap();
    for _ in 0..2 {
        let done = run_courser(&["upgrade", "--control", &control]);
        assert!(done.status.success(), "{}", done.stderr);
        let mut connection = client.connect().unwrap();
        connection.get(1000, true).unwrap();
        assert!(connection.is_resumed(), "the keys are handed over in memory");
    }
}
