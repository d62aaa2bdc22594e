//! Files of authorities that cannot be used, or should not be: told at the start, all at once, each with its place.

use std::path::Path;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{Leaf, TestCa};

use super::Club;
use crate::stage::run_courser;
use crate::support::text;

/// What `courser check` says of these files of authorities.
fn check(club: &Club, files: &[&Path], more: &[&str]) -> (Option<i32>, String) {
    let certificate = club.site.cert(EcdsaP256);
    let mut arguments = vec!["check", "--cert", text(&certificate), "--backend", "127.0.0.1:9"];
    arguments.extend(["--client-auth", "required"]);
    arguments.extend(files.iter().flat_map(|file| ["--client-ca", text(file)]));
    arguments.extend(more);
    let checked = run_courser(&arguments);
    (checked.status.code(), checked.stderr)
}

#[test]
fn every_bad_file_is_told_in_one_run() {
    let club = Club::new();
    let folder = &club.site.folder;
    let (missing, empty) = (folder.join("missing.pem"), folder.write("empty.pem", ""));
    let garbage = folder.write("garbage.pem", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n");
    let key = folder.write("key.pem", club.member("alice").key_pem);
    let leaf = folder.write("leaf.pem", club.member("alice").chain_pem);
    let absent = folder.join("absent.pem");
    let (code, said) = check(&club, &[&missing, &empty, &garbage, &key, &leaf], &["--cert", text(&absent)]);
    assert_eq!(code, Some(2), "{said}");
    for part in [
        "missing.pem: the file cannot be read",
        "empty.pem: the file is empty",
        "garbage.pem: the",
        "key.pem: the file holds no certificate",
        "leaf.pem: `CN=alice` is not a certificate authority",
        "absent.pem: the file cannot be read",
        "--client-ca",
    ] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
}

#[test]
fn an_authority_that_has_expired_is_told_and_believed_unless_strict() {
    let club = Club::with(TestCa::expired());
    let file = club.site.folder.write("old.pem", club.clients.root_pem());
    let told = "the authority `CN=expired authority` has expired";
    let (code, said) = check(&club, &[&file], &[]);
    assert!(code == Some(0) && said.contains("warning") && said.contains(told), "{said}");
    let (code, said) = check(&club, &[&file], &["--strict"]);
    assert!(code == Some(2) && said.contains("error") && said.contains(told), "{said}");
}

#[test]
fn a_file_of_several_authorities_is_all_of_them() {
    let (club, other) = (Club::new(), TestCa::named("other clients"));
    let both = format!("{}{}", club.clients.root_pem(), other.root_pem());
    let file = club.site.folder.write("both.pem", both);
    let courser = club.site.serve(&[EcdsaP256]).args(["--client-auth", "required", "--client-ca"]).arg(&file);
    let courser = courser.start();
    for authority in [&club.clients, &other] {
        let issued = authority.issue(&Leaf::new(EcdsaP256).of_client("alice"));
        let client = Client::new(courser.address(), Version::Tls13, EcdsaP256, Resume::Never);
        client
            .with_certificate(&issued)
            .connect()
            .and_then(|mut to| to.get(1, true))
            .expect("alice is let in");
    }
}
