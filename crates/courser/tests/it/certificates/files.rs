//! Certificate and key files that cannot be served: refused at the start and by `check`, each with its own words.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use courser_testkit::{Folder, Issued, KeyType, Leaf, TestCa, require, skip};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};

use crate::certificates::formats::converted;
use crate::stage::{courser_for_all, run, run_courser};
use crate::support::text;

/// A folder, and a good certificate to spoil.
fn certificate() -> (Folder, Issued) {
    (Folder::new(), TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256)))
}

/// What is said of `--cert` with these values by `serve` and, in the same words, by `check`; both have to end with
/// exit code 2.
#[track_caller]
fn refusal(certs: &[&str]) -> String {
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--backend", "127.0.0.1:1"];
    certs.iter().for_each(|cert| arguments.extend(["--cert", cert]));
    let serve = run_courser(&arguments);
    arguments[0] = "check";
    let check = run_courser(&arguments);
    assert_eq!((serve.status.code(), check.status.code()), (Some(2), Some(2)), "{}", check.stderr);
    assert_eq!(serve.stderr, check.stderr);
    check.stderr
}

/// Asserts that the refusal of `cert` names the file at fault and says what is wrong with it.
#[track_caller]
fn refused(cert: &str, file: &Path, wrong: &str) {
    let said = refusal(&[cert]);
    let wanted = format!("{}: {wrong}", file.display());
    assert!(said.contains(&wanted), "no {wanted:?} in:\n{said}");
    assert!(said.contains("help: "), "no advice in:\n{said}");
}

fn pair(chain: &Path, key: &Path) -> String {
    format!("{},key={}", text(chain), text(key))
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let (folder, good) = certificate();
    let other = certificate().1.write_pair(&folder, "other").key;
    let chain = good.write_pair(&folder, "good").chain;
    refused(&pair(&chain, &other), &other, "the private key does not belong to the certificate");
}

#[test]
fn a_key_of_another_kind_is_refused() {
    let (folder, good) = certificate();
    let other = TestCa::new().issue(&Leaf::new(KeyType::Rsa2048)).write_pair(&folder, "other").key;
    let chain = good.write_pair(&folder, "good").chain;
    refused(&pair(&chain, &other), &other, "the private key does not belong to the certificate");
}

#[test]
fn an_empty_file_is_refused() {
    let folder = Folder::new();
    let empty = folder.write("empty.pem", "");
    refused(text(&empty), &empty, "the file is empty");
}

#[test]
fn an_empty_key_file_is_the_one_that_is_named() {
    let (folder, good) = certificate();
    let (chain, empty) = (good.write_pair(&folder, "good").chain, folder.write("empty.key", "\n"));
    refused(&pair(&chain, &empty), &empty, "the file is empty");
}

#[test]
fn a_missing_file_is_refused() {
    let (folder, good) = certificate();
    let missing = folder.join("missing");
    refused(text(&missing), &missing, "the file cannot be read: No such file or directory");
    let chain = good.write_pair(&folder, "good").chain;
    refused(&pair(&chain, &missing), &missing, "the file cannot be read: No such file or directory");
}

#[test]
fn a_folder_is_no_certificate() {
    let folder = Folder::new();
    refused(text(folder.path()), folder.path(), "it is a folder, not a file");
}

#[test]
fn an_encrypted_key_is_refused_in_both_of_its_forms() {
    let (folder, good) = certificate();
    let pair_of_good = good.write_pair(&folder, "good");
    for (name, arguments) in
        [("pkcs8", "pkcs8 -topk8 -passout pass:secret"), ("older", "ec -aes128 -passout pass:secret")]
    {
        let Some(key) = converted(&pair_of_good.key, arguments) else { return };
        let encrypted = folder.write(name, key);
        refused(&pair(&pair_of_good.chain, &encrypted), &encrypted, "the private key is encrypted");
    }
}

#[test]
fn a_key_that_everybody_can_read_is_refused_and_its_chain_need_not_be_private() {
    let (folder, good) = certificate();
    let files = good.write_pair(&folder, "good");
    let open_to_all = || Permissions::from_mode(0o644);
    fs::set_permissions(&files.chain, open_to_all()).unwrap();
    assert_eq!(
        run_courser(&["check", "--backend", "127.0.0.1:1", "--cert", &files.as_flag()]).status.code(),
        Some(0)
    );
    fs::set_permissions(&files.key, open_to_all()).unwrap();
    refused(&files.as_flag(), &files.key, "others can read it (mode 0644)");
    let combined = good.write_combined(&folder, "combined");
    fs::set_permissions(&combined, open_to_all()).unwrap();
    refused(text(&combined), &combined, "others can read it (mode 0644)");
}

#[test]
fn a_key_without_a_certificate_is_refused() {
    let (folder, good) = certificate();
    let key = good.write_pair(&folder, "good").key;
    refused(text(&key), &key, "the file holds no certificate");
}

#[test]
fn a_certificate_without_a_key_is_refused() {
    let (folder, good) = certificate();
    let chain = good.write_pair(&folder, "good").chain;
    refused(text(&chain), &chain, "the file holds no private key");
}

#[test]
fn garbage_is_refused_whether_it_looks_like_pem_or_not() {
    let (folder, good) = certificate();
    let noise = folder.write("noise.pem", [0x80, 0, 0xff, 10].repeat(100));
    refused(text(&noise), &noise, "the file holds no certificate");
    let cut = folder.write("cut.pem", &good.chain_pem[..good.chain_pem.len() / 2]);
    refused(text(&cut), &cut, "the file is not well-formed PEM");
    let pem = |label: &str| format!("-----BEGIN {label}-----\nAAECAwQFBgc=\n-----END {label}-----\n");
    let hollow = folder.write("hollow.pem", pem("CERTIFICATE") + &good.key_pem);
    refused(text(&hollow), &hollow, "the certificate cannot be parsed");
    let keyless = folder.write("keyless.pem", good.chain_pem + &pem("PRIVATE KEY"));
    refused(text(&keyless), &keyless, "the key cannot be used");
}

#[test]
fn a_cut_key_is_refused_under_its_own_name() {
    let (folder, good) = certificate();
    let chain = good.write_pair(&folder, "good").chain;
    let cut = folder.write("cut.key", &good.key_pem[..good.key_pem.len() / 2]);
    refused(&pair(&chain, &cut), &cut, "the file is not well-formed PEM");
}

#[test]
fn a_key_that_others_than_its_owner_can_change_or_a_group_of_strangers_can_read_is_refused() {
    let (folder, good) = certificate();
    let files = good.write_pair(&folder, "good");
    for (mode, wrong) in [
        (0o640, "the group that it belongs to, "),
        (0o620, "the group that it belongs to, "),
        (0o602, "others can change it (mode 0602)"),
    ] {
        fs::set_permissions(&files.key, Permissions::from_mode(mode)).unwrap();
        refused(&files.as_flag(), &files.key, wrong);
        let said = refusal(&[&files.as_flag()]);
        assert!(said.contains(&format!("chmod 600 {}", files.key.display())), "{said}");
    }
}

#[test]
fn a_key_of_another_user_is_refused() {
    if !geteuid().is_root() {
        return skip("only root can give a file to another user");
    }
    let (folder, good) = certificate();
    let files = good.write_pair(&folder, "good");
    chown(&files.key, Some(12_345), None).unwrap();
    refused(&files.as_flag(), &files.key, "it belongs to user 12345, who can change it");
    let said = refusal(&[&files.as_flag()]);
    assert!(said.contains(&format!("chown 0 {}", files.key.display())), "{said}");
}

#[test]
fn what_is_no_file_is_refused_and_holds_nothing_up() {
    let (folder, good) = certificate();
    let chain = good.write_pair(&folder, "good").chain;
    let (fifo, socket) = (folder.join("fifo"), folder.join("socket"));
    mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    let _listening = UnixListener::bind(&socket).unwrap();
    for (path, wrong) in [
        (fifo.as_path(), "it is a FIFO, not a file"),
        (&socket, "it is a socket, not a file"),
        (folder.path(), "it is a folder, not a file"),
        (Path::new("/dev/zero"), "it is a device, not a file"),
    ] {
        refused(text(path), path, wrong);
        refused(&pair(&chain, path), path, wrong);
    }
}

#[test]
fn a_larger_file_than_any_is_not_read_to_its_end() {
    let folder = Folder::new();
    let large = folder.write("large.pem", vec![b'a'; 2 << 20]);
    refused(text(&large), &large, "it has more than 1048576 bytes");
}

/// As a container platform has it: root's file, lent to a group of the service, behind two links.
#[test]
fn a_key_that_root_lends_to_the_group_of_the_service_is_served() {
    if !geteuid().is_root() {
        return skip("only root can give a file to another group");
    }
    let Some(setpriv) = require("setpriv") else { return };
    let (folder, good) = certificate();
    let data = folder.join("..2026");
    fs::create_dir(&data).unwrap();
    let file = good.write_combined(&folder, "..2026/tls");
    symlink(&data, folder.join("..data")).unwrap();
    let link = folder.join("tls.pem");
    symlink(folder.join("..data").join(file.file_name().unwrap()), &link).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o440)).unwrap();
    chown(&file, None, Some(12_345)).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    let program = courser_for_all(&folder);
    let check = |groups: &str| {
        let mut command = Command::new(&setpriv);
        command.args(["--reuid=23456", "--regid=23456", groups]).arg(&program);
        run(command.args(["check", "--backend", "127.0.0.1:1", "--cert"]).arg(&link))
    };
    let lent = check("--groups=12345");
    assert_eq!(lent.status.code(), Some(0), "{}", lent.stderr);
    let stranger = check("--clear-groups");
    assert!(stranger.stderr.contains("Permission denied"), "{}", stranger.stderr);
}

#[test]
fn every_bad_file_is_named_in_one_run() {
    let folder = Folder::new();
    let files = ["one.pem", "two.pem", "three.pem"].map(|name| folder.write(name, ""));
    let said = refusal(&files.each_ref().map(|file| text(file)));
    assert!(files.iter().all(|file| said.contains(text(file))), "{said}");
}

#[test]
fn a_bad_file_is_shown_at_its_place_in_the_configuration() {
    let folder = Folder::new();
    let toml = "[[listener]]\nbackend = \"127.0.0.1:1\"\ncert = [\n  \"missing.pem\",\n]\n";
    let config = folder.write("courser.toml", toml);
    let check = run_courser(&["check", "--config", text(&config)]);
    assert_eq!(check.status.code(), Some(2));
    assert!(check.stderr.contains("courser.toml:4:3"), "{}", check.stderr);
    assert!(check.stderr.contains("missing.pem: the file cannot be read"), "{}", check.stderr);
}
