//! Certificate and key files that cannot be served: refused at the start and by `check`, each with its own words.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use courser_testkit::{Folder, Issued, KeyType, Leaf, TestCa};

use crate::certificates::formats::converted;
use crate::stage::run_courser;
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
    refused(text(folder.path()), folder.path(), "the file cannot be read: Is a directory");
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
    refused(&files.as_flag(), &files.key, "everybody can read the private key (mode 0644)");
    let combined = good.write_combined(&folder, "combined");
    fs::set_permissions(&combined, open_to_all()).unwrap();
    refused(text(&combined), &combined, "everybody can read the private key (mode 0644)");
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
fn an_endless_file_is_not_read_to_its_end() {
    refused("/dev/zero", Path::new("/dev/zero"), "the file is larger than 1 MiB");
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
