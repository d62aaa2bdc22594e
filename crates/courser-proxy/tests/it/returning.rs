//! Clients that return to another host.

use courser_session::{Cursor, ResumptionFailure};
use courser_sharing::{Rate, Sharing};
use courser_testkit::tls_client::Resume;

use crate::client::{Client, Impostor};
use crate::host::Host;
use crate::member::{now, place, policy};
use crate::wait_for;

fn pair() -> [Host; 2] {
    pair_with(|_| {})
}

/// Two that wait for each other's answer however busy the machine is.
fn patient_pair() -> [Host; 2] {
    pair_with(|sharing| sharing.pull_deadline = crate::PATIENCE)
}

fn pair_with(change: fn(&mut Sharing)) -> [Host; 2] {
    let (a, b) = (place(), place());
    let hosts = [Host::member_with("a", a.0, &[b.1], change), Host::member_with("b", b.0, &[a.1], change)];
    hosts.iter().for_each(|host| host.wait_for_peers(1));
    hosts
}

#[test]
fn a_session_made_at_one_host_is_resumed_at_the_other() {
    let [a, b] = pair();
    let mut client = Client::by_id();
    assert!(!client.visit(a.address), "the first handshake is full");
    b.wait_for_sessions(1);
    assert!(client.visit(b.address), "it returns to the other host");
    assert!(client.visit(a.address) && client.visit(b.address));
    let [a, b] = [a, b].map(|host| host.counts(2));
    assert_eq!((a.full, a.by_id, a.by_remote_id), (1, 1, 0));
    assert_eq!((b.full, b.by_id, b.by_remote_id), (0, 0, 2));
    assert_eq!((a.lookups_started, b.lookups_started), (0, 0), "it was pushed");
}

#[test]
fn a_session_that_was_missed_is_fetched_before_the_handshake() {
    let (a, b) = (place(), place());
    let peers = [a.1, b.1];
    let a = Host::member("a", a.0, &peers);
    let mut client = Client::by_id();
    client.visit(a.address);
    let pushed = || (a.fleet().status().unwrap().member.sent.pushed == 1).then_some(());
    wait_for("the push, while nobody listens", pushed);
    let late = Host::member_with("b", b.0, &peers, |sharing| sharing.pull_deadline = crate::PATIENCE);
    late.wait_for_peers(1);
    a.wait_for_peers(1);
    assert_eq!(late.cache.stats().entries, 0);
    assert!(client.visit(late.address));
    let counts = late.counts(1);
    assert_eq!((counts.lookups_started, counts.found_in_fleet, counts.by_remote_id), (1, 1, 1));
    assert!(client.visit(late.address), "and stays");
    assert_eq!(late.counts(2).lookups_started, 1);
}

#[test]
fn what_nobody_has_is_a_full_handshake_that_says_so() {
    let [a, _b] = patient_pair();
    let mut client = Client::by_id();
    client.visit(Host::alone().address);
    assert!(!client.visit(a.address));
    let counts = a.counts(1);
    assert_eq!(
        (counts.lookups_started, counts.full, counts.missed(ResumptionFailure::NotFoundRemotely)),
        (1, 1, 1)
    );
}

#[test]
fn what_nobody_has_is_not_asked_for_again_when_its_client_tries_again() {
    let [a, _b] = patient_pair();
    let mut client = Client::by_id();
    client.visit(Host::alone().address);
    // Its first connection is lost when the host has answered: so it still has its old session.
    Impostor::say(a.address, &client.hello()).hear();
    let asked = a.counts(0);
    assert_eq!((asked.lookups_started, asked.lookups_suppressed), (1, 0));
    assert!(!client.visit(a.address));
    let counts = a.counts(1);
    assert_eq!((counts.lookups_started, counts.lookups_suppressed, counts.full), (1, 1, 1));
    assert_eq!(counts.missed(ResumptionFailure::NotFoundRemotely), 1, "what was answered a moment ago");
    assert_eq!(a.fleet().status().unwrap().member.pulls.requested, 1);
}

#[test]
fn a_host_without_a_fleet_asks_nobody() {
    let (a, b) = (Host::alone(), Host::alone());
    let mut client = Client::by_id();
    client.visit(a.address);
    assert!(!client.visit(b.address));
    assert_eq!((b.counts(1).lookups_started, b.counts(1).missed(ResumptionFailure::NotFound)), (0, 1));
}

#[test]
fn tickets_and_tls_1_3_are_neither_pushed_nor_asked_for() {
    let [a, b] = pair();
    for (versions, resume) in [(vec![0x0303], Resume::Ticket), (vec![0x0304, 0x0303], Resume::Ticket)] {
        let mut client = Client::new(&versions, resume);
        assert!(!client.visit(a.address));
        client.visit(b.address);
        client.visit(a.address);
    }
    for host in [&a, &b] {
        assert_eq!((host.counts(2).lookups_started, host.cache.stats().entries), (0, 0));
        assert_eq!(host.fleet().status().unwrap().member.sent.pushed, 0);
    }
}

#[test]
fn a_client_that_ends_with_an_alert_ends_its_session_everywhere() {
    let [a, b] = pair();
    let mut client = Client::by_id();
    client.visit(a.address);
    b.wait_for_sessions(1);
    let id = a.cache.export(Cursor::START, usize::MAX, now()).0[0].id;
    client.leave_angry(b.address);
    for host in [&b, &a] {
        let deleted =
            || (host.cache.peek(&id, &policy(), now()) == Err(ResumptionFailure::Deleted)).then_some(());
        wait_for("the deletion", deleted);
    }
    assert!(!client.visit(a.address));
    assert_eq!(a.counts(2).missed(ResumptionFailure::Deleted), 1, "it was offered again");
}

#[test]
fn a_client_that_ends_session_after_session_leaves_few_tombstones() {
    let [a, b] = pair();
    // The backend has room for so many in its queue, and accepts none.
    for _ in 0..115 {
        Client::by_id().leave_angry(a.address);
    }
    let deleted = || b.fleet().status().unwrap().member.received.deleted;
    wait_for("the deletions", || (deleted() == 115).then_some(()));
    for host in [&a, &b] {
        let stats = host.cache.stats();
        assert_eq!((stats.entries, stats.tombstones), (0, 100), "all sessions are gone");
    }
}

#[test]
fn a_stranger_cannot_end_a_session_whose_id_it_has_seen() {
    let [a, b] = pair();
    for (number, (forgery, records)) in forgeries().into_iter().enumerate() {
        let mut owner = Client::by_id();
        owner.visit(a.address);
        b.wait_for_sessions(2 * number + 1);
        let mut impostor = Impostor::say(a.address, &owner.hello());
        let flight = [impostor.hear(), impostor.hear(), impostor.hear()].map(|(kind, _)| kind);
        assert_eq!(flight, [HANDSHAKE, CHANGE_CIPHER_SPEC, HANDSHAKE], "the host resumes the session");
        impostor.end_with(&records);
        assert!(owner.visit(a.address), "{forgery} ended the session");
        // What this host had to tell of it would be there before what it tells of another session.
        Client::by_id().visit(a.address);
        b.wait_for_sessions(2 * number + 2);
        assert!(owner.visit(b.address), "{forgery} ended the session on the other host");
    }
}

/// What one can say who has a client's ClientHello but not its master secret, once the host has agreed to resume.
fn forgeries() -> [(&'static str, Vec<u8>); 4] {
    let alert = record(ALERT, &[2, 40]);
    let finished = [record(CHANGE_CIPHER_SPEC, &[1]), record(HANDSHAKE, &[0x5a; 40])].concat();
    [
        ("an alert in the clear", alert.clone()),
        ("a Finished under another key", finished.clone()),
        ("both", [finished, alert].concat()),
        (
            "an alert under another key",
            [record(CHANGE_CIPHER_SPEC, &[1]), record(ALERT, &[0x5a; 26])].concat(),
        ),
    ]
}

/// A record of TLS 1.2 (RFC 5246, section 6.2.1).
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3, 0, u8::try_from(content.len()).unwrap()], content].concat()
}

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

#[test]
fn a_client_that_asks_too_often_is_served_without_asking() {
    let (a, b) = (place(), place());
    let none = Rate { per_second: 0, burst: 0 };
    let host = Host::member_with("a", a.0, &[b.1], |sharing| sharing.per_source = none);
    let mut client = Client::by_id();
    client.visit(Host::alone().address);
    assert!(!client.visit(host.address));
    let counts = host.counts(1);
    assert_eq!((counts.lookups_started, counts.lookups_suppressed), (0, 1));
    assert_eq!(counts.missed(ResumptionFailure::NotFound), 1);
}
