//! The forms in which certificates and keys come, each served to OpenSSL.

use std::path::Path;
use std::process::Command;

use courser_testkit::{KeyType, Leaf, Pair, Process, TestCa, require};

use crate::support::{Site, openssl as openssl_client};

/// A key as `openssl COMMAND -in KEY` writes it; `None`, after saying so, where OpenSSL is missing.
pub(super) fn converted(key: &Path, command: &str) -> Option<String> {
    let mut openssl = Command::new(require("openssl")?);
    let ended = Process::start(openssl.args(command.split(' ')).arg("-in").arg(key)).finish();
    assert!(ended.status.success(), "{}", ended.stderr);
    Some(ended.stdout + "\n")
}

/// Asserts that OpenSSL gets the page, and trusts what it is shown, from a terminator with this `--cert`.
#[track_caller]
fn serves(site: &Site, cert: &str) {
    let courser = site.setup().cert(cert).start();
    let verify = format!("-CAfile {} -verify_return_error -verify_hostname localhost", site.root().display());
    let Some(said) = openssl_client(courser.address(), &verify) else { return };
    said.has_page().has("Verify return code: 0 (ok)");
}

/// Serves a certificate whose key is written as `command` writes it, under a label that has to be `label`.
#[track_caller]
fn serves_key(kind: KeyType, command: &str, label: &str) {
    let site = Site::new();
    let files = site.ca.issue(&Leaf::new(kind)).write_pair(&site.folder, "site");
    let Some(key) = converted(&files.key, command) else { return };
    assert!(key.contains(&format!("-----BEGIN {label}-----")), "{key}");
    site.folder.write("site.key", key);
    serves(&site, &files.as_flag());
}

#[test]
fn pkcs_8_keys_are_served() {
    for kind in [KeyType::EcdsaP256, KeyType::EcdsaP384, KeyType::Rsa2048] {
        serves_key(kind, "pkey", "PRIVATE KEY");
    }
}

#[test]
fn pkcs_1_keys_are_served() {
    serves_key(KeyType::Rsa2048, "pkey -traditional", "RSA PRIVATE KEY");
}

#[test]
fn sec_1_keys_are_served() {
    serves_key(KeyType::EcdsaP256, "pkey -traditional", "EC PRIVATE KEY");
    serves_key(KeyType::EcdsaP384, "pkey -traditional", "EC PRIVATE KEY");
}

#[test]
fn parameters_before_a_sec_1_key_are_passed_over() {
    let site = Site::new();
    let files = site.ca.issue(&Leaf::new(KeyType::EcdsaP256)).write_pair(&site.folder, "site");
    let Some(key) = converted(&files.key, "pkey -traditional") else { return };
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    site.folder.write("site.key", parameters.to_owned() + &key);
    serves(&site, &files.as_flag());
}

#[test]
fn what_openssl_makes_of_each_kind_of_key_is_served() {
    let site = Site::new();
    let Some(program) = require("openssl") else { return };
    for kind in ["ed25519", "rsa:3072", "ec -pkeyopt ec_paramgen_curve:P-521"] {
        let (chain, key) = (site.folder.join("made.crt"), site.folder.join("made.key"));
        let mut openssl = Command::new(&program);
        openssl.args(
            "req -x509 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -newkey".split(' '),
        );
        openssl.args(kind.split(' ')).arg("-out").arg(&chain).arg("-keyout").arg(&key);
        let made = Process::start(&mut openssl).finish();
        assert!(made.status.success(), "{}", made.stderr);
        let courser = site.setup().cert(Pair { chain: chain.clone(), key }.as_flag()).start();
        let verify = format!("-CAfile {} -verify_return_error", chain.display());
        let Some(said) = openssl_client(courser.address(), &verify) else { return };
        said.has_page().has("Verify return code: 0 (ok)");
    }
}

#[test]
fn chain_and_key_come_in_one_file_in_either_order_or_in_two() {
    let site = Site::new();
    let issued = site.ca.issue(&Leaf::new(KeyType::EcdsaP256));
    let two = issued.write_pair(&site.folder, "two").as_flag();
    let chain_first = site.folder.write("chain-first.pem", issued.chain_pem.clone() + &issued.key_pem);
    let key_first = site.folder.write("key-first.pem", issued.key_pem + &issued.chain_pem);
    for cert in [two, chain_first.display().to_string(), key_first.display().to_string()] {
        serves(&site, &cert);
    }
}

#[test]
fn text_around_the_blocks_does_no_harm() {
    let site = Site::new();
    let issued = site.ca.issue(&Leaf::new(KeyType::EcdsaP256));
    let pem = format!("Subject: localhost\r\n{}\nkey:\n{}\n", issued.chain_pem, issued.key_pem)
        .replace('\n', "\r\n");
    let file = site.folder.write("site.pem", pem);
    serves(&site, &file.display().to_string());
}

#[test]
fn the_intermediate_is_sent_so_that_clients_with_the_root_alone_trust_the_chain() {
    let site = Site { ca: TestCa::with_intermediate(), ..Site::new() };
    let cert = site.cert(KeyType::EcdsaP256);
    serves(&site, &cert.display().to_string());
}
