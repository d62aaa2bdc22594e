//! Logs in files: rotated by other programs, on a full disk, of another user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use courser_testkit::client::Version;
use courser_testkit::courser::Setup;
use courser_testkit::{Courser, OriginServer, Signal, require, skip};
use nix::unistd::{geteuid, mkfifo};
use serde_json::Value;

use crate::stage::{Stage, content, eventually, run, run_courser};
use crate::support::text;

struct Logged {
    stage: Stage,
    origin: OriginServer,
    connections: PathBuf,
    events: PathBuf,
}

impl Logged {
    fn new() -> Self {
        let stage = Stage::new();
        let [connections, events] = ["connections.log", "events.log"].map(|name| stage.folder.join(name));
        Self { stage, origin: OriginServer::http(), connections, events }
    }

    /// Both logs in files; the events of the start say where it listens.
    fn setup(&self) -> Setup {
        self.with_connections().arg("--events-file").arg(&self.events)
    }

    fn with_connections(&self) -> Setup {
        let setup = self.stage.courser().backend(self.origin.backend());
        let setup = setup.arg("--control").arg(self.stage.folder.join("control.sock"));
        setup.arg("--log-file").arg(&self.connections)
    }

    fn visit(&self, courser: &Courser) {
        self.stage.client(courser, Version::Tls13).connect().unwrap().get(10, true).unwrap();
    }

    fn ask(&self, verb: &str) -> String {
        let control = self.stage.folder.join("control.sock");
        content(run_courser(&[verb, "--json", "--control", text(&control)]))
    }
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |log| log.lines().filter(|line| line.contains("close_reason")).count())
}

#[test]
fn a_renamed_file_is_made_anew_on_sigusr1_and_on_a_reload() {
    let logged = Logged::new();
    let courser = logged.with_connections().start();
    let (file, old) = (&logged.connections, logged.stage.folder.join("connections.log.1"));
    let ways: [(&str, &dyn Fn()); 2] =
        [("SIGUSR1", &|| courser.signal(Signal::SIGUSR1)), ("reload", &|| drop(logged.ask("reload")))];
    for (way, reopen) in ways {
        logged.visit(&courser);
        eventually("the first line", || lines(file) == 1);
        fs::rename(file, &old).unwrap();
        logged.visit(&courser);
        eventually("a line in the renamed file", || lines(&old) == 2);
        reopen();
        eventually("the file is there without a line", || file.exists());
        logged.visit(&courser);
        eventually("the next line", || lines(file) == 1);
        assert_eq!(lines(&old), 2, "{way}");
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
        fs::remove_file(file).unwrap();
        reopen();
        eventually("the file is there again", || file.exists());
    }
    assert!(courser.stdout().is_empty(), "{:?}", courser.stdout());
}

#[test]
fn events_have_a_file_too() {
    let logged = Logged::new();
    let mut process = logged.setup().launch();
    let said = || fs::read_to_string(&logged.events).unwrap_or_default();
    eventually("it listens", || said().contains("listening on"));
    fs::rename(&logged.events, logged.stage.folder.join("events.log.1")).unwrap();
    process.signal(Signal::SIGUSR1);
    eventually("the file is there", || logged.events.exists());
    assert!(process.stop().success());
    assert!(said().contains("draining"), "{}", said());
    assert!(!process.stderr().iter().any(|line| line.contains("listening on")), "{:?}", process.stderr());
}

#[test]
fn the_packages_rotation_loses_no_line() {
    let Some(logrotate) = require("logrotate") else { return };
    let logged = Logged::new();
    let courser = logged.with_connections().start();
    logged.visit(&courser);
    eventually("the first line", || lines(&logged.connections) == 1);
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/debian/courser.logrotate");
    let rules = fs::read_to_string(rules).unwrap();
    let asks = "systemctl kill --signal=SIGUSR1 --kill-who=main courser.service";
    assert!(rules.contains("/var/log/courser/*.log") && rules.contains(asks), "{rules}");
    // Without systemd, and as who runs the tests.
    let rules = rules.replace("/var/log/courser", text(logged.stage.folder.path()));
    let rules = rules.replace(asks, &format!("kill -USR1 {}", courser.pid()));
    let rules = rules.lines().filter(|line| !line.trim().starts_with("su ")).collect::<Vec<_>>().join("\n");
    let (rules, state) = (logged.stage.folder.write("rules", rules), logged.stage.folder.join("state"));
    let rotate =
        || content(run(Command::new(&logrotate).arg("--force").arg("--state").arg(&state).arg(&rules)));
    rotate();
    eventually("the file is there", || logged.connections.exists());
    logged.visit(&courser);
    eventually("the next line", || lines(&logged.connections) == 1);
    assert_eq!(lines(&logged.stage.folder.join("connections.log.1")), 1);
    rotate();
    eventually("the file is there", || logged.connections.exists());
    assert!(logged.stage.folder.join("connections.log.2.gz").exists());
}

#[test]
fn a_full_disk_costs_lines_and_they_go_on_whole_when_there_is_room() {
    let Some(unshare) = require("unshare") else { return };
    if !geteuid().is_root() {
        return skip("a disk of its own needs root");
    }
    let logged = Logged::new();
    let disk = logged.stage.folder.join("disk");
    fs::create_dir(&disk).unwrap();
    let filled = "mount -t tmpfs -o size=8k,mode=0700 tmpfs \"$DISK\"; \
                  head -c 1M /dev/zero >\"$DISK/filling\" 2>/dev/null; exec \"$@\"";
    let setup = logged.stage.courser().backend(logged.origin.backend());
    let setup = setup.arg("--control").arg(logged.stage.folder.join("control.sock"));
    let setup = setup.arg("--log-file").arg(disk.join("connections.log")).env("DISK", text(&disk));
    let courser = setup.under(&[text(&unshare), "--mount", "sh", "-c", filled, "sh"]).start();
    logged.visit(&courser);
    let lost = || {
        let status: Value = serde_json::from_str(&logged.ask("status")).unwrap();
        status["log_lines_lost"].as_u64().unwrap()
    };
    eventually("the line is lost", || lost() == 1);
    courser.wait_stderr_line("No space left on device");
    let seen = PathBuf::from(format!("/proc/{}/root{}", courser.pid(), disk.display()));
    fs::remove_file(seen.join("filling")).unwrap();
    logged.visit(&courser);
    eventually("the next line", || lines(&seen.join("connections.log")) == 1);
    assert_eq!(lost(), 1);
    let log = fs::read_to_string(seen.join("connections.log")).unwrap();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
}

#[test]
fn the_files_belong_to_the_new_user() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let logged = Logged::new();
    fs::set_permissions(logged.stage.folder.path(), Permissions::from_mode(0o755)).unwrap();
    chown(&logged.stage.certificate, Some(0), Some(23_457)).unwrap();
    fs::set_permissions(&logged.stage.certificate, Permissions::from_mode(0o640)).unwrap();
    let folder = logged.stage.folder.join("logs");
    fs::create_dir(&folder).unwrap();
    let setup = || {
        let setup = logged.stage.courser().backend(logged.origin.backend());
        let setup = setup.args(["--user", "23456", "--group", "23457"]);
        setup.arg("--log-file").arg(folder.join("connections.log"))
    };
    let refused = setup().launch().finish();
    assert!(refused.stderr.contains("user 23456 cannot write to"), "{}", refused.stderr);
    chown(&folder, Some(23_456), Some(23_457)).unwrap();
    let courser = setup().start();
    let file = folder.join("connections.log");
    for _ in 0..2 {
        logged.visit(&courser);
        eventually("the line", || lines(&file) == 1);
        assert_eq!(fs::metadata(&file).unwrap().uid(), 23_456);
        fs::remove_file(&file).unwrap();
        courser.signal(Signal::SIGUSR1);
        eventually("the file is there", || file.exists());
    }
}

#[test]
fn what_cannot_be_a_log_is_refused() {
    let logged = Logged::new();
    let fifo = logged.stage.folder.join("fifo");
    mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let missing = logged.stage.folder.join("missing/connections.log");
    for (path, why) in [
        (fifo.as_path(), "cannot write the log"),
        (Path::new("/dev/null"), "it is not a regular file"),
        (missing.as_path(), "install -d -m 700"),
        (logged.stage.folder.path(), "Is a directory"),
    ] {
        let setup = logged.stage.courser().backend("127.0.0.1:9").arg("--log-file").arg(path);
        let refused = setup.launch().finish();
        assert!(refused.status.code() == Some(2) && refused.stderr.contains(why), "{}", refused.stderr);
    }
}
