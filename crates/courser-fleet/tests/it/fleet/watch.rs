//! What a watcher sees of datagrams.

use courser_fleet::{Direction, Event, Passed, Refusal};

use super::{Segment, session};

fn passed(segment: &Segment, host: usize) -> Vec<&Passed> {
    let events = segment.hosts[host].events.iter();
    events.filter_map(|event| if let Event::Passed(passed) = event { Some(passed) } else { None }).collect()
}

#[test]
fn every_datagram_is_told_of_while_someone_watches_and_then_alone() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    assert!(passed(&segment, 1).is_empty());
    (0..2).for_each(|host| segment.hosts[host].member.watch(true));
    segment.make(0, 1);
    segment.make(0, 2);
    segment.run(2);
    let again = segment.last_to_all(0);
    segment.deliver(0, 1, &again);
    segment.exchange();
    let sent = passed(&segment, 0);
    assert_eq!(
        (sent.len(), sent[0].direction, sent[0].kind, sent[0].items),
        (1, Direction::Sent, Some("new"), 2)
    );
    let received: Vec<_> = passed(&segment, 1).iter().map(|passed| (passed.items, passed.refusal)).collect();
    assert_eq!(received, [(2, None), (0, Some(Refusal::Replayed))]);
    segment.hosts[1].member.watch(false);
    segment.make(0, 3);
    segment.run(2);
    assert_eq!(passed(&segment, 1).len(), 2);
}

#[test]
fn nothing_that_is_told_or_shown_names_a_session_or_a_secret() {
    let mut segment = Segment::acquainted(&["a", "b"]);
    (0..2).for_each(|host| segment.hosts[host].member.watch(true));
    let made = segment.make(0, 0x7172_7374_7576_7778);
    segment.want(1, &session(9).id);
    segment.run(1200);
    let host = &segment.hosts[1];
    let shown = format!("{:?} {:?} {:?}", host.events, host.member, segment.status(1));
    assert!(shown.contains("Passed"));
    let secret = "41".repeat(4);
    for hidden in ["7172737475767778", "qrstuvwx", &secret, "113, 114, 115", "65, 65, 65"] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
    assert!(segment.has(1, &made));
}
