//! Backends by name: the program looks a name up again and follows it to another address.

use std::{fs, process::Command};

use courser_testkit::{Behaviour, OriginServer, client::Version, require, skip};

use crate::stage::{Stage, eventually, run};
use crate::support::text;

#[test]
fn a_name_that_moves_is_followed() {
    let Some(unshare) = require("unshare") else { return };
    if !run(Command::new(&unshare).args(["--mount", "true"])).status.success() {
        return skip("a mount namespace needs root");
    }
    let stage = Stage::new();
    let before = OriginServer::http();
    let port = before.address().port();
    let after = OriginServer::setup(Behaviour::Http).listen(([127, 0, 0, 2], port).into()).start();
    let hosts = stage.folder.write("hosts", "127.0.0.1 moving.test\n");
    let with_hosts = format!("mount --bind {} /etc/hosts && exec \"$@\"", text(&hosts));
    let setup = stage.courser().backend(format!("moving.test:{port}"));
    let courser = setup.under(&[text(&unshare), "--mount", "sh", "-c", &with_hosts, "sh"]).start();
    let client = stage.client(&courser, Version::Tls13);
    client.connect().unwrap().get(10, true).unwrap();
    assert_eq!((before.accepted(), after.accepted()), (1, 0));
    fs::write(&hosts, "127.0.0.2 moving.test\n").unwrap();
    eventually("a connection to the new address", || {
        client.connect().unwrap().get(10, true).unwrap();
        after.accepted() > 0
    });
}
