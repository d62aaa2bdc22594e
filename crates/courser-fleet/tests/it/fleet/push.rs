//! Sessions that are made on one host and resumed on another.

use std::time::Duration;

use courser_fleet::{Event, PeerChange, Refusal};
use courser_session::{Lifespan, Provenance, SharedSession, UnixSeconds};

use super::{Segment, address, keys_of_all, session, settings, sized_session};
use crate::{HOUR, NOW, policy};

#[test]
fn a_session_is_on_every_host_two_milliseconds_later() {
    let mut segment = Segment::acquainted(&["a", "b", "c"]);
    let made = segment.make(0, 1);
    segment.run(2);
    assert!(segment.has(1, &made) && segment.has(2, &made));
    let seconds = segment.now.wall.seconds();
    let stored = segment.hosts[1].cache.get(&made.id, &made.policy, seconds).unwrap();
    assert_eq!(stored.origin, Provenance::Remote);
}

#[test]
fn members_know_each_other_by_name_after_a_heartbeat() {
    let mut segment = Segment::new(&["a", "b", "c"]);
    segment.run(1200);
    for (host, others) in [(0, ["b", "c"]), (1, ["a", "c"]), (2, ["a", "b"])] {
        for other in others {
            let peer = segment.peer(host, other);
            assert!(!peer.is_silent && !peer.is_clock_off && peer.lost == 0);
        }
        let joined = |event: &&Event| matches!(event, Event::Peer { change: PeerChange::Joined, .. });
        assert_eq!(segment.hosts[host].events.iter().filter(joined).count(), 2);
    }
}

#[test]
fn many_sessions_share_a_datagram() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let before = segment.status(0).sent.messages;
    let made: Vec<_> = (0..60).map(|number| segment.make(0, number)).collect();
    segment.run(2);
    assert!(made.iter().all(|session| segment.has(1, session)));
    let messages = segment.status(0).sent.messages - before;
    assert!(messages <= 60 / 6 + 1, "{messages} messages for 60 sessions of 150 bytes");
    assert_eq!(segment.status(0).sent.pushed, 60);
    assert_eq!(segment.status(1).received.taken, 60);
}

#[test]
fn sessions_of_several_policies_keep_each_its_own() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let hosts = ["one.example", "two.example", "one.example", "one.example", "three.example"];
    let made = hosts.iter().zip(10..).map(|(host, number)| {
        let session = SharedSession { policy: policy(host), ..session(number) };
        segment.put(0, &session);
        let now = segment.now;
        segment.hosts[0].member.push(&session, now);
        session
    });
    let made: Vec<_> = made.collect();
    segment.run(2);
    assert!(made.iter().all(|session| segment.has(1, session)));
}

#[test]
fn a_session_that_fits_no_datagram_is_counted() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let now = segment.now;
    segment.hosts[0].member.push(&sized_session(1, 1400), now);
    segment.hosts[0].member.push(&sized_session(2, 100_000), now);
    segment.run(2);
    assert_eq!(segment.status(0).sent.session_too_large, 2);
    assert_eq!(segment.status(1).received.taken, 0);
}

#[test]
fn a_session_that_is_removed_is_gone_everywhere_without_a_tombstone() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    for (number, ms) in [(1, 5), (2, 0)] {
        let made = segment.make(0, number);
        segment.run(ms);
        let now = segment.now;
        segment.hosts[0].member.remove(&made.id, now);
        segment.run(5);
        let stats = segment.hosts[1].cache.stats();
        assert_eq!((stats.entries, stats.tombstones, stats.removed), (0, 0, number), "after {ms} ms");
    }
}

#[test]
fn a_deleted_session_is_gone_everywhere_and_a_late_copy_does_not_revive_it() {
    let mut segment = Segment::acquainted(&["a", "b", "c"]);
    segment.hosts[2].is_cut_off = true;
    let made = segment.make(0, 1);
    segment.run(2);
    let new = segment.last_to_all(0);
    segment.hosts[2].is_cut_off = false;
    segment.delete(1, &made);
    segment.exchange();
    assert!((0..3).all(|host| !segment.has(host, &made)));
    segment.deliver(0, 2, &new);
    assert!(!segment.has(2, &made), "its message came after the one that deleted it");
    assert_eq!(segment.status(2).received.tombstoned, 1);
}

#[test]
fn no_host_lets_a_session_live_longer_than_its_own_settings_say() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let lifespan = Lifespan::new(NOW, 24 * HOUR);
    let immortal =
        SharedSession { lifespan: Lifespan { expires: UnixSeconds(u64::MAX), ..lifespan }, ..session(1) };
    let now = segment.now;
    segment.hosts[0].member.push(&immortal, now);
    segment.run(2);
    let stored = segment.hosts[1].cache.get(&immortal.id, &immortal.policy, NOW).unwrap();
    assert_eq!(stored.lifespan.expires, NOW.plus(2 * HOUR));
}

#[test]
fn a_host_that_restarts_proves_that_it_lives_and_goes_on() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    segment.make(0, 1);
    segment.run(2);
    segment.restart(0, settings("a", 2));
    segment.run(5);
    let made = segment.make(0, 2);
    segment.run(2);
    assert!(segment.has(1, &made));
    segment.run(2000);
    let restarted = |event: &Event| matches!(event, Event::Peer { change: PeerChange::Restarted, label, .. } if label == "a");
    assert!(segment.hosts[1].events.iter().any(restarted), "reported by its name");
    assert_eq!(segment.status(1).peers.len(), 1);
}

/// Its clock was ahead when it started before.
#[test]
fn a_host_that_starts_with_an_earlier_clock_is_taken_once_its_former_start_is_silent() {
    let mut segment = Segment::new(&["a", "b"]);
    segment.restart(0, settings("a", 500_000));
    segment.run(10);
    segment.restart(0, settings("a", 3));
    segment.run(5000);
    assert!(segment.refused(1, Refusal::StaleIncarnation) > 0);
    segment.run(7000);
    let made = segment.make(0, 2);
    segment.run(2);
    assert!(segment.has(1, &made));
}

#[test]
fn a_host_that_is_cut_off_is_told_and_told_again_when_it_is_back() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    segment.run(1200);
    segment.hosts[0].is_cut_off = true;
    segment.run(5000);
    assert!(segment.peer(1, "a").is_silent);
    segment.hosts[0].is_cut_off = false;
    segment.run(3000);
    let event = |change| Event::Peer { label: "a".to_owned(), address: address(0), change };
    assert!(segment.hosts[1].events.contains(&event(PeerChange::Recovered)));
    assert!(segment.peer(1, "a").lost >= 4, "heartbeats that did not come");
    let made = segment.make(0, 1);
    segment.run(2);
    assert!(segment.has(1, &made));
}

/// Each host in turn from the old secret to both, from there to the new one first, and then to the new one alone.
#[test]
fn a_fleet_is_given_another_secret_host_by_host_and_shares_on() {
    let (old, new) = ((1, 1), (2, 2));
    let steps = [vec![old, new], vec![new, old], vec![new]];
    let mut segment = Segment::new(&[]);
    for name in ["a", "b"] {
        segment.start(settings(name, 1), keys_of_all(&[old]));
    }
    segment.run(10);
    for (round, secrets) in (2..).zip(&steps) {
        for (host, name) in ["a", "b"].into_iter().enumerate() {
            segment.restart_with(host, settings(name, round), keys_of_all(secrets));
            segment.run(10);
            let number = round * 10 + u64::try_from(host).unwrap();
            let made = [segment.make(0, number), segment.make(1, number + 1000)];
            segment.run(2);
            assert!(segment.has(1, &made[0]) && segment.has(0, &made[1]), "round {round}, {name} anew");
        }
    }
}

#[test]
fn keys_roll_under_members_that_talk() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let first = segment.status(0).epoch;
    for round in 0..3 {
        segment.now.wall.0 += u64::try_from(Duration::from_secs(3600).as_millis()).unwrap();
        segment.now.mono += 3_600_000;
        segment.run(1200);
        let SharedSession { policy, id, state, .. } = session(100 + round);
        let lifespan = Lifespan::new(segment.now.wall.seconds(), HOUR);
        let made = SharedSession { policy, id, state, lifespan };
        let now = segment.now;
        segment.hosts[0].member.push(&made, now);
        segment.run(2);
        assert!(segment.has(1, &made), "round {round}");
    }
    assert_eq!(segment.status(0).epoch, first + 3);
    assert_eq!(segment.refused(1, Refusal::UnknownEpoch), 0);
}
