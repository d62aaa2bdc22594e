//! Who is let in and who is not, by the word of OpenSSL: certificates that are good, missing, of somebody else, over.

use courser_testkit::KeyType::{EcdsaP256, EcdsaP384, Ed25519, Rsa2048};
use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{Courser, Issued, Leaf, TestCa};

use super::Club;
use crate::support::{Said, assert_line, line, openssl, text};

/// OpenSSL's flags for a version, and for either what it prints when no certificate was shown.
const VERSIONS: [(&str, &str); 2] = [
    // RFC 8446, sections 4.4.2.4 and 6.2; RFC 5246, section 7.4.6.
    ("-tls1_3", "tlsv13 alert certificate required"),
    ("-tls1_2", "sslv3 alert handshake failure"),
];

/// A visit of OpenSSL, with this certificate if any.
fn visit(club: &Club, courser: &Courser, flags: &str, certificate: Option<&Issued>) -> Option<Said> {
    let shown = certificate.map(|certificate| {
        let file = club.file(certificate, "shown");
        format!(" -cert {0} -key {0} -cert_chain {0}", text(&file))
    });
    openssl(courser.address(), &format!("{flags}{}", shown.unwrap_or_default()))
}

/// Asserts that a visitor with `certificate` is let in, and known by `name`.
#[track_caller]
fn enters(
    club: &Club,
    courser: &Courser,
    number: usize,
    flags: &str,
    certificate: Option<&Issued>,
    name: Option<&str>,
) {
    let Some(said) = visit(club, courser, flags, certificate) else { return };
    said.has_page();
    let line = line(courser, number);
    assert_line(&line, &[("session", "full"), ("close_reason", "done")]);
    assert_eq!(line["client_cert"].as_str(), name, "{line}");
}

/// Asserts that a visitor gets no further than the handshake, is told `alert`, and that the log says `close_reason`.
#[track_caller]
fn stays_out(
    club: &Club,
    courser: &Courser,
    number: usize,
    (flags, alert, end): (&str, &str, &str),
    certificate: Option<&Issued>,
) {
    let Some(said) = visit(club, courser, flags, certificate) else { return };
    said.has(alert).lacks("HTTP/1");
    let line = line(courser, number);
    assert_line(&line, &[("close_reason", end), ("cause", "client")]);
    assert!(line["backend"].is_null() && line["client_cert"].is_null(), "{line}");
    assert_eq!(club.site.origin.accepted(), 0);
}

#[test]
fn who_shows_a_good_certificate_is_let_in() {
    for mode in ["required", "optional"] {
        let club = Club::new();
        let courser = club.serve(mode).start();
        let mut number = 0;
        for (flags, _) in VERSIONS {
            for key in [EcdsaP256, EcdsaP384, Rsa2048] {
                number += 1;
                let alice = club.clients.issue(&Leaf::new(key).of_client("alice"));
                enters(&club, &courser, number, flags, Some(&alice), Some("alice"));
            }
        }
    }
}

/// With our own client: OpenSSL 3.0 does not read the form in which the test authority writes such a key.
#[test]
fn a_certificate_with_an_ed25519_key_is_good_too() {
    let club = Club::new();
    let courser = club.serve("required").start();
    let alice = club.clients.issue(&Leaf::new(Ed25519).of_client("alice"));
    for (index, version) in [Version::Tls12, Version::Tls13].into_iter().enumerate() {
        let client =
            Client::new(courser.address(), version, EcdsaP256, Resume::Never).with_certificate(&alice);
        client.connect().and_then(|mut connection| connection.get(1, true)).expect("alice is let in");
        assert_line(&line(&courser, index + 1), &[("client_cert", "alice"), ("close_reason", "done")]);
    }
}

#[test]
fn a_chain_through_an_intermediate_is_followed() {
    let club = Club::with(TestCa::with_intermediate());
    let courser = club.serve("required").start();
    for (index, (flags, _)) in VERSIONS.into_iter().enumerate() {
        enters(&club, &courser, index + 1, flags, Some(&club.member("alice")), Some("alice"));
    }
}

#[test]
fn each_of_several_authorities_is_believed() {
    let (club, other) = (Club::new(), TestCa::named("other clients"));
    let more = club.site.folder.write("more.pem", other.root_pem());
    let courser = club.serve("required").arg("--client-ca").arg(more).start();
    let bob = other.issue(&Leaf::new(EcdsaP256).of_client("bob"));
    enters(&club, &courser, 1, "-tls1_3", Some(&club.member("alice")), Some("alice"));
    enters(&club, &courser, 2, "-tls1_3", Some(&bob), Some("bob"));
}

#[test]
fn who_shows_none_stays_out_where_one_is_required_and_is_let_in_where_not() {
    let club = Club::new();
    let (required, optional) = (club.serve("required").start(), club.serve("optional").start());
    for (index, (flags, alert)) in VERSIONS.into_iter().enumerate() {
        stays_out(&club, &required, index + 1, (flags, alert, "no_client_certificate"), None);
    }
    for (index, (flags, _)) in VERSIONS.into_iter().enumerate() {
        enters(&club, &optional, index + 1, flags, None, None);
    }
}

#[test]
fn who_shows_a_bad_certificate_stays_out_even_where_none_is_required() {
    for mode in ["required", "optional"] {
        let (club, stranger) = (Club::new(), TestCa::named("strangers"));
        let leaf = || Leaf::new(EcdsaP256).of_client("mallory");
        let for_servers = Leaf::new(EcdsaP256).names(["mallory"]);
        let bad = [
            (stranger.issue(&leaf()), "unknown ca"),
            (club.clients.issue(&leaf().expired()), "certificate expired"),
            // RFC 8446, section 6.2: certificate_expired is for those that are not yet valid too.
            (club.clients.issue(&leaf().not_yet_valid()), "certificate expired"),
            (club.clients.issue(&for_servers), "unsupported certificate"),
        ];
        let courser = club.serve(mode).start();
        let mut number = 0;
        for (certificate, alert) in &bad {
            for (flags, _) in VERSIONS {
                number += 1;
                let refusal = (flags, *alert, "bad_client_certificate");
                stays_out(&club, &courser, number, refusal, Some(certificate));
            }
        }
    }
}

#[test]
fn an_authority_of_the_right_name_with_another_key_is_not_believed() {
    let (club, clone) = (Club::new(), TestCa::named("clients of the club"));
    let courser = club.serve("required").start();
    let mallory = clone.issue(&Leaf::new(EcdsaP256).of_client("mallory"));
    let Some(said) = visit(&club, &courser, "-tls1_3", Some(&mallory)) else { return };
    said.lacks("HTTP/1");
    assert_line(&line(&courser, 1), &[("close_reason", "bad_client_certificate")]);
}

/// With our own client: OpenSSL looks whether a key belongs to its certificate.
#[test]
fn a_certificate_without_its_key_is_nobodys() {
    let club = Club::new();
    let courser = club.serve("required").start();
    let stolen = Issued { key_pem: club.member("mallory").key_pem, ..club.member("alice") };
    for (index, version) in [Version::Tls12, Version::Tls13].into_iter().enumerate() {
        let client =
            Client::new(courser.address(), version, EcdsaP256, Resume::Never).with_certificate(&stolen);
        let refused = client.connect().and_then(|mut connection| connection.get(1, true)).unwrap_err();
        assert!(refused.to_string().contains("DecryptError"), "{refused}");
        assert_line(
            &line(&courser, index + 1),
            &[("close_reason", "bad_client_certificate"), ("cause", "client")],
        );
    }
    assert_eq!(club.site.origin.accepted(), 0);
}

#[test]
fn clients_are_told_whose_certificates_are_believed() {
    let club = Club::new();
    let courser = club.serve("optional").start();
    for (flags, _) in VERSIONS {
        let Some(said) = openssl(courser.address(), flags) else { return };
        said.has("Acceptable client certificate CA names\nCN = clients of the club\n");
    }
}

#[test]
fn who_is_not_asked_shows_nothing() {
    let club = Club::new();
    let courser = club.site.serve(&[EcdsaP256]).start();
    for (index, (flags, _)) in VERSIONS.into_iter().enumerate() {
        enters(&club, &courser, index + 1, flags, Some(&club.member("alice")), None);
    }
}
