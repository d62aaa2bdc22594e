//! A host that starts, among others that have sessions.

use courser_fleet::{MemberSettings, StateTransferStatus};

use super::{Segment, keys, session, settings};

fn joiner(segment: &mut Segment) -> usize {
    segment.start(MemberSettings { state_transfer: true, ..settings("joiner", 9) }, keys())
}

#[test]
fn a_host_that_starts_gets_what_the_richest_peer_has() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let sessions: Vec<_> = (0..3000).map(session).collect();
    sessions.iter().for_each(|session| segment.put(1, session));
    segment.put(0, &sessions[0]);
    segment.run(1000);
    let joiner = joiner(&mut segment);
    segment.run(3500);
    assert!(sessions.iter().all(|session| segment.has(joiner, session)));
    let status = segment.status(joiner);
    assert_eq!((status.state_transfer, status.transferred), (StateTransferStatus::Done, 3000));
    let sent = segment.status(0).sent.bytes;
    assert!(sent <= 5000, "a was not asked, and sent {sent} bytes");
}

#[test]
fn another_peer_is_asked_when_one_falls_silent() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let sessions: Vec<_> = (0..300).map(session).collect();
    sessions.iter().for_each(|session| segment.put(1, session));
    sessions[..100].iter().for_each(|session| segment.put(0, session));
    segment.run(1000);
    let joiner = joiner(&mut segment);
    segment.run(1200);
    segment.hosts[1].is_cut_off = true;
    segment.run(2000);
    assert!(sessions[..100].iter().all(|session| segment.has(joiner, session)));
    assert_eq!(segment.status(joiner).state_transfer, StateTransferStatus::Done);
}

#[test]
fn a_part_that_is_lost_is_not_waited_for() {
    let mut segment = Segment::acquainted(&["a"]);
    let sessions: Vec<_> = (0..1000).map(session).collect();
    sessions.iter().for_each(|session| segment.put(0, session));
    segment.run(1000);
    let joiner = joiner(&mut segment);
    segment.run(1000);
    segment.lose_every = Some(10);
    segment.run(3500);
    let there = sessions.iter().filter(|session| segment.has(joiner, session)).count();
    assert!((800..1000).contains(&there), "{there} of 1000, with a tenth of the datagrams lost");
    assert_eq!(segment.status(joiner).state_transfer, StateTransferStatus::Done);
}

#[test]
fn a_host_that_finds_nobody_stops_asking() {
    let mut segment = Segment::new(&[]);
    let joiner = joiner(&mut segment);
    segment.run(2000);
    assert_eq!(segment.status(joiner).state_transfer, StateTransferStatus::Waiting);
    segment.run(60_000);
    assert_eq!(segment.status(joiner).state_transfer, StateTransferStatus::NoPeer);
}
