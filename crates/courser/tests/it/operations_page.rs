//! docs/operations.md: every command of it is run, in its order, beside a service of the package, on a copy of this system that
//! is gone afterwards (an overlay).

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use courser_testkit::{Folder, KeyType, Leaf, TestCa, overlay, require};

use crate::package;
use crate::stage::{content, run_courser};

/// What cannot run in a test, why, and what stands in its place: it is checked as far as can be.
const STAND_INS: [(&str, &str, &str); 4] = [
    (
        "systemctl",
        "no service manager runs in a copy of the system",
        r#"/usr/bin/systemctl --help | grep -q "^  $1 " || { echo "systemctl has no $1"; exit 64; }
shift
for word; do
    case $word in
        -*) /usr/bin/systemctl --help | grep -q -e " $word" ;;
        *) test -e "/lib/systemd/system/$word.service" ;;
    esac || { echo "systemctl has no $word"; exit 64; }
done"#,
    ),
    (
        "journalctl",
        "without a service manager there is no journal: what the service has written is in a file",
        r#"for word; do
    case $word in
        -*) journalctl=$(/usr/bin/journalctl --help); echo "$journalctl" | grep -q -e " ${word%%=*}" ;;
    esac || case $word in -[0-9]*) ;; *) echo "journalctl has no $word"; exit 64 ;; esac
done
cat /tmp/journal"#,
    ),
    ("make", "a release build takes minutes: what it would run is printed", r#"exec /usr/bin/make -n "$@""#),
    (
        "cargo",
        "an hour of load: the benchmark and its option are looked for",
        r#"test "$1 $2 $3 $4 $5 $6 $7" = "bench -p courser --bench without_downtime -- --duration"
grep -q 'name = "without_downtime"' /mnt/Cargo.toml && grep -q '"--duration"' /mnt/bench.rs"#,
    ),
];

/// A service as the package has it, with a client before the first command.
const SERVICE: &str = r#"
export DEBIAN_FRONTEND=noninteractive PATH=/mnt/stand-ins:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /srv/operator/target/deb
cd /srv/operator
cp /mnt/courser_1_*.deb target/deb
cp /mnt/Makefile /mnt/renewed.pem .
dpkg -i target/deb/courser_*.deb
install -m 640 -g courser /mnt/site.pem /etc/courser/site.pem
sed -i -e 's/\*:8443/127.0.0.1:0/' -e 's#^backend = #cert = ["/etc/courser/site.pem"]\n&#' \
    -e '1i log = "json"' /etc/courser/courser.toml
install -d -o courser -g courser /run/courser
RUNTIME_DIRECTORY=/run/courser setpriv --reuid=courser --regid=courser --clear-groups \
    courser serve --config /etc/courser/courser.toml --workers 1 >/tmp/journal 2>&1 &
server=$!
until grep -q 'listening on' /tmp/journal; do kill -0 $server; sleep 0.05; done
address=$(sed -n 's/.*listening on \([0-9.:]*\).*/\1/p' /tmp/journal | head -n 1)
openssl s_client -connect $address </dev/null >/dev/null 2>&1
until grep -q '"close_reason"' /tmp/journal; do sleep 0.05; done
for command in /mnt/commands/*; do
    sh -e $command >/tmp/output 2>&1 && code=0 || code=$?
    echo "@ $(basename $command) $code"
    cat /tmp/output
done
kill $(courser status --json | jq .pid)
# Twice as long as it may wait for connections that stay.
for wait in $(seq 1200); do test -e /run/courser/control.sock || exit 0; sleep 0.05; done
tail -n 20 /tmp/journal
ps -C courser -o pid,stat,wchan,args
exit 1
"#;

#[test]
fn every_command_of_the_operations_page_does_what_it_says() {
    if ["dpkg-deb", "objdump", "openssl", "jq", "systemctl"].iter().any(|program| require(program).is_none())
    {
        return;
    }
    let page = fs::read_to_string(package::root().join("docs/operations.md")).unwrap();
    let commands = commands(&page);
    assert!(commands.len() > 20, "{commands:#?}");
    let folder = Folder::new();
    prepare(&folder, &commands);
    let Some(done) = overlay::run(folder.path(), SERVICE) else { return };
    let said = content(done);
    let outputs: Vec<&str> = said.split("\n@ ").skip(1).collect();
    assert_eq!(outputs.len(), commands.len(), "{said}");
    let mut failed = String::new();
    for (command, output) in commands.iter().zip(&outputs) {
        let expected = SAYS.iter().find(|(part, _)| command.contains(part)).map_or("", |(_, says)| says);
        let (status, said) = output.split_once('\n').unwrap_or((output, ""));
        if !status.ends_with(" 0") || !said.contains(expected) {
            failed += &format!("\n{command}\nshould say {expected:?}, and says, with exit code {output}");
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

/// What some of them say: that they have reached the service, and done it.
const SAYS: [(&str, &str); 10] = [
    // Which end is seen first is chance: the client's, or that nobody is at the backend's port.
    ("| uniq -c", "      1 "),
    ("check --config", "ok: listeners: 1"),
    ("fleet keygen", ""),
    ("backend list --json", "127.0.0.1:8080"),
    ("backend list", "127.0.0.1:8080"),
    ("backend drain", "draining (operator)"),
    ("reload --dry-run", "would"),
    ("courser reload", "serves; changed: "),
    ("courser upgrade", "handed over in "),
    ("grep certificate", "renewed.example (EC256): "),
];

fn prepare(folder: &Folder, commands: &[String]) {
    package::build(folder.path(), "1");
    let ca = TestCa::new();
    for name in ["site", "renewed"] {
        ca.issue(&Leaf::new(KeyType::EcdsaP256).names([format!("{name}.example")]))
            .write_combined(folder, name);
    }
    let root = package::root();
    fs::copy(root.join("Makefile"), folder.join("Makefile")).unwrap();
    fs::copy(root.join("crates/courser/Cargo.toml"), folder.join("Cargo.toml")).unwrap();
    let bench = root.join("crates/courser/benches/without_downtime/main.rs");
    fs::copy(bench, folder.join("bench.rs")).unwrap();
    for name in ["stand-ins", "commands"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    for (program, why, script) in STAND_INS {
        let is_first =
            |command: &String| command.split([';', '|']).any(|part| part.trim().starts_with(program));
        assert!(commands.iter().any(is_first), "the page has no {program} any more");
        let path = folder.write(&format!("stand-ins/{program}"), format!("#!/bin/sh\n# {why}\n{script}\n"));
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    for (number, command) in commands.iter().enumerate() {
        folder.write(&format!("commands/{number:03}"), command);
    }
}

/// The lines of the page's blocks of commands, without their comments.
fn commands(page: &str) -> Vec<String> {
    let (mut commands, mut is_inside) = (Vec::new(), false);
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            assert!(is_inside || language == "sh", "a block that is not run: mark it as `sh`");
            is_inside = !is_inside;
        } else if is_inside {
            let command = line.split_once(" #").map_or(line, |(command, _)| command).trim();
            commands.extend((!command.is_empty()).then(|| command.to_owned()));
        }
    }
    commands
}

#[test]
fn every_command_that_the_operations_page_mentions_is_there_with_its_flags() {
    let page = fs::read_to_string(package::root().join("docs/operations.md")).unwrap();
    let prose: Vec<&str> = page.split("```").step_by(2).collect();
    let spans = prose.iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    let mentioned: Vec<&str> = spans.filter_map(|span| span.strip_prefix("courser ")).collect();
    assert!(mentioned.len() > 5, "{mentioned:?}");
    for command in mentioned {
        let (flags, verbs): (Vec<&str>, Vec<&str>) =
            command.split_whitespace().partition(|word| word.starts_with('-'));
        let help = run_courser(&[&verbs[..], &["--help"]].concat());
        assert!(help.status.success(), "courser {command}: {}", help.stderr);
        for flag in flags {
            assert!(help.stdout.contains(flag), "courser {command}: {}", help.stdout);
        }
    }
}
