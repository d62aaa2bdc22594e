//! What was resumable yesterday, after the rules have changed: sessions that outlive a restart, under other authorities.

use std::path::PathBuf;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::SessionThief;
use courser_testkit::{Courser, Issued, Leaf, Signal, TestCa};

use super::{Outcome, refused, visit};
use crate::fleet::keygen;
use crate::support::{PSK, Site, WAYS, Way, line};

/// A program that is started again and again with the same fleet key and session file, and other rules.
struct Stage {
    site: Site,
    authorities: [PathBuf; 2],
    members: [Issued; 2],
}

impl Stage {
    fn new() -> Self {
        let site = Site::new();
        keygen(site.folder.path(), "fleet.key");
        let authorities = ["clients 1", "clients 2"].map(TestCa::named);
        let file =
            |index: usize| site.folder.write(&format!("clients-{index}.pem"), authorities[index].root_pem());
        let member = |index: usize| authorities[index].issue(&Leaf::new(EcdsaP256).of_client("alice"));
        Self { authorities: [file(0), file(1)], members: [0, 1].map(member), site }
    }

    /// Starts it: client certificates as `mode` says, by these authorities.
    fn start(&self, mode: &str, authorities: &[usize]) -> Courser {
        let folder = &self.site.folder;
        let setup = self.site.serve(&[EcdsaP256]).args(["--client-auth", mode]);
        let setup = setup.arg("--fleet-key").arg(folder.join("fleet.key"));
        let setup = setup.arg("--session-file").arg(folder.join("sessions"));
        authorities
            .iter()
            .fold(setup, |setup, &index| setup.arg("--client-ca").arg(&self.authorities[index]))
            .start()
    }

    /// Makes a session under one rule and offers it under another, with the same certificate.
    #[track_caller]
    fn change(
        &self,
        way: Way,
        before: (&str, &[usize]),
        card: Option<usize>,
        after: (&str, &[usize]),
    ) -> Outcome {
        let client = SessionThief::new(way.version, EcdsaP256, way.resume);
        client.set_certificate(card.map(|index| &self.members[index]));
        client.capture();
        let courser = self.start(before.0, before.1);
        assert_eq!(visit(&client.at(courser.address(), "localhost")), Outcome::Full);
        courser.signal(Signal::SIGTERM);
        courser.wait_stderr_line("sessions saved in");
        drop(courser);
        client.offer();
        let courser = self.start(after.0, after.1);
        let outcome = visit(&client.at(courser.address(), "localhost"));
        if outcome == Outcome::Full {
            assert_eq!(line(&courser, 1)["not_resumed"], "other_policy");
        }
        outcome
    }
}

#[test]
fn a_client_whose_authority_is_no_longer_believed_stays_out() {
    let stage = Stage::new();
    for way in WAYS {
        let outcome = stage.change(way, ("required", &[0]), Some(0), ("required", &[1]));
        assert_eq!(outcome, refused("UnknownCA"), "{}", way.session);
    }
}

#[test]
fn who_has_shown_nothing_stays_out_once_a_certificate_is_required() {
    let stage = Stage::new();
    for way in WAYS {
        let alert = if way == PSK { "CertificateRequired" } else { "HandshakeFailure" };
        for before in [("none", &[][..]), ("optional", &[0])] {
            let outcome = stage.change(way, before, None, ("required", &[0]));
            assert_eq!(outcome, refused(alert), "{} from {}", way.session, before.0);
        }
    }
}

#[test]
fn under_new_rules_a_client_that_meets_them_makes_a_full_handshake() {
    let stage = Stage::new();
    for way in WAYS {
        let before: (&str, &[usize]) = ("required", &[0]);
        for after in [("required", &[0, 1][..]), ("optional", &[0]), ("none", &[])] {
            let outcome = stage.change(way, before, Some(0), after);
            assert_eq!(outcome, Outcome::Full, "{} to {after:?}", way.session);
        }
    }
}

#[test]
fn the_same_authorities_in_another_order_or_twice_are_the_same_rule() {
    let stage = Stage::new();
    for way in WAYS {
        let outcome = stage.change(way, ("required", &[0, 1]), Some(1), ("required", &[1, 0, 1]));
        assert_eq!(outcome, Outcome::Resumed, "{}", way.session);
    }
}
