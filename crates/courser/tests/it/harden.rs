//! What `courser harden` prints, with nft as the judge.

use std::process::Command;

use courser_testkit::{Folder, require, skip};

use crate::stage::{run, run_courser};

/// nft is the judge; it needs to look into the kernel for that.
#[test]
fn rules_for_the_kernel_are_valid() {
    let printed = run_courser(&["harden", "--nft", "--port", "443,8443", "--rate", "50"]);
    assert!(printed.status.success(), "{}", printed.stderr);
    let rules = printed.stdout;
    assert!(
        rules.contains("tcp dport { 443, 8443 }") && rules.contains("limit rate over 50/second"),
        "{rules}"
    );
    let Some(nft) = require("nft") else { return };
    if !nix::unistd::geteuid().is_root() {
        return skip::leave_out("only root may check rules of nftables");
    }
    let folder = Folder::new();
    let file = folder.join("courser.nft");
    std::fs::write(&file, rules).unwrap();
    let checked = run(Command::new(nft).args(["--check", "--file"]).arg(&file));
    assert!(checked.status.success(), "{}", checked.stderr);
}
