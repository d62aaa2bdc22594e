//! Certificates out of their time, and none at all.

use std::time::{Duration, Instant, SystemTime};

use courser_testkit::{Courser, KeyType, Leaf, PATIENCE};

use crate::stage::run_courser;
use crate::support::{Site, openssl, text};

/// Asserts that a certificate is served with a warning, and refused with `--strict`.
#[track_caller]
fn served_with_warning_and_refused_if_strict(leaf: &Leaf, warning: &str) {
    let site = Site::new();
    let cert = site.ca.issue(leaf).write_combined(&site.folder, "site");
    let courser = site.setup().cert(&cert).start();
    let line = courser.wait_stderr_line(&format!("{}: the certificate {warning}", cert.display()));
    assert!(line.starts_with("warning"), "{line}");
    if let Some(said) = openssl(courser.address(), "") {
        said.has_page();
    }
    let flags = ["--listen", "127.0.0.1:0", "--backend", "127.0.0.1:1", "--cert", text(&cert)];
    assert_eq!(run_courser(&[&["check"][..], &flags].concat()).status.code(), Some(0));
    for command in ["check", "serve"] {
        let strict = run_courser(&[&[command, "--strict"][..], &flags].concat());
        assert_eq!(strict.status.code(), Some(2), "{}", strict.stderr);
        assert!(strict.stderr.contains(&format!("error: {}: the certificate {warning}", cert.display())));
    }
}

#[test]
fn an_expired_certificate_is_served_with_a_warning_unless_strict() {
    served_with_warning_and_refused_if_strict(&Leaf::new(KeyType::EcdsaP256).expired(), "has expired");
}

#[test]
fn a_certificate_of_the_future_is_served_with_a_warning_unless_strict() {
    served_with_warning_and_refused_if_strict(
        &Leaf::new(KeyType::EcdsaP256).not_yet_valid(),
        "is not valid yet",
    );
}

/// Asserts what `openssl` gets of a host's certificates: the public key's algorithm.
#[track_caller]
fn assert_served(courser: &Courser, key: &str) {
    for version in ["-tls1_2", "-tls1_3"] {
        if let Some(said) = openssl(courser.address(), version) {
            said.has(&format!("Server public key is {key}")).has_page();
        }
    }
}

#[test]
fn an_expired_certificate_of_a_better_kind_does_not_win_over_a_valid_one() {
    let site = Site::new();
    let expired = Leaf::new(KeyType::EcdsaP256).expired();
    let expired = site.ca.issue(&expired).write_combined(&site.folder, "expired");
    let courser = site.setup().cert(&expired).cert(site.cert(KeyType::Rsa2048)).start();
    assert_served(&courser, "2048 bit");
    // Nothing else would do for it: expired is better than no certificate.
    let only_ecdsa = openssl(courser.address(), "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256");
    if let Some(said) = only_ecdsa {
        said.has_page();
    }
}

#[test]
fn a_certificate_that_expires_while_it_is_served_makes_room_for_the_next() {
    let site = Site::new();
    let end = SystemTime::now() + Duration::from_secs(4);
    let first = Leaf::new(KeyType::EcdsaP256).names(["first.example", "localhost"]).with_expiry(end);
    let second = Leaf::new(KeyType::EcdsaP256).names(["second.example", "localhost"]);
    let [first, second] = [(first, "first"), (second, "second")]
        .map(|(leaf, name)| site.ca.issue(&leaf).write_combined(&site.folder, name));
    let courser = site.setup().cert(&first).cert(&second).start();
    let served = |name| openssl(courser.address(), &format!("-servername {name}"));
    let Some(said) = served("localhost") else { return };
    said.has("CN = first.example");
    let deadline = Instant::now() + PATIENCE;
    // One that a name has to itself, and one that clients without a name get.
    for flag in ["-servername localhost", "-noservername"] {
        while !openssl(courser.address(), flag).unwrap().text.contains("CN = second.example") {
            assert!(Instant::now() < deadline, "{flag}: the first certificate is still served");
        }
    }
    served("first.example").unwrap().has("CN = first.example");
}

#[test]
fn a_valid_certificate_is_no_matter_for_a_warning() {
    let site = Site::new();
    let cert = site.cert(KeyType::EcdsaP256);
    let check = run_courser(&["check", "--strict", "--backend", "127.0.0.1:1", "--cert", text(&cert)]);
    assert_eq!((check.status.code(), &*check.stderr), (Some(0), ""));
}

#[test]
fn without_a_certificate_a_self_signed_one_is_served_and_said_so() {
    let site = Site::new();
    let courser = site.setup().start();
    courser.wait_stderr_line("warning: no certificate configured: serving a self-signed one");
    let Some(said) = openssl(courser.address(), "-verify_hostname localhost") else { return };
    said.has_page().has("courser self-signed").has("Verify return code: 18 (self-signed certificate)");
}
