//! Sessions of a host alone over a restart: by the keys and the cache in its state folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::courser::Setup;
use courser_testkit::process::Finished;
use courser_testkit::{require, skip};
use nix::unistd::geteuid;

use super::visitor::Visitor;
use crate::stage::eventually;
use crate::support::{PSK, SESSION_ID, Site, TICKET, WAYS, line, text};

/// A folder that is its owner's alone.
fn folder(site: &Site) -> PathBuf {
    let folder = site.folder.join("state");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    folder
}

fn host(site: &Site, folder: &Path) -> Setup {
    site.serve(&[EcdsaP256]).arg("--state-folder").arg(folder)
}

fn refused(setup: &Setup) -> Finished {
    setup.launch().finish()
}

#[test]
fn every_kind_of_session_outlives_a_restart() {
    for way in WAYS {
        let site = Site::new();
        let (folder, file) = (folder(&site), site.folder.join("sessions"));
        let host = || host(&site, &folder).arg("--session-file").arg(&file);
        let mut before = host().start();
        let visitor = Visitor::new(&site, way);
        if visitor.come(&before, "").is_none() {
            return;
        }
        assert!(before.stop().success());
        let kept = fs::metadata(folder.join("host.state")).unwrap();
        assert_eq!(kept.permissions().mode() & 0o777, 0o600);
        let after = host().start();
        visitor.is_resumed(&after, "");
        assert!(!after.stderr().iter().any(|line| line.contains("full handshake")), "{:?}", after.stderr());
    }
}

#[test]
fn keys_are_there_after_a_process_that_was_killed() {
    let site = Site::new();
    let folder = folder(&site);
    let mut before = host(&site, &folder).start();
    let visitor = Visitor::new(&site, PSK);
    if visitor.come(&before, "").is_none() {
        return;
    }
    before.signal(courser_testkit::Signal::SIGKILL);
    before.wait();
    visitor.is_resumed(&host(&site, &folder).start(), "");
}

#[test]
fn without_a_folder_it_says_at_the_start_what_a_restart_costs() {
    let site = Site::new();
    let before = site.serve(&[EcdsaP256]).start();
    before.wait_stderr_line("after a restart every client makes one full handshake");
    let visitor = Visitor::new(&site, TICKET);
    if visitor.come(&before, "").is_none() {
        return;
    }
    drop(before);
    let after = site.serve(&[EcdsaP256]).start();
    visitor.is_not_resumed(&after, "");
    assert_eq!(line(&after, 1)["not_resumed"], "unknown_key");
}

#[test]
fn a_broken_file_is_told_and_replaced_by_new_keys() {
    let site = Site::new();
    let folder = folder(&site);
    let visitor = Visitor::new(&site, TICKET);
    let mut before = host(&site, &folder).start();
    if visitor.come(&before, "").is_none() {
        return;
    }
    assert!(before.stop().success());
    let file = folder.join("host.state");
    let whole = fs::read_to_string(&file).unwrap();
    for broken in [&whole[..whole.len() / 2], "", "garbage\n"] {
        fs::write(&file, broken).unwrap();
        let mut after = host(&site, &folder).start();
        let told = after.wait_stderr_line("is not what courser writes");
        assert!(told.contains("warning"), "{told}");
        visitor.is_not_resumed(&after, "");
        assert!(after.stop().success());
        assert!(fs::read_to_string(&file).unwrap().starts_with("# The state of"));
    }
}

#[test]
fn what_others_can_read_is_refused() {
    let site = Site::new();
    let folder = folder(&site);
    drop(host(&site, &folder).start());
    let file = folder.join("host.state");
    for (path, mode, why, help) in [
        (&file, 0o604, "others can read it", "chmod 600"),
        (&file, 0o660, "can change it", "chmod 600"),
        (&folder, 0o755, "others than its owner may enter it (mode 0755)", "chmod 700"),
    ] {
        let good = fs::metadata(path).unwrap().permissions();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let said = refused(&host(&site, &folder));
        assert!(said.status.code() == Some(2) && said.stderr.contains(why), "{mode:o}: {said:?}");
        assert!(said.stderr.contains(help), "{}", said.stderr);
        fs::set_permissions(path, good).unwrap();
    }
    let said = refused(&host(&site, &site.folder.join("missing")));
    assert!(said.status.code() == Some(2) && said.stderr.contains("install -d -m 700"), "{said:?}");
    let said = refused(&site.serve(&[EcdsaP256]).arg("--session-file").arg(site.folder.join("cache")));
    assert!(said.status.code() == Some(2) && said.stderr.contains("no key to seal"), "{said:?}");
}

#[test]
fn a_full_disk_is_told_and_written_to_once_there_is_room() {
    let Some(unshare) = require("unshare") else { return };
    if !geteuid().is_root() {
        return skip("a disk of its own needs root");
    }
    let site = Site::new();
    let folder = folder(&site);
    let filled = "mount -t tmpfs -o size=16k,mode=0700 tmpfs \"$STATE\"; \
                  head -c 1M /dev/zero >\"$STATE/filling\" 2>/dev/null; exec \"$@\"";
    let setup = host(&site, &folder).env("STATE", text(&folder));
    let courser = setup.under(&[text(&unshare), "--mount", "sh", "-c", filled, "sh"]).start();
    let told = courser.wait_stderr_line("the state of this host's ticket keys cannot be written");
    assert!(told.contains("No space left"), "{told}");
    courser.wait_stderr_line("after a restart every client makes one full handshake");
    let visitor = Visitor::new(&site, SESSION_ID);
    visitor.come(&courser, "");
    // As the process sees its disk.
    let seen = PathBuf::from(format!("/proc/{}/root{}", courser.pid(), folder.display()));
    fs::remove_file(seen.join("filling")).unwrap();
    courser.wait_stderr_line("the state of ticket keys is written again");
    eventually("the file is there", || seen.join("host.state").exists());
}
