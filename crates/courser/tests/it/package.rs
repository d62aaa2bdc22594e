//! The Debian package, installed, used, upgraded and removed on a copy of this system that is gone afterwards (an overlay).

use std::fs;
use std::path::Path;
use std::process::Command;

use courser_testkit::{Folder, overlay, require};

use crate::stage::{content, run};

const LIFE: &str = r#"
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
dpkg -i /mnt/courser_1_*.deb
getent passwd courser
stat -c '%U:%G %a' /etc/courser /etc/courser/courser.toml
as_courser='setpriv --reuid=courser --regid=courser --clear-groups'
$as_courser courser check --config /etc/courser/courser.toml
test -s /usr/share/bash-completion/completions/courser
zcat /usr/share/man/man1/courser.1.gz | grep -q courser
# A service of this package, on a free port.
sed 's/\*:8443/127.0.0.1:0/' /etc/courser/courser.toml > /tmp/courser.toml
$as_courser courser serve --config /tmp/courser.toml --workers 1 --control /tmp/control.sock 2>/tmp/events &
server=$!
until grep -q 'listening on' /tmp/events; do kill -0 $server; sleep 0.05; done
echo '# mine' >> /etc/courser/courser.toml
dpkg -i /mnt/courser_2_*.deb
dpkg-query -W -f '${Version}\n' courser
tail -n 1 /etc/courser/courser.toml
kill -0 $server && echo 'serves on'
# As the package does it where systemd runs, while clients come.
address=$(sed -n 's/.*listening on \([0-9.:]*\).*/\1/p' /tmp/events | head -n 1)
while ! test -e /tmp/over; do
    openssl s_client -connect $address </dev/null >/dev/null 2>&1 || echo "not served" >> /tmp/refused
    echo served >> /tmp/served
done &
clients=$!
until test -s /tmp/served; do sleep 0.05; done
for upgrade in 1 2 3; do
    $as_courser courser upgrade --binary /usr/bin/courser --control /tmp/control.sock
done
touch /tmp/over
wait $clients
wait $server && echo 'replaced'
! test -e /tmp/refused
$as_courser courser status --control /tmp/control.sock
kill $($as_courser courser status --json --control /tmp/control.sock | sed 's/.*"pid":\([0-9]*\).*/\1/')
until ! test -e /tmp/control.sock; do sleep 0.05; done
dpkg --purge courser
! getent passwd courser
! test -e /etc/courser/courser.toml
! test -e /usr/bin/courser
echo 'all gone'
"#;

#[test]
fn the_package_is_installed_upgraded_and_removed_without_a_trace() {
    let packages = Folder::new();
    if require("dpkg-deb").is_none() || require("objdump").is_none() {
        return;
    }
    build(packages.path(), "1");
    build(packages.path(), "2");
    let Some(done) = overlay::run(packages.path(), LIFE) else { return };
    let said = content(done);
    for expected in [
        "root:courser 750\nroot:courser 640",
        "ok: listeners: 1, certificates: 0",
        "\n2\n# mine\nserves on",
        "\nreplaced\n",
        "all gone",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn the_units_are_what_systemd_takes() {
    let Some(analyze) = require("systemd-analyze") else { return };
    let folder = Folder::new();
    for unit in ["courser.service", "courser.socket"] {
        let text = fs::read_to_string(root().join("packaging").join(unit)).unwrap();
        // It looks whether the program is there.
        folder.write(unit, text.replace("/usr/local/bin/courser", env!("CARGO_BIN_EXE_courser")));
    }
    let mut command = Command::new(analyze);
    command.args(["verify", "--man=no", "--recursive-errors=no"]);
    command.args(["courser.service", "courser.socket"].map(|unit| folder.join(unit)));
    let done = run(&mut command);
    let ours = |line: &&str| line.contains("courser.");
    let complaints: Vec<&str> = done.stderr.lines().filter(ours).collect();
    assert!(done.status.success() && complaints.is_empty(), "{}", done.stderr);
}

pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(crate) fn build(out: &Path, version: &str) {
    let programs = Path::new(env!("CARGO_BIN_EXE_courser")).parent().unwrap();
    // Of courser alone: a program of the instrument that lies there may be an older one.
    let only = Folder::new();
    fs::copy(programs.join("courser"), only.join("courser")).unwrap();
    let mut command = Command::new(root().join("scripts/deb.sh"));
    content(run(command.arg(only.path()).arg(out).arg(version).env("COMPRESSION", "-Zgzip -z1")));
    let built = out.join(format!("courser_{version}_{}.deb", architecture()));
    assert!(built.exists());
}

fn architecture() -> String {
    content(run(Command::new("dpkg").arg("--print-architecture"))).trim().to_owned()
}
