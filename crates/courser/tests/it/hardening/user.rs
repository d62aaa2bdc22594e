//! `user` and `group`: what is left of root, and what the new user has to be able to reach.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use courser_testkit::courser::Setup;
use courser_testkit::{Courser, KeyType, OriginServer, Process, skip};
use nix::unistd::geteuid;

use crate::fleet::keygen;
use crate::stage::{Stage, courser, run_courser};
use crate::support::text;

/// Numbers that no account of this machine has.
const USER: u32 = 23_456;
const GROUP: u32 = 23_457;

fn as_root() -> bool {
    if !geteuid().is_root() {
        skip("only root can become another user");
    }
    geteuid().is_root()
}

/// A stage whose folder every user may enter, and whose key root has lent to the group.
fn stage() -> Stage {
    let stage = Stage::new();
    fs::set_permissions(stage.folder.path(), Permissions::from_mode(0o755)).unwrap();
    lend(&stage.certificate);
    stage
}

fn lend(file: &Path) {
    chown(file, Some(0), Some(GROUP)).unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o640)).unwrap();
}

/// A folder that belongs to the new user.
fn folder(stage: &Stage, name: &str) -> std::path::PathBuf {
    let folder = stage.folder.join(name);
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(USER), Some(GROUP)).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    folder
}

fn with_user(setup: Setup) -> Setup {
    setup.args(["--user", &USER.to_string(), "--group", &GROUP.to_string()])
}

/// Lines of `/proc/PID/task/TID/status` of every thread.
fn of_every_thread(courser: &Courser, field: &str) -> Vec<Vec<String>> {
    let tasks = fs::read_dir(format!("/proc/{}/task", courser.pid())).unwrap();
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    let words = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap().to_owned();
        line.split_whitespace().map(str::to_owned).collect()
    };
    statuses.map(words).collect()
}

#[test]
fn every_thread_becomes_the_user_with_no_right_of_root_left_and_serves() {
    if !as_root() {
        return;
    }
    let stage = stage();
    let origin = OriginServer::http();
    let run = folder(&stage, "run");
    let control = run.join("control.sock");
    // Threads of many kinds: control, look-ups, workers.
    let backend = format!("localhost:{}", origin.backend().rsplit(':').next().unwrap());
    let setup = stage.courser_of(2).backend(backend).arg("--control").arg(&control);
    let mut courser = with_user(setup).start();
    courser.wait_stderr_line("running as user 23456, group 23457");
    let page = Process::start(&mut stage.curl(&courser, "/10")).finish();
    assert!(page.status.success(), "{}", page.stderr);
    assert!(of_every_thread(&courser, "Uid:").iter().all(|ids| ids.iter().all(|id| id == "23456")));
    assert!(of_every_thread(&courser, "Gid:").iter().all(|ids| ids.iter().all(|id| id == "23457")));
    assert!(of_every_thread(&courser, "Groups:").iter().all(Vec::is_empty));
    for set in ["CapEff:", "CapPrm:"] {
        let sets = of_every_thread(&courser, set);
        assert!(
            sets.len() > 3 && sets.iter().flatten().all(|set| set.chars().all(|bit| bit == '0')),
            "{sets:?}"
        );
    }
    assert_eq!(fs::metadata(&control).unwrap().uid(), USER);
    let told = run_courser(&["fleet", "status", "--json", "--control", text(&control)]);
    assert!(told.status.success(), "{told:?}");
    assert!(courser.stop().success());
    assert!(!control.exists());
}

#[test]
fn root_that_stays_is_warned_of_and_other_users_are_not() {
    if !as_root() {
        return;
    }
    let own = Stage::new();
    let warning = own.serve("127.0.0.1:9").wait_stderr_line("running as root");
    assert!(warning.contains("warning") && warning.contains("--user"), "{warning}");
    let stage = stage();
    let dropped = with_user(stage.courser()).backend("127.0.0.1:9").start();
    dropped.wait_stderr_line("running as user");
    assert!(!dropped.stderr().join("\n").contains("as root"));
}

#[test]
fn states_are_written_for_the_new_user_from_the_beginning() {
    if !as_root() {
        return;
    }
    let stage = stage();
    let key = keygen(stage.folder.path(), "fleet.key");
    lend(&key);
    let (state, sessions) = (folder(&stage, "state"), folder(&stage, "sessions").join("cache"));
    let start = || {
        let setup = stage.courser().backend("127.0.0.1:9").arg("--fleet-key").arg(&key);
        with_user(setup.arg("--fleet-state").arg(&state).arg("--session-file").arg(&sessions)).start()
    };
    // The second start finds what the first has left.
    for _ in 0..2 {
        let mut courser = start();
        courser.wait_stderr_line("running as user");
        assert!(courser.stop().success());
        let files = fs::read_dir(&state).unwrap().map(|file| file.unwrap().metadata().unwrap().uid());
        assert_eq!(files.collect::<Vec<_>>(), [USER]);
        assert_eq!(fs::metadata(&sessions).unwrap().uid(), USER);
    }
}

#[test]
fn everything_that_the_new_user_cannot_reach_is_told_in_one_run_with_what_to_type() {
    if !as_root() {
        return;
    }
    let stage = stage();
    let combined = |name: &str| {
        let file = stage.folder.join(name);
        fs::copy(&stage.certificate, &file).unwrap();
        chown(&file, Some(0), Some(0)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        file
    };
    let (of_root, hidden, foreign) =
        (combined("root.pem"), stage.folder.join("hidden"), combined("foreign.pem"));
    chown(&foreign, Some(12_345), None).unwrap();
    fs::create_dir(&hidden).unwrap();
    fs::set_permissions(&hidden, Permissions::from_mode(0o700)).unwrap();
    let inside = combined("hidden/site.pem");
    lend(&inside);
    let socket = hidden.join("control.sock");
    let mut arguments = vec!["--listen", "127.0.0.1:0", "--backend", "127.0.0.1:9"];
    arguments.extend(["--user", "23456", "--group", "23457", "--control", text(&socket)]);
    for cert in [&of_root, &inside, &foreign] {
        arguments.extend(["--cert", text(cert)]);
    }
    let [checked, served] = ["check", "serve"].map(|verb| run_courser(&[&[verb], &arguments[..]].concat()));
    assert_eq!((checked.status.code(), served.status.code()), (Some(2), Some(2)), "{}", served.stderr);
    assert_eq!(checked.stderr, served.stderr);
    let (of_root, hidden, inside) = (of_root.display(), hidden.display(), inside.display());
    for part in [
        format!("user 23456 cannot read {of_root}"),
        format!("chown root:23457 {of_root} && chmod 640 {of_root}"),
        format!("user 23456 cannot get to {inside}: it may not enter {hidden}"),
        format!("chmod o+x {hidden}"),
        format!("user 23456 cannot write to {hidden}"),
        format!("chown 23456 {hidden} && chmod 700 {hidden}"),
        format!("{}: it belongs to user 12345", foreign.display()),
    ] {
        assert!(checked.stderr.contains(&part), "no {part:?} in:\n{}", checked.stderr);
    }
}

#[test]
fn users_that_cannot_be_are_refused_each_with_its_reason() {
    let stage = Stage::new();
    let certificate = text(&stage.certificate);
    let refused = |flags: &[&str]| {
        let begin = ["check", "--backend", "127.0.0.1:9", "--cert", certificate];
        let checked = run_courser(&[&begin, flags].concat());
        assert_eq!(checked.status.code(), Some(2), "{flags:?}: {}", checked.stderr);
        checked.stderr
    };
    for (flags, said) in [
        (&["--user", "no-such-user"][..], "there is no user `no-such-user`"),
        (&["--user", "23456"], "user 23456 is unknown to the system and has no group"),
        (&["--user", "root", "--group", "no-such-group"], "there is no group `no-such-group`"),
        (&["--group", "root"], "a group without a user"),
    ] {
        let stderr = refused(flags);
        assert!(stderr.contains(said) && stderr.contains("help: "), "no {said:?} in:\n{stderr}");
    }
}

#[test]
fn who_is_not_root_becomes_nobody_else() {
    let Some(setpriv) = courser_testkit::require("setpriv").filter(|_| as_root()) else { return };
    let stage = Stage::new();
    let program = crate::stage::courser_for_all(&stage.folder);
    let start = |user: &str| {
        let setup =
            Courser::setup(&program).backend("127.0.0.1:9").args(["--user", user, "--group", "23457"]);
        setup.under(&[text(&setpriv), "--reuid=23456", "--regid=23457", "--clear-groups"])
    };
    let refused = start("23458").launch().finish();
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("user 23456 cannot become user 23458"), "{}", refused.stderr);
    // Itself it is already.
    let same = start("23456").start();
    assert!(!same.stderr().join("\n").contains("running as"));
}

/// A port that only root may open, which is why it is started as root.
#[test]
fn a_port_below_1024_is_open_before_the_step_and_served_after_it() {
    if !as_root() {
        return;
    }
    let stage = Stage::with(KeyType::Rsa2048);
    fs::set_permissions(stage.folder.path(), Permissions::from_mode(0o755)).unwrap();
    lend(&stage.certificate);
    let origin = OriginServer::http();
    // Loopback has many addresses; one that no other test listens on.
    let listen =
        format!("127.77.{}.{}:443", std::process::id() / 250 % 250 + 1, std::process::id() % 250 + 1);
    let setup = courser().cert(&stage.certificate).args(["--listen", &listen]).backend(origin.backend());
    let courser = with_user(setup).start();
    let page = Process::start(&mut stage.curl(&courser, "/10")).finish();
    assert!(page.status.success(), "{}", page.stderr);
}
