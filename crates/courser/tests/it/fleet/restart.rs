//! Sessions over a restart: tickets by the key, session IDs by the file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::Signal;

use super::keygen;
use crate::resumption::visitor::Visitor;
use crate::support::{SESSION_ID, Site, WAYS, line};

#[test]
fn every_kind_of_session_outlives_a_restart() {
    for way in WAYS {
        let site = Site::new();
        let (key, file) = (keygen(site.folder.path(), "fleet.key"), site.folder.join("sessions"));
        let host = || site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key).arg("--session-file").arg(&file);
        let before = host().start();
        let visitor = Visitor::new(&site, way);
        if visitor.come(&before, "").is_none() {
            return;
        }
        before.signal(Signal::SIGTERM);
        let ended = before.wait_stderr("the end", |lines| {
            lines.iter().find(|line| line.contains("sessions saved in")).cloned()
        });
        assert!(
            ended.contains(if way.session == "session_id" { " 1 sessions" } else { " 0 sessions" }),
            "{ended}"
        );
        drop(before);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let after = host().start();
        visitor.is_resumed(&after, "");
        assert!(!file.exists(), "a second start would resume what was deleted since");
    }
}

#[test]
fn a_file_of_another_fleet_or_of_garbage_is_told_and_costs_full_handshakes_only() {
    let site = Site::new();
    let file = site.folder.join("sessions");
    let host = |key| site.serve(&[EcdsaP256]).arg("--fleet-key").arg(key).arg("--session-file").arg(&file);
    let [one, other] = ["one.key", "other.key"].map(|name| keygen(site.folder.path(), name));
    let before = host(&one).start();
    let visitor = Visitor::new(&site, SESSION_ID);
    if visitor.come(&before, "").is_none() {
        return;
    }
    before.signal(Signal::SIGTERM);
    before.wait_stderr_line("1 sessions saved in");
    drop(before);
    let stranger = host(&other).start();
    stranger.wait_stderr_line("0 restored, 1 expired or of other keys");
    visitor.is_not_resumed(&stranger, "");
    assert_eq!(line(&stranger, 1)["not_resumed"], "not_found");
    drop(stranger);
    fs::write(&file, "courser sessions 1\nand then garbage").unwrap();
    let garbage = host(&one).start();
    garbage.wait_stderr_line("1 damaged");
    visitor.is_not_resumed(&garbage, "");
}

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_is() {
    let site = Site::new();
    let key = keygen(site.folder.path(), "fleet.key");
    let before = fs::read(&key).unwrap();
    let wrong = [("--session-file", "it has other content"), ("--control", "not a socket")];
    for (flag, why) in wrong {
        let setup = site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key).arg(flag).arg(&key);
        let ended = setup.launch().finish();
        assert!(ended.status.code() == Some(2) && ended.stderr.contains(why), "{flag}: {ended:?}");
        assert_eq!(fs::read(&key).unwrap(), before, "{flag}");
    }
}
