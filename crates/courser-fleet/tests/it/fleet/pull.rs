//! Sessions that a host has not got when their client comes.

use courser_fleet::Refusal;

use super::{Segment, session, sized_session};
use crate::session_id;

#[test]
fn a_host_that_missed_a_session_asks_for_it() {
    let mut segment = Segment::acquainted(&["a", "b", "c"]);
    let session = session(1);
    segment.put(0, &session);
    segment.want(1, &session.id);
    segment.want(1, &session.id);
    segment.exchange();
    assert!(segment.has(1, &session));
    assert!(!segment.has(2, &session), "who did not ask does not get it");
    assert_eq!(segment.answers(1), [true]);
    let pulls = segment.status(1).pulls;
    assert_eq!((pulls.requested, pulls.sent, pulls.found), (2, 1, 1));
}

#[test]
fn a_session_that_nobody_has_is_known_to_be_missing_at_once_and_for_a_while() {
    let mut segment = Segment::acquainted(&["a", "b", "c"]);
    segment.want(1, &session_id(1));
    segment.exchange();
    assert_eq!(segment.answers(1), [false]);
    let before = segment.status(1).sent.messages;
    segment.want(1, &session_id(1));
    segment.exchange();
    assert_eq!(segment.answers(1), [false, false]);
    assert_eq!(segment.status(1).sent.messages, before, "it is not asked for again");
}

#[test]
fn a_session_that_fits_no_datagram_is_as_good_as_missing() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let session = sized_session(1, 3000);
    segment.put(0, &session);
    segment.want(1, &session.id);
    segment.exchange();
    assert_eq!(segment.answers(1), [false], "nobody waits for it");
    assert_eq!(segment.status(0).sent.session_too_large, 1);
}

#[test]
fn peers_that_do_not_answer_are_waited_for_no_longer_than_a_second() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    segment.hosts[0].is_cut_off = true;
    segment.want(1, &session_id(1));
    segment.run(999);
    assert!(segment.answers(1).is_empty());
    segment.run(1);
    assert_eq!(segment.answers(1), [false]);
}

#[test]
fn a_host_alone_asks_nobody() {
    let mut segment = Segment::new(&["a"]);
    segment.want(0, &session_id(1));
    segment.exchange();
    assert_eq!(segment.answers(0), [false]);
}

#[test]
fn a_session_that_nobody_asked_for_is_not_taken() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let session = session(1);
    segment.put(0, &session);
    segment.hosts[1].is_cut_off = true;
    segment.want(1, &session.id);
    segment.exchange();
    segment.hosts[1].is_cut_off = false;
    // What b asked reaches a late, and so does a's answer reach b.
    let get = segment.last_to_all(1);
    segment.deliver(1, 0, &get);
    segment.now.mono += 1001;
    segment.exchange();
    segment.run(1);
    assert!(!segment.has(1, &session));
    assert_eq!(segment.refused(1, Refusal::Unsolicited), 1);
}

#[test]
fn a_peer_gets_no_more_than_its_share() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    for number in 0..2000 {
        segment.want(1, &session_id(number));
    }
    segment.exchange();
    assert!(segment.refused(0, Refusal::QuotaExceeded) > 0);
    segment.run(1001);
    assert_eq!(segment.answers(1).len(), 2000, "everyone who waits is answered");
}
