//! Many certificates on one address: each name finds its own. How fast and how large with 100,000 of them is measured
//! by the example `many_certificates`.

use std::fs;

use courser_testkit::{KeyType, Leaf};

use crate::stage::run_courser;
use crate::support::{Site, openssl, text};

const MANY: usize = 2000;

/// Of so many, keys are proven when they are first needed: one that is damaged is one name's failure, and `check` finds it.
#[test]
fn each_of_two_thousand_names_finds_its_own_certificate() {
    let site = Site::new();
    let write = |number: usize| {
        let leaf = Leaf::new(KeyType::EcdsaP256).names([format!("site-{number}.example")]);
        format!("{:?}", site.ca.issue(&leaf).write_combined(&site.folder, &number.to_string()))
    };
    let certs: Vec<String> = (0..MANY).map(write).collect();
    let damaged = site.folder.join("5.pem");
    let file = fs::read_to_string(&damaged).unwrap();
    let (head, key) = file.split_once("-----BEGIN PRIVATE KEY-----\n").unwrap();
    // In its private half, which begins behind 48 characters.
    let (before, rest) = key.split_at(56);
    let other = if rest.starts_with('A') { 'B' } else { 'A' };
    fs::write(&damaged, format!("{head}-----BEGIN PRIVATE KEY-----\n{before}{other}{}", &rest[1..])).unwrap();
    let listener = "[[listener]]\nlisten = \"127.0.0.1:0\"\nbackend = \"BACKEND\"\n";
    let courser = site.configured(&format!("{listener}cert = [\n{}\n]", certs.join(",\n"))).start();
    courser.wait_stderr_line(&format!("names: {MANY}"));
    let trust = format!("-CAfile {} -verify_return_error", site.root().display());
    for number in [0, 1, 777, MANY - 1] {
        let name = format!("site-{number}.example");
        let arguments = format!("{trust} -servername {name} -verify_hostname {name}");
        let Some(said) = openssl(courser.address(), &arguments) else { return };
        said.has_page().has("Verify return code: 0 (ok)");
    }
    let Some(said) = openssl(courser.address(), "-servername site-5.example") else { return };
    said.has("internal error");
    let check = run_courser(&["check", "--config", text(&site.folder.join("courser.toml"))]);
    assert_eq!(check.status.code(), Some(2), "{}", check.stdout);
    assert!(check.stderr.contains("5.pem: the key cannot be used"), "{}", check.stderr);
}
