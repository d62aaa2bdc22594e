//! Lists that are looked at, those that are not, and what is found.

use std::time::{SystemTime, UNIX_EPOCH};

use courser_testkit::{Issued, KeyType, Leaf, TestCa};
use rustls::RootCertStore;
use webpki::KeyUsage;

use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;

use super::*;
use crate::serial::{SERIAL, serial};
use crate::trust_path::TrustedPaths;
use crate::{Authorities, Failure};

const NOW: u64 = 1_700_000_000;

fn time(after: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW.saturating_add_signed(after))
}

fn leaf(ca: &TestCa) -> Issued {
    ca.issue(&Leaf::new(KeyType::EcdsaP256).of_client("someone"))
}

fn of(texts: &[String]) -> Revocation {
    let lists = texts.iter().flat_map(|text| RevocationList::read(text.as_bytes()).unwrap());
    Revocation {
        lists: lists.collect(),
        depth: RevocationDepth::Chain,
        accepts_unknown: false,
        accepts_expired: false,
    }
}

/// What is said of a certificate when it is shown, and when its session is resumed: `None` where it is accepted.
fn judged(ca: &TestCa, issued: &Issued, revocation: &Revocation) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(ca.root()).unwrap();
    let paths = TrustedPaths::new(roots, Some(revocation.clone()));
    let chain = crate::pem::chain(issued.chain_pem.as_bytes()).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    let shown = paths.verify(&chain[0], &chain[1..], KeyUsage::client_auth(), now);
    let resumed = paths.check_session(&chain, now);
    let text = |error: Option<rustls::Error>| error.map(|error| Failure::from(error).detail);
    let (shown, resumed) = (text(shown.err()), text(resumed.err()));
    assert_eq!(shown, resumed, "a session is judged as its certificate is");
    shown
}

#[test]
fn a_revoked_certificate_is_refused_and_others_are_not() {
    let ca = TestCa::new();
    let [good, bad] = [leaf(&ca), leaf(&ca)];
    let revocation = of(&[ca.revocation_list(&[&leaf(&ca), &bad, &leaf(&ca)])]);
    assert_eq!(revocation.lists[0].len(), 3);
    assert_eq!(judged(&ca, &good, &revocation), None);
    assert!(judged(&ca, &bad, &revocation).unwrap().starts_with("revoked: "));
    let older_beside_it = of(&[ca.revocation_list(&[]), ca.revocation_list(&[&bad])]);
    assert!(judged(&ca, &bad, &older_beside_it).unwrap().starts_with("revoked: "));
}

#[test]
fn the_depth_says_whether_intermediates_are_looked_up() {
    let ca = TestCa::with_intermediate();
    let issued = leaf(&ca);
    let chain = of(&[ca.revocation_list(&[]), ca.revocation_list_of_root(true)]);
    assert!(judged(&ca, &issued, &chain).unwrap().starts_with("revoked: "));
    let good = of(&[ca.revocation_list(&[]), ca.revocation_list_of_root(false)]);
    assert_eq!(judged(&ca, &issued, &good), None);
    let short = of(&[ca.revocation_list(&[])]);
    assert!(judged(&ca, &issued, &short).unwrap().starts_with("revocation unknown: "));
    assert_eq!(judged(&ca, &issued, &Revocation { depth: RevocationDepth::Leaf, ..chain }), None);
    assert_eq!(judged(&ca, &issued, &Revocation { accepts_unknown: true, ..short }), None);
}

#[test]
fn a_list_that_is_overdue_says_nothing_of_who_is_not_on_it() {
    let ca = TestCa::new();
    let [good, bad] = [leaf(&ca), leaf(&ca)];
    let overdue = of(&[ca.revocation_list_until(&[&bad], time(-1))]);
    assert!(judged(&ca, &good, &overdue).unwrap().contains("due for renewal 1 s ago"));
    assert!(judged(&ca, &bad, &overdue).unwrap().starts_with("revoked: "));
    let accepted = Revocation { accepts_expired: true, ..overdue };
    assert_eq!(judged(&ca, &good, &accepted), None);
    assert!(judged(&ca, &bad, &accepted).unwrap().starts_with("revoked: "));
}

#[test]
fn a_session_holds_no_longer_than_the_list() {
    let ca = TestCa::new();
    let mut roots = RootCertStore::empty();
    roots.add(ca.root()).unwrap();
    let revocation = of(&[ca.revocation_list_until(&[], time(60))]);
    let paths = TrustedPaths::new(roots, Some(revocation));
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    let end = paths.verify(&leaf(&ca).certificate, &[], KeyUsage::client_auth(), now).unwrap();
    assert_eq!(end, UnixSeconds(NOW + 60));
}

/// Whoever writes the file has not the authority's key.
#[test]
fn a_list_of_the_same_name_and_another_key_is_no_list() {
    let (ca, forger) = (TestCa::named("one name"), TestCa::named("one name"));
    let issued = leaf(&ca);
    let forged = of(&[forger.revocation_list(&[])]);
    assert!(judged(&ca, &issued, &forged).unwrap().contains("not signed by the authority"));
    let authorities = [&ca, &forger].map(|ca| Authorities::from_pem(ca.root_pem().as_bytes()).unwrap());
    let [list] = &forged.lists[..] else { panic!("one list") };
    assert_eq!(list.is_signed_by(&[&authorities[0]]), Some(false));
    assert_eq!(list.is_signed_by(&[&authorities[0], &authorities[1]]), Some(true));
    let other = Authorities::from_pem(TestCa::named("other").root_pem().as_bytes()).unwrap();
    assert_eq!(list.is_signed_by(&[&other]), None);
    // Once the signer is known, another key of that name is none, and the bytes are gone.
    assert!(list.content().unverified.lock().unwrap().is_none());
    assert!(judged(&ca, &issued, &forged).unwrap().contains("not signed by the authority"));
    assert_eq!(judged(&forger, &leaf(&forger), &forged), None);
}

#[test]
fn serial_numbers_are_numbers() {
    assert_eq!(serial(&[0, 0, 1, 2]), serial(&[1, 2]));
    assert_ne!(serial(&[1, 0]), serial(&[1]));
    assert_eq!(serial(&[0; 40]), Some([0; SERIAL]));
    assert!(serial(&[1; 20]).is_some() && serial(&[1; 21]).is_none());
}

#[test]
fn what_is_no_whole_list_is_refused() {
    let ca = TestCa::new();
    let pem = ca.revocation_list(&[&leaf(&ca)]);
    let der = CertificateRevocationListDer::from_pem_slice(pem.as_bytes()).unwrap();
    assert_eq!(RevocationList::read(&der).unwrap()[0].len(), 1);
    assert_eq!(RevocationList::read((pem.clone() + &pem).as_bytes()).unwrap().len(), 2);
    for end in 0..der.len() {
        assert!(RevocationList::read(&der[..end]).is_err(), "{end} of {} bytes", der.len());
    }
    let certificate = RevocationList::read(&ca.root()).unwrap_err().to_string();
    assert!(certificate.contains("no list"), "{certificate}");
    assert!(
        RevocationList::read(ca.root_pem().as_bytes()).unwrap_err().to_string().contains("holds no list")
    );
}

/// The figures of docs/client-certificates.md: run it alone, with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement of some seconds"]
fn a_million_entries() {
    const MILLION: u64 = 1_000_000;
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let ca = TestCa::new();
    let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let numbered = |number| {
        let (certificate, serial) = (CertificateDer::from(Vec::new()), spread(number));
        Issued { chain_pem: String::new(), key_pem: String::new(), certificate, serial }
    };
    let revoked: Vec<_> = (0..MILLION).map(numbered).collect();
    let pem = ca.revocation_list(&revoked.iter().collect::<Vec<_>>());
    drop(revoked);
    let der = CertificateRevocationListDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
    drop(pem);
    let (before, begun) = (resident(), std::time::Instant::now());
    let lists = RevocationList::read(&der).unwrap();
    let read = begun.elapsed();
    let roots = Authorities::from_pem(ca.root_pem().as_bytes()).unwrap();
    assert_eq!(lists[0].is_signed_by(&[&roots]), Some(true));
    let verified = begun.elapsed() - read;
    println!("{} bytes of DER: read in {read:?}, verified in {verified:?}", der.len());
    println!("{} bytes more are resident", resident().saturating_sub(before));
    let begun = std::time::Instant::now();
    for number in 0..1000 {
        assert!(lists[0].content().contains(&spread(number).to_be_bytes()));
    }
    println!("a look-up takes {:?}", begun.elapsed() / 1000);
}
