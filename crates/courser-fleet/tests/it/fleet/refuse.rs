//! Datagrams that change nothing: each for its reason, and with nothing in the cache afterwards.

use courser_fleet::{
    AddressRange, Allowed, AnyMessage, Event, MemberSettings, Now, PeerChange, Rate, Refusal, UnixMillis,
};

use super::{Host, Segment, address, keys, keys_of, session, settings};

/// Two members that know each other, and the message in which the first pushed a session that the second did not get.
fn with_message() -> (Segment, Vec<u8>) {
    let mut segment = Segment::acquainted(&["a", "b"]);
    segment.hosts[1].is_cut_off = true;
    segment.make(0, 1);
    segment.run(2);
    segment.hosts[1].is_cut_off = false;
    let message = segment.last_to_all(0);
    (segment, message)
}

fn entries(host: &Host) -> usize {
    host.cache.stats().entries
}

#[test]
fn a_message_counts_once() {
    let (mut segment, message) = with_message();
    segment.deliver(0, 1, &message);
    assert!(segment.has(1, &session(1)));
    assert!(segment.hosts[1].cache.remove(&session(1).id));
    segment.deliver(0, 1, &message);
    assert_eq!(segment.refused(1, Refusal::Replayed), 1);
    assert_eq!(entries(&segment.hosts[1]), 0);
}

#[test]
fn no_byte_of_a_message_can_be_changed() {
    let (mut segment, message) = with_message();
    let refused = |segment: &Segment| segment.status(1).refused.total();
    for at in 0..message.len() {
        let before = refused(&segment);
        let mut changed = message.clone();
        changed[at] ^= 1 << (at % 8);
        segment.deliver(0, 1, &changed);
        assert_eq!(refused(&segment), before + 1, "byte {at}");
        segment.deliver(0, 1, &message[..at]);
        assert_eq!(refused(&segment), before + 2, "cut at {at}");
    }
    assert_eq!(entries(&segment.hosts[1]), 0);
    segment.deliver(0, 1, &message);
    assert!(segment.has(1, &session(1)), "the message itself still counts");
}

#[test]
fn a_member_that_has_just_started_takes_no_recording() {
    let (mut segment, message) = with_message();
    segment.restart(1, settings("b", 2));
    segment.hosts[0].is_cut_off = true;
    segment.deliver(0, 1, &message);
    assert_eq!(segment.refused(1, Refusal::UnverifiedPeer), 1);
    assert_eq!(entries(&segment.hosts[1]), 0);
    assert!(segment.status(1).peers.is_empty());
}

#[test]
fn a_recorded_proof_proves_nothing() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let recorded = std::mem::take(&mut segment.sent);
    segment.hosts[0].is_cut_off = true;
    segment.restart(1, settings("b", 2));
    for (from, _, bytes) in recorded.iter().filter(|(from, ..)| *from == 0) {
        segment.deliver(*from, 1, bytes);
    }
    segment.exchange();
    assert!(segment.status(1).peers.is_empty());
    assert!(segment.refused(1, Refusal::StaleChallenge) > 0);
}

/// Also to the same start of a host that asked for it, once that has asked for something else.
#[test]
fn a_proof_is_good_for_a_moment() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let recorded = std::mem::take(&mut segment.sent);
    segment.restart(0, settings("a", 2));
    segment.run(5);
    let present = segment.status(1).peers[0].incarnation;
    segment.hosts[0].is_cut_off = true;
    segment.run(25_000);
    for (from, _, bytes) in recorded.iter().filter(|(from, ..)| *from == 0) {
        segment.deliver(*from, 1, bytes);
    }
    assert_eq!(segment.refused(1, Refusal::StaleChallenge), 1);
    assert_eq!(segment.status(1).peers[0].incarnation, present, "its former start did not come back");
}

#[test]
fn a_recording_of_a_former_start_is_refused() {
    let (mut segment, message) = with_message();
    segment.restart(0, settings("a", 2));
    segment.run(5);
    segment.deliver(0, 1, &message);
    assert_eq!(segment.refused(1, Refusal::StaleIncarnation), 1);
    assert_eq!(entries(&segment.hosts[1]), 0);
}

#[test]
fn a_message_that_was_held_back_is_refused_and_the_clock_not_blamed() {
    let (mut segment, message) = with_message();
    segment.run(61_000);
    segment.deliver(0, 1, &message);
    assert_eq!(segment.refused(1, Refusal::ClockSkew), 1);
    assert!(!segment.peer(1, "a").is_clock_off);
    assert_eq!(entries(&segment.hosts[1]), 0);
}

#[test]
fn a_message_that_was_held_back_moves_and_revives_nobody() {
    let (mut segment, message) = with_message();
    segment.deliver(7, 1, &message);
    assert_eq!(segment.status(1).peers[0].address, address(7), "it has moved, as far as can be seen");
    let (mut segment, message) = with_message();
    segment.hosts[0].is_cut_off = true;
    segment.run(61_000);
    assert!(segment.status(1).peers[0].is_silent);
    segment.deliver(7, 1, &message);
    let peer = &segment.status(1).peers[0];
    assert!(peer.is_silent && peer.address == address(0), "{peer:?}");
}

#[test]
fn a_host_an_hour_off_is_named_and_gives_nothing() {
    let mut segment = Segment::new(&["a", "b"]);
    for _ in 0..3 {
        // a's clock is an hour ahead, which an epoch's end between the two would hide.
        for _ in 0..1200 {
            step_with_offset(&mut segment, 0, 1_800_000);
        }
        segment.make(0, 7);
    }
    let peer = segment.peer(1, "a");
    assert!(peer.is_clock_off);
    assert!((1_799_000..=1_800_000).contains(&peer.clock_ahead_ms), "{}", peer.clock_ahead_ms);
    assert_eq!(entries(&segment.hosts[1]), 0);
    let off = |event: &Event| matches!(event, Event::Peer { change: PeerChange::ClockOff { .. }, .. });
    assert_eq!(segment.hosts[1].events.iter().filter(|event| off(event)).count(), 1, "reported once");
    for _ in 0..2500 {
        step_with_offset(&mut segment, 0, 0);
    }
    assert!(!segment.peer(1, "a").is_clock_off, "its clock was set");
}

/// A millisecond in which one host's clock is ahead.
fn step_with_offset(segment: &mut Segment, ahead: usize, ms: u64) {
    let right = segment.now;
    let wrong = Now { wall: UnixMillis(right.wall.0 + ms), ..right };
    for host in 0..segment.hosts.len() {
        segment.hosts[host].member.tick(if host == ahead { wrong } else { right });
    }
    while let Some((from, _, bytes)) = segment.next() {
        for host in (0..segment.hosts.len()).filter(|host| *host != from) {
            let now = if host == ahead { wrong } else { right };
            segment.hosts[host].member.receive(address(from), &mut bytes.clone(), now);
        }
    }
    for host in &mut segment.hosts {
        host.events.extend(std::iter::from_fn(|| host.member.poll_event()));
    }
    segment.now = Now { wall: UnixMillis(right.wall.0 + 1), mono: right.mono + 1 };
}

#[test]
fn what_is_not_of_this_fleet_changes_nothing() {
    let mut segment = Segment::new(&["a"]);
    segment.start(settings("b", 1), keys_of(2, 2));
    segment.start(settings("c", 1), keys_of(1, 3));
    segment.run(10);
    assert_eq!(segment.refused(0, Refusal::OtherFleet), 1);
    assert_eq!(segment.refused(0, Refusal::Forged), 1);
    assert!(segment.status(0).peers.is_empty());
    assert_eq!(segment.status(0).refused.last_source(Refusal::OtherFleet), Some(address(1)));
}

#[test]
fn two_hosts_of_one_name_are_told_apart_from_an_echo() {
    let mut segment = Segment::new(&["a"]);
    segment.start(settings("a", 2), keys());
    segment.run(10);
    assert_eq!(segment.refused(0, Refusal::DuplicateName), 1);
    let own = segment.last_to_all(0);
    segment.deliver(0, 0, &own);
    assert_eq!(segment.refused(0, Refusal::OwnEcho), 1);
}

#[test]
fn sources_are_limited_by_the_list_and_peers_by_their_rate() {
    let mut segment = Segment::new(&["a", "b"]);
    let allowed = vec![Allowed::Range(AddressRange::new([192, 0, 2, 1].into(), 32).unwrap())];
    let peer_rate = Rate { per_second: 1, burst: 5 };
    segment.start(MemberSettings { allowed, peer_rate, ..settings("c", 1) }, keys());
    segment.run(10);
    assert!(segment.refused(2, Refusal::NotAllowed) > 0);
    assert_eq!(segment.status(2).peers.len(), 1);
    for number in 0..10 {
        segment.make(0, number);
        segment.run(2);
    }
    assert!(segment.refused(2, Refusal::RateLimited) > 0);
}

#[test]
fn what_a_later_release_says_is_passed_over() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    let status = segment.status(0);
    let message = |kind, sequence, content| AnyMessage {
        sender: status.id,
        incarnation: status.incarnation,
        to: None,
        sequence,
        kind,
        sent: segment.now.wall,
        content,
    };
    let seconds = segment.now.wall.seconds();
    let unknown = message(200, 1000, b"news").seal(&keys(), seconds);
    let mut heartbeat = vec![1, b'a'];
    heartbeat.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 42]);
    heartbeat.extend_from_slice(&[0; 16]);
    heartbeat.extend_from_slice(b"what only a later release knows");
    let longer = message(8, 1001, &heartbeat).seal(&keys(), seconds);
    let malformed = message(1, 1002, b"\x01").seal(&keys(), seconds);
    let mut version_3 = longer.clone();
    version_3[4] = 3;
    for bytes in [unknown, longer, malformed, version_3] {
        segment.deliver(0, 1, &bytes);
    }
    for refusal in [Refusal::UnknownType, Refusal::Malformed, Refusal::OtherVersion] {
        assert_eq!(segment.refused(1, refusal), 1, "{refusal}");
    }
    assert_eq!(segment.peer(1, "a").entries, 42);
}

#[test]
fn a_message_for_another_member_does_not_open() {
    let mut segment = Segment::acquainted(&["a", "b", "c"]);
    segment.put(0, &session(1));
    segment.sent.clear();
    segment.want(1, &session(1).id);
    segment.exchange();
    let answers: Vec<_> = segment.sent.iter().filter(|(from, ..)| *from == 0).cloned().collect();
    assert_eq!(answers.len(), 1);
    segment.deliver(0, 2, &answers[0].2);
    assert_eq!(segment.refused(2, Refusal::Forged), 1);
}

#[test]
fn no_more_peers_than_can_be() {
    let names: Vec<_> = (0..70).map(|number| format!("host {number}")).collect();
    let mut segment = Segment::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    segment.run(10);
    assert_eq!(segment.status(0).peers.len(), 64);
    assert!(segment.refused(0, Refusal::TooManyPeers) > 0);
    (1..70).for_each(|host| segment.hosts[host].is_cut_off = segment.peer_is_known(host));
    segment.run(12_000);
    assert_eq!(segment.status(0).peers.len(), 64);
    let alive = segment.status(0).peers.iter().filter(|peer| !peer.is_silent).count();
    assert_eq!(alive, 5, "those who were refused take the places of the gone");
}

impl Segment {
    fn peer_is_known(&self, host: usize) -> bool {
        self.status(0).peers.iter().any(|peer| peer.address == address(host))
    }
}
