//! Answers of `openssl ocsp` about one certificate: those that are taken, and why others are not. They are those that fuzzing
//! begins with (`fuzz/README.md`).

use std::fs;
use std::path::Path;

use super::*;
use crate::identity::Validity;

fn corpus(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/staple");
    fs::read(folder.join(name)).expect("it is committed")
}

/// The certificate, with that of its issuer or alone.
fn site(with_issuer: bool) -> Identity {
    let pem = String::from_utf8(corpus("site.pem")).unwrap();
    let mut sections: Vec<&str> = pem.split_inclusive("-----END CERTIFICATE-----\n").collect();
    if !with_issuer {
        sections.remove(1);
    }
    let pem = sections.concat();
    Identity::from_pem(pem.as_bytes(), pem.as_bytes()).unwrap()
}

fn judged(name: &str, identity: &Identity) -> Result<Staple, StapleError> {
    let response = StapleResponse::read(corpus(name))?;
    assert_eq!(response.may_be_for(identity), !matches!(name, "foreign"), "{name}");
    response.judge(identity)
}

#[test]
fn the_issuer_and_whom_it_has_appointed_are_believed() {
    let site = site(true);
    for name in ["good", "byname_nocerts", "bykey", "delegated", "sha256", "two"] {
        let staple = judged(name, &site).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(staple.not_after - staple.not_before, 7 * 86_400, "{name}");
        assert_eq!(staple.validity(staple.not_before), Validity::Valid);
        assert_eq!(staple.validity(staple.not_after), Validity::Valid);
        assert_eq!(staple.validity(staple.not_after + 2), Validity::Expired { seconds: 2 });
        assert_eq!(staple.validity(staple.not_before - 3), Validity::NotYet { seconds: 3 });
    }
}

#[test]
fn an_answer_that_clients_would_not_take_is_refused_with_the_reason() {
    let site = site(true);
    for (name, error) in [
        ("revoked", StapleError::Revoked),
        ("unknown", StapleError::Unknown),
        ("foreign", StapleError::Foreign),
        ("unappointed", StapleError::BadSignature),
        ("stranger", StapleError::BadSignature),
        ("no_end", StapleError::NoEnd),
        ("try_later", StapleError::NotAnswered("tryLater")),
        ("cut", StapleError::Malformed),
        ("site.pem", StapleError::Malformed),
    ] {
        assert_eq!(judged(name, &site), Err(error), "{name}");
    }
}

#[test]
fn an_answer_of_which_any_byte_was_changed_is_refused_or_as_good() {
    let (site, good) = (site(true), corpus("good"));
    let original = StapleResponse::read(good.clone()).unwrap().judge(&site).unwrap();
    for place in 0..good.len() {
        let mut changed = good.clone();
        changed[place] ^= 1;
        let Ok(response) = StapleResponse::read(changed) else { continue };
        // What is not signed, the certificates that come along, may change: they are not needed here.
        if let Ok(staple) = response.judge(&site) {
            assert_eq!((staple.not_before, staple.not_after), (original.not_before, original.not_after));
        }
    }
    for end in 0..good.len() {
        assert_eq!(StapleResponse::read(good[..end].to_vec()).unwrap_err(), StapleError::Malformed);
    }
}

#[test]
fn the_issuer_may_come_with_the_chain_or_with_the_answer_and_has_to_come() {
    let alone = site(false);
    assert!(judged("good", &alone).is_ok(), "the answer brings the issuer's certificate");
    assert_eq!(judged("byname_nocerts", &alone), Err(StapleError::NoIssuer));
    assert_eq!(judged("delegated", &alone), Err(StapleError::NoIssuer));
}

#[test]
fn an_answer_about_a_certificate_with_the_same_number_is_foreign() {
    let other = crate::self_signed(&["localhost".to_owned()]).unwrap();
    let response = StapleResponse::read(corpus("good")).unwrap();
    assert!(!response.may_be_for(&other));
    let same_number = Identity { serial: site(true).serial, ..other };
    assert!(response.may_be_for(&same_number));
    assert_eq!(response.judge(&same_number), Err(StapleError::Foreign));
}

#[test]
fn a_staple_is_sent_while_it_counts() {
    let site = site(true);
    let staple = judged("outdated", &site).unwrap();
    let sent = |identity: &Identity| identity.certified_now().ocsp.is_some();
    assert!(!sent(&site) && !sent(&site.with_staple(Some(&staple))), "it was for a week of 2025");
    let current = Staple { not_after: i64::MAX, ..staple.clone() };
    let stapled = site.with_staple(Some(&current));
    assert!(sent(&stapled) && stapled.staple() == Some(&current));
    assert!(!sent(&stapled.with_staple(None)));
    let future = Staple { not_before: i64::MAX - 1, not_after: i64::MAX, ..staple };
    assert!(!sent(&site.with_staple(Some(&future))));
}

#[test]
fn a_certificate_says_itself_that_it_demands_a_staple() {
    use courser_testkit::{KeyType, Leaf, TestCa};
    let ca = TestCa::new();
    let identity = |leaf: Leaf| {
        let issued = ca.issue(&leaf);
        Identity::from_pem(issued.chain_pem.as_bytes(), issued.key_pem.as_bytes()).unwrap()
    };
    assert!(identity(Leaf::new(KeyType::EcdsaP256).with_must_staple()).must_staple);
    assert!(!identity(Leaf::new(KeyType::EcdsaP256)).must_staple);
}
