//! packaging/Dockerfile, whose steps are done in an empty folder, and what Kubernetes is given: no engine of containers is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use courser_testkit::{
    Folder, KeyType, Leaf, OriginServer, Process, Signal, TestCa,
    client::{Client, Resume, Version},
    leave_out,
};
use nix::unistd::{Gid, chown};

use crate::fleet::keygen;
use crate::package;
use crate::stage::{content, run, run_courser};

/// What an engine does beside the file: it mounts `/proc`, `/dev`, volumes and tmpfs, and changes root and user.
const ENGINE: &str = r#"
mkdir -p "$ROOT/proc" "$ROOT/dev" "$ROOT/etc/courser" "$ROOT/run/courser"
mount --rbind /proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount --bind "$CONFIG" "$ROOT/etc/courser"
mount -t tmpfs -o uid="${OWNER%:*}",gid="${OWNER#*:}" tmpfs "$ROOT/run/courser"
mount -o remount,ro,bind "$ROOT/etc/courser"
exec chroot --userspec="$OWNER" "$ROOT" "$@"
"#;

#[test]
fn the_image_of_the_dockerfile_serves_and_ends_as_containers_do() {
    if !run(Command::new("unshare").args(["--mount", "true"])).status.success() {
        return leave_out("a root folder of its own takes root");
    }
    let (context, origin, config) = (context(), OriginServer::http(), Folder::new());
    let dockerfile = fs::read_to_string(package::root().join("packaging/Dockerfile")).unwrap();
    let image = Image::build(&dockerfile, context.path());
    let group = Gid::from_raw(image.user.split_once(':').unwrap().1.parse().unwrap());
    let issued = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256));
    let text = "[[listener]]\nlisten = '127.0.0.1:0'\ncert = 'site.pem'\n";
    config.write("courser.toml", format!("{text}backend = '{}'\n", origin.backend()));
    issued.write_combined(&config, "site");
    for (path, mode) in [("", 0o750), ("courser.toml", 0o640), ("site.pem", 0o640)] {
        chown(&config.join(path), None, Some(group)).unwrap();
        fs::set_permissions(config.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", ENGINE, "engine"]).args(&image.entry).args(&image.command);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("OWNER", &image.user);
    let mut server = Process::start(command.env("ROOT", image.root.path()).env("CONFIG", config.path()));
    let address = server.wait_stderr("an address", |lines| {
        let line = lines.iter().find_map(|line| line.split_once("listening on "))?;
        line.1.split(' ').next()?.parse().ok()
    });
    let client = Client::new(address, Version::Tls13, KeyType::EcdsaP256, Resume::Never);
    client.connect().unwrap().get(1000, true).unwrap();
    // As `docker exec` and `kubectl exec` do.
    let mut inside = Command::new("nsenter");
    inside.args(["--target", &server.pid().to_string(), "--mount", "--root", "--wd"]).args(&image.entry);
    let status = content(run(inside.arg("status")));
    assert!(status.contains("1 full"), "{status}");
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait().code(), Some(0));
}

/// The folder that `make static` makes, by `COURSER_STATIC`; else one with the program under test, which needs libraries.
fn context() -> Folder {
    let folder = Folder::new();
    let made = std::env::var_os("COURSER_STATIC").map(PathBuf::from);
    let program = made.map_or(env!("CARGO_BIN_EXE_courser").into(), |made| made.join("courser"));
    fs::copy(program, folder.join("courser")).unwrap();
    folder.write("ca-certificates.crt", TestCa::new().root_pem());
    fs::set_permissions(folder.join("ca-certificates.crt"), fs::Permissions::from_mode(0o644)).unwrap();
    folder
}

struct Image {
    root: Folder,
    user: String,
    entry: Vec<String>,
    command: Vec<String>,
}

impl Image {
    fn build(dockerfile: &str, context: &Path) -> Self {
        let mut image =
            Self { root: Folder::new(), user: String::new(), entry: Vec::new(), command: Vec::new() };
        fs::set_permissions(image.root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let words = |text: &str| serde_json::from_str(text).unwrap();
        for line in dockerfile.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split_once(' ').unwrap() {
                ("FROM", "scratch") | ("EXPOSE", _) | ("STOPSIGNAL", "SIGTERM") => {}
                ("COPY", files) => {
                    let (from, to) = files.split_once(' ').unwrap();
                    image.copy(&context.join(from), to);
                }
                ("USER", user) => image.user = user.to_owned(),
                ("ENTRYPOINT", entry) => image.entry = words(entry),
                ("CMD", command) => image.command = words(command),
                _ => panic!("what this does is not known here: {line}"),
            }
        }
        for library in libraries(&context.join("courser")) {
            image.copy(&library, library.to_str().unwrap());
        }
        image
    }

    fn copy(&self, from: &Path, to: &str) {
        let to = self.root.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

/// Those that a program was linked with; of a static one there are none.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let linked = run(Command::new("ldd").arg(program)).stdout;
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    linked.lines().filter_map(path).collect()
}

#[test]
fn the_settings_of_the_manifest_are_right_with_the_arguments_of_its_pods() {
    let manifest = fs::read_to_string(package::root().join("packaging/kubernetes/courser.yaml")).unwrap();
    let (_, settings) = manifest.split_once("  courser.toml: |\n").unwrap();
    let (settings, _) = settings.split_once("\n---\n").unwrap();
    let folder = Folder::new();
    let secrets = folder.path().display().to_string();
    let text: Vec<_> = settings.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    let text = ["/run/secrets/courser", "/run/secrets/tls"]
        .iter()
        .fold(text.join("\n"), |text, mounted| text.replace(mounted, &secrets));
    keygen(folder.path(), "fleet.key");
    folder.write("token", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n");
    let issued = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256));
    folder.write("tls.crt", &issued.chain_pem);
    folder.write("tls.key", &issued.key_pem);
    let (_, arguments) = manifest.split_once("args: [serve, --config, /etc/courser/courser.toml, ").unwrap();
    let arguments = arguments.split_once("]\n").unwrap().0.replace("$(POD_IP)", "10.1.2.3");
    let arguments: Vec<&str> = arguments.split(", ").map(|word| word.trim_matches('"')).collect();
    let file = folder.write("courser.toml", text).display().to_string();
    let check = run_courser(&[&["check", "--config", &file], &arguments[..]].concat());
    assert!(check.status.success(), "{}", check.stderr);
    assert!(check.stdout.contains("certificates: 1, fleet keys"), "{}", check.stdout);
}
