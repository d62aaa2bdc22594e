//! Certificates, judged by openssl.

use std::{path::Path, process::Command};

use courser_testkit::{Folder, KeyType, Leaf, TestCa, require};

/// The outputs of `openssl verify` for a certificate, together.
fn verify(root: &Path, chain: &Path) -> Option<String> {
    let openssl = require("openssl")?;
    let output = Command::new(openssl)
        .args(["verify", "-verify_hostname", "localhost", "-x509_strict", "-CAfile"])
        .arg(root)
        .arg("-untrusted")
        .arg(chain)
        .arg(chain)
        .output()
        .expect("openssl runs");
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn every_kind_of_key_is_accepted() {
    let (folder, ca) = (Folder::new(), TestCa::new());
    let root = ca.write_root(&folder);
    for key in [KeyType::EcdsaP256, KeyType::EcdsaP384, KeyType::Rsa2048, KeyType::Ed25519] {
        let chain = ca.localhost(key, &folder, &format!("{key:?}"));
        let Some(output) = verify(&root, &chain) else { return };
        assert!(output.trim_end().ends_with("OK"), "{key:?}: {output}");
    }
}

#[test]
fn a_chain_of_two_leads_to_the_root() {
    let (folder, ca) = (Folder::new(), TestCa::with_intermediate());
    let pair = ca.issue(&Leaf::new(KeyType::EcdsaP256)).write_pair(&folder, "site");
    let Some(output) = verify(&ca.write_root(&folder), &pair.chain) else { return };
    assert!(output.trim_end().ends_with("OK"), "{output}");
}

#[test]
fn wrong_dates_and_names_are_what_they_say() {
    let (folder, ca) = (Folder::new(), TestCa::new());
    let root = ca.write_root(&folder);
    let leaf = Leaf::new(KeyType::EcdsaP256);
    for (leaf, complaint) in [
        (leaf.clone().expired(), "certificate has expired"),
        (leaf.clone().not_yet_valid(), "certificate is not yet valid"),
        (leaf.names(["*.a.example"]), "hostname mismatch"),
    ] {
        let chain = ca.issue(&leaf).write_combined(&folder, "bad");
        let Some(output) = verify(&root, &chain) else { return };
        assert!(output.to_lowercase().contains(complaint), "{complaint}: {output}");
    }
}
