//! The Debian package of the instrument alone, installed, used and removed on a copy of this system that is gone afterwards.

use std::fs;
use std::path::Path;
use std::process::Command;

use courser_testkit::{Folder, overlay, process, require};

const LIFE: &str = "
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
dpkg -i /mnt/courser-bench_1_*.deb
test -s /usr/share/bash-completion/completions/courser-bench
test -s /usr/share/zsh/vendor-completions/_courser-bench
test -s /usr/share/fish/vendor_completions.d/courser-bench.fish
zcat /usr/share/man/man1/courser-bench.1.gz | grep 'COMMAND courser-bench load'
cd /
courser-bench targets
dpkg --purge courser-bench
! test -e /usr/bin/courser-bench
echo 'all gone'
";

#[test]
fn the_package_is_installed_and_removed_by_itself() {
    let packages = Folder::new();
    if require("dpkg-deb").is_none() || require("objdump").is_none() {
        return;
    }
    // Of the instrument alone, as on a machine that has no terminator.
    let only = Folder::new();
    fs::copy(env!("CARGO_BIN_EXE_courser-bench"), only.join("courser-bench")).unwrap();
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/deb.sh"));
    let mut command = Command::new(script);
    command.arg(only.path()).arg(packages.path()).arg("1").env("COMPRESSION", "-Zgzip -z1");
    let built = process::run(&mut command);
    assert!(built.status.success() && !built.stdout.contains("courser_1"), "{built:?}");
    let Some(done) = overlay::run(packages.path(), LIFE) else { return };
    assert!(done.status.success(), "{}{}", done.stdout, done.stderr);
    for expected in ["COMMAND courser-bench load", "stunnel", "all gone"] {
        assert!(done.stdout.contains(expected), "{expected}: {}", done.stdout);
    }
}
