//! The control socket where nobody names one, and reloads of a program that was started by flags alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use courser_testkit::{
    Courser, Folder, KeyType, OriginServer, TestCa, ca::Leaf, client::Version, process::Finished, require,
    skip,
};
use nix::unistd::geteuid;

use crate::stage::{Stage, courser, courser_for_all, run};
use crate::support::text;

/// A command of the program for the service whose folder this is.
fn ask(runtime: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
    run(command.args(arguments).env("RUNTIME_DIRECTORY", runtime))
}

/// A second folder is another unit's.
fn of_unit(folder: &Folder) -> String {
    format!("{}:/run/another", folder.path().display())
}

#[test]
fn commands_find_the_program_by_its_default_socket() {
    let (stage, origin, runtime) = (Stage::new(), OriginServer::http(), Folder::new());
    let mut courser =
        stage.courser().backend(origin.backend()).env("RUNTIME_DIRECTORY", &of_unit(&runtime)).start();
    for arguments in
        [&["status"][..], &["fleet", "status"], &["reload"], &["reload", "--dry-run"], &["backend", "list"]]
    {
        let done = ask(runtime.path(), arguments);
        assert!(done.status.success(), "{arguments:?}: {}", done.stderr);
    }
    let socket = fs::metadata(runtime.join("control.sock")).unwrap();
    assert!(socket.file_type().is_socket() && socket.permissions().mode() & 0o777 == 0o600);
    courser.stop();
    assert!(!runtime.join("control.sock").exists());
    let done = ask(runtime.path(), &["status"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("no program has opened it"), "{}", done.stderr);
}

#[test]
fn a_user_has_it_among_its_own_runtime_files() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let Some(setpriv) = require("setpriv") else { return };
    let (stage, origin, runtime) = (Stage::new(), OriginServer::http(), Folder::new());
    let program = courser_for_all(&stage.folder);
    for file in [&stage.certificate, runtime.path()] {
        chown(file, Some(23_456), Some(23_456)).unwrap();
    }
    fs::set_permissions(runtime.path(), Permissions::from_mode(0o700)).unwrap();
    let become_user = [text(&setpriv), "--reuid=23456", "--regid=23456", "--clear-groups"];
    let xdg = runtime.path().display().to_string();
    let setup = Courser::setup(&program).cert(&stage.certificate).backend(origin.backend());
    let setup = setup.env("RUNTIME_DIRECTORY", "").env("XDG_RUNTIME_DIR", &xdg).under(&become_user);
    let _courser = setup.start();
    let mut command = Command::new(&setpriv);
    command.args(&become_user[1..]).arg(&program).arg("status");
    let done = run(command.env("XDG_RUNTIME_DIR", &xdg));
    assert!(done.status.success(), "{}", done.stderr);
    assert!(runtime.join("courser/control.sock").exists());
}

#[test]
fn where_the_default_socket_cannot_be_it_serves_with_one_warning() {
    let (stage, origin, runtime) = (Stage::new(), OriginServer::http(), Folder::new());
    let file = stage.folder.write("file", "");
    let setup = |folder: &Path| {
        stage.courser().backend(origin.backend()).env("RUNTIME_DIRECTORY", &folder.display().to_string())
    };
    let first = setup(runtime.path()).start();
    for (folder, why) in
        [(runtime.path(), "another program listens there"), (&file.join("below"), "Not a directory")]
    {
        let other = setup(folder).start();
        stage.client(&other, Version::Tls13).connect().unwrap().get(10, true).unwrap();
        let warnings: Vec<String> =
            other.stderr().into_iter().filter(|line| line.contains("control socket")).collect();
        assert!(warnings.len() == 1 && warnings[0].contains(why), "{warnings:?}");
    }
    // What was there before answers still.
    let status = ask(runtime.path(), &["status", "--json"]);
    assert!(status.status.success(), "{}", status.stderr);
    drop(first);
}

#[test]
fn a_socket_that_is_named_has_to_be_free() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let control = stage.folder.join("control.sock");
    let setup = || stage.courser().backend(origin.backend()).arg("--control").arg(&control);
    let _first = setup().start();
    let refused = setup().launch().finish();
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("another program listens there"), "{}", refused.stderr);
}

#[test]
fn files_that_flags_name_are_reloaded() {
    let (stage, origin, runtime) = (Stage::new(), OriginServer::http(), Folder::new());
    let ca = TestCa::new();
    let (chain, key) = (stage.folder.join("chain.pem"), stage.folder.join("key.pem"));
    let write = |leaf: &courser_testkit::ca::Issued| {
        stage.folder.write("chain.pem", &leaf.chain_pem);
        stage.folder.write("key.pem", &leaf.key_pem);
    };
    write(&ca.issue(&Leaf::new(KeyType::EcdsaP256)));
    let pair = format!("{},key={}", chain.display(), key.display());
    let setup = courser().cert(pair).backend(origin.backend()).arg("--no-reload-on-change");
    let courser = setup.env("RUNTIME_DIRECTORY", text(runtime.path())).start();
    let renewed = ca.issue(&Leaf::new(KeyType::EcdsaP256));
    write(&renewed);
    let done = ask(runtime.path(), &["reload"]);
    assert!(done.status.success(), "{}", done.stderr);
    assert!(done.stdout.contains("chain.pem") && done.stdout.contains("key.pem"), "{}", done.stdout);
    let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
    assert_eq!(client.tls().peer_certificates().unwrap()[0].to_vec(), renewed.certificate.to_vec());
    // A chain without its key.
    stage.folder.write("chain.pem", &ca.issue(&Leaf::new(KeyType::EcdsaP256)).chain_pem);
    let done = ask(runtime.path(), &["reload"]);
    assert_eq!(done.status.code(), Some(2), "{}", done.stdout);
    assert!(done.stderr.contains("generation 2 serves on"), "{}", done.stderr);
}
