//! Certificates out of their time, and none at all.

use courser_testkit::{KeyType, Leaf};

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
