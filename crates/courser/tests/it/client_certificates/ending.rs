//! Sessions do not outlive the certificate that they stand for, and are not made where it is too long to carry.

use std::time::{Duration, SystemTime};

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::Leaf;
use courser_testkit::client::SessionThief;

use super::Club;
use crate::stage::eventually;
use crate::support::{SESSION_ID, WAYS, assert_line, line, openssl, text};

/// Long enough to come back once on a busy machine.
const SOON: Duration = Duration::from_secs(4);

#[test]
fn a_session_ends_with_the_certificate_and_a_renewed_one_begins_another() {
    for way in WAYS {
        let club = Club::new();
        // As many tickets as there can be, for a client that uses each once.
        let courser = club.serve("required").args(["--tickets-per-handshake", "16"]).start();
        let intruder = SessionThief::new(way.version, EcdsaP256, way.resume);
        let client = intruder.at(courser.address(), "localhost");
        let mut visits = 0;
        let mut visit = || {
            visits += 1;
            let mut connection = client.connect()?;
            connection.get(1, true)?;
            std::io::Result::Ok(connection.is_resumed())
        };
        let end = SystemTime::now() + SOON;
        intruder.set_certificate(Some(&club.member_until("alice", end)));
        intruder.capture();
        assert!(!visit().expect("the certificate is good"));
        intruder.offer();
        assert!(visit().expect("the certificate is good"), "it was never resumed");
        eventually("the certificate has ended", || SystemTime::now() > end + Duration::from_secs(1));
        let refused = visit().expect_err("the certificate has ended").to_string();
        assert!(refused.contains("CertificateExpired"), "{refused}");
        intruder.set_certificate(Some(&club.member("alice")));
        assert!(!visit().expect("the renewed certificate is good"));
        assert_line(&line(&courser, 3), &[("close_reason", "bad_client_certificate")]);
        // The cache has forgotten it at the visit before; a ticket is always the client's own.
        let miss = if way == SESSION_ID { "not_found" } else { "expired" };
        let fields =
            [("session", "full"), ("not_resumed", miss), ("client_cert", "alice"), ("close_reason", "done")];
        assert_line(&line(&courser, 4), &fields);
    }
}

#[test]
fn clients_are_told_what_is_left_of_their_certificate() {
    let club = Club::new();
    let courser = club.serve("required").start();
    let alice = club.member_until("alice", SystemTime::now() + Duration::from_secs(600));
    let file = club.file(&alice, "alice");
    for flags in ["-tls1_2", "-tls1_3"] {
        let Some(said) = openssl(courser.address(), &format!("{flags} -cert {0} -key {0}", text(&file)))
        else {
            return;
        };
        let (_, hint) =
            said.has_page().text.split_once("TLS session ticket lifetime hint: ").expect("a ticket");
        let seconds: u64 = hint.split(' ').next().and_then(|hint| hint.parse().ok()).expect("a number");
        assert!((500..=600).contains(&seconds), "{seconds} s");
    }
}

/// A certificate of some 60 KiB: with such a ticket the ClientHello would be longer than any server takes.
#[test]
fn a_client_with_a_huge_certificate_makes_full_handshakes_and_is_let_in() {
    let names = (0..1000).map(|number| format!("{number:04}.{}.example", "x".repeat(45)));
    for way in WAYS {
        let club = Club::new();
        let courser = club.serve("required").start();
        let client = SessionThief::new(way.version, EcdsaP256, way.resume);
        client.renew();
        client.set_certificate(Some(
            &club.clients.issue(&Leaf::new(EcdsaP256).of_client("huge").names(names.clone())),
        ));
        for _ in 0..3 {
            let mut connection = client.at(courser.address(), "localhost").connect().expect("it is let in");
            connection.get(1, true).expect("the page comes");
            assert!(!connection.is_resumed());
        }
    }
}
