//! Tickets that every host with the same key opens, and keys that cannot be used.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::free_port;
use serde_json::Value;

use super::{courser, keygen};
use crate::resumption::visitor::Visitor;
use crate::stage::eventually;
use crate::support::{PSK, SESSION_ID, Site, TICKET, line, text};

#[test]
fn a_ticket_of_one_host_is_resumed_by_another_with_the_same_key() {
    for way in [TICKET, PSK] {
        let site = Site::new();
        let key = keygen(site.folder.path(), "fleet.key");
        let host = || site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key).start();
        let (one, other) = (host(), host());
        let visitor = Visitor::new(&site, way);
        if visitor.come(&one, "").is_none() {
            return;
        }
        visitor.is_resumed(&other, "");
        assert_eq!(line(&other, 1)["session"], way.session);
    }
}

#[test]
fn a_ticket_of_another_fleet_is_a_full_handshake_with_its_reason() {
    let site = Site::new();
    let host =
        |name| site.serve(&[EcdsaP256]).arg("--fleet-key").arg(keygen(site.folder.path(), name)).start();
    let (one, other) = (host("one.key"), host("other.key"));
    let visitor = Visitor::new(&site, TICKET);
    if visitor.come(&one, "").is_some() {
        visitor.is_not_resumed(&other, "");
        assert_eq!(line(&other, 1)["not_resumed"], "unknown_key");
    }
}

#[test]
fn a_fleet_is_given_a_new_key_host_by_host_without_losing_a_session() {
    let site = Site::new();
    let [old, new] = ["old.key", "new.key"].map(|name| keygen(site.folder.path(), name));
    let host = |keys: &[&PathBuf]| {
        keys.iter().fold(site.serve(&[EcdsaP256]), |setup, key| setup.arg("--fleet-key").arg(key)).start()
    };
    let steps = [vec![&old], vec![&old, &new], vec![&new, &old], vec![&new]];
    let visitor = Visitor::new(&site, TICKET);
    for pair in steps.windows(2) {
        let (behind, ahead) = (host(&pair[0]), host(&pair[1]));
        for (made, resumed) in [(&behind, &ahead), (&ahead, &behind)] {
            if visitor.come(made, "").is_none() {
                return;
            }
            visitor.is_resumed(resumed, "");
        }
    }
}

#[test]
fn a_key_that_was_taken_out_is_not_trusted_again_by_its_state() {
    let site = Site::new();
    let folder = site.folder.join("state");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    let host = |keys: &[&PathBuf]| {
        let setup = site.serve(&[EcdsaP256]).arg("--fleet-state").arg(&folder);
        keys.iter().fold(setup, |setup, key| setup.arg("--fleet-key").arg(key)).start()
    };
    let visitor = Visitor::new(&site, TICKET);
    let keys = ["a.key", "b.key", "c.key"].map(|name| keygen(site.folder.path(), name));
    drop(host(&[&keys[0]]));
    for pair in keys.windows(2) {
        let (old, new) = (&pair[0], &pair[1]);
        let first = host(&[old, new]);
        if visitor.come(&first, "").is_none() {
            return;
        }
        drop(first);
        visitor.is_resumed(&host(&[new, old]), "");
        host(&[new]).wait_stderr_line("is not named any more");
        visitor.is_not_resumed(&host(&[]), "");
    }
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let site = Site::new();
    let key = keygen(site.folder.path(), "fleet.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let ended = site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key).launch().finish();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    for part in ["--fleet-key", "others can read it (mode 0644)", "chmod 600"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
}

#[test]
fn a_key_that_is_none_is_told_without_repeating_it() {
    let site = Site::new();
    let key = keygen(site.folder.path(), "fleet.key");
    let whole = fs::read_to_string(&key).unwrap();
    let secret = whole.lines().find_map(|line| line.strip_prefix("secret = ")).unwrap();
    for (wrong, said) in [
        (whole.replace(secret, &secret[..40]), "line"),
        (whole.replace("secret = ", "sceret = "), "line"),
        (String::new(), "not a fleet's key"),
        ("-----BEGIN PRIVATE KEY-----\n".to_owned(), "not a fleet's key"),
    ] {
        fs::write(&key, wrong).unwrap();
        let ended = site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key).launch().finish();
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(ended.stderr.contains(said) && !ended.stderr.contains(&secret[..40]), "{}", ended.stderr);
    }
    fs::remove_file(&key).unwrap();
    let ended = site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key).launch().finish();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("courser fleet keygen"), "{}", ended.stderr);
}

#[test]
fn a_key_in_use_is_never_replaced_by_keygen() {
    let site = Site::new();
    let key = keygen(site.folder.path(), "fleet.key");
    let before = fs::read(&key).unwrap();
    let again = courser(&["fleet", "keygen", "--out", text(&key)]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(again.stderr.contains("would be lost"), "{}", again.stderr);
    assert_eq!(fs::read(&key).unwrap(), before);
}

#[test]
fn a_forward_secret_fleet_needs_its_key_file_once_and_a_joiner_an_export() {
    let site = Site::new();
    let folder = site.folder.path();
    let key = keygen(folder, "fleet.key");
    let states = ["one", "other", "third"].map(|name| folder.join(name));
    states.iter().for_each(|state| fs::create_dir(state).unwrap());
    let host = |state: &std::path::Path| site.serve(&[EcdsaP256]).arg("--fleet-state").arg(state);
    let one = host(&states[0]).arg("--fleet-key").arg(&key).start();
    let other = host(&states[1]).arg("--fleet-key").arg(&key).start();
    let visitor = Visitor::new(&site, PSK);
    if visitor.come(&one, "").is_none() {
        return;
    }
    visitor.is_resumed(&other, "");
    drop((one, other));
    fs::remove_file(&key).unwrap();
    // From now on there is no key file.
    visitor.is_resumed(&host(&states[0]).start(), "");
    let export = folder.join("joiner.state");
    let made = courser(&["fleet", "export", "--state", text(&states[0]), "--out", text(&export)]);
    assert!(made.status.success(), "{made:?}");
    assert_eq!(fs::metadata(&export).unwrap().permissions().mode() & 0o777, 0o600);
    let joiner = host(&states[2]).arg("--fleet-key").arg(&export).start();
    visitor.is_resumed(&joiner, "");
    let lonely = site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&export).launch().finish();
    assert!(lonely.stderr.contains("--fleet-state"), "{}", lonely.stderr);
    let empty = host(&folder.join("nothing")).launch().finish();
    assert_eq!(empty.status.code(), Some(2), "{empty:?}");
    let nowhere = host(&folder.join("nothing")).arg("--fleet-key").arg(&export).launch().finish();
    assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
    assert!(nowhere.stderr.contains("--fleet-state") && nowhere.stderr.contains("install -d"), "{nowhere:?}");
}

/// As of two containers of one image, which have one machine's name.
#[test]
fn two_hosts_of_one_machine_have_two_names_and_hear_each_other() {
    let site = Site::new();
    let key = keygen(site.folder.path(), "fleet.key");
    let ports = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let sockets = ["a.sock", "b.sock"].map(|name| site.folder.join(name));
    let start = |number: usize| {
        let host = site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key);
        let host = host.arg("--control").arg(&sockets[number]);
        host.args(["--fleet-listen", &ports[number], "--fleet-peer", &ports[1 - number]]).start()
    };
    let _hosts = [start(0), start(1)];
    let status = |number: usize| -> Value {
        let told = courser(&["fleet", "status", "--json", "--control", text(&sockets[number])]);
        serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"))
    };
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let machine = machine.trim();
    let names = [0, 1].map(|number| status(number)["name"].as_str().unwrap().to_owned());
    for name in &names {
        let start = name.strip_prefix(&format!("{machine}-")).expect("it begins with the machine's name");
        assert!(start.len() == 8 && start.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    }
    assert_ne!(names[0], names[1]);
    eventually("the second hears the first by its name", || {
        status(1)["messages"]["peers"]
            .as_array()
            .is_some_and(|peers| peers.iter().any(|peer| peer["name"] == names[0].as_str()))
    });
}

#[test]
fn a_running_host_tells_of_its_keys_and_cache() {
    let site = Site::new();
    let (key, socket) = (keygen(site.folder.path(), "fleet.key"), site.folder.join("control.sock"));
    let host = site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key).arg("--control").arg(&socket);
    let host = host.args(["--fleet-name", "edge-1"]).start();
    let visitor = Visitor::new(&site, SESSION_ID);
    if visitor.come(&host, "").is_none() {
        return;
    }
    let told = courser(&["fleet", "status", "--json", "--control", text(&socket)]);
    assert!(told.status.success(), "{told:?}");
    let status: Value = serde_json::from_str(&told.stdout).unwrap();
    let fleet = fs::read_to_string(&key).unwrap();
    let fleet = fleet.lines().find_map(|line| line.strip_prefix("fleet = ")).unwrap().to_owned();
    assert_eq!(status["keys"][0]["fleet"], fleet.as_str(), "{status:#}");
    assert_eq!((&status["name"], &status["cache"]["sessions"]), (&"edge-1".into(), &1.into()), "{status:#}");
    let table = courser(&["fleet", "status", "--control", text(&socket)]);
    assert!(table.stdout.contains(&fleet) && table.stdout.contains("1 sessions"), "{table:?}");
    drop(host);
    let gone = courser(&["fleet", "status", "--control", text(&socket)]);
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    assert!(gone.stderr.contains("--control"), "{}", gone.stderr);
}
