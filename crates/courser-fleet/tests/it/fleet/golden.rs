//! A conversation of two members, kept: hosts of different releases must understand each other. `messages_v2.py` makes the
//! same with another library (pyca/cryptography, on OpenSSL).

use std::sync::Arc;

use courser_fleet::{Destination, DomainCheck, Event, MemberSettings, StateTransferStatus};
use courser_session::{FleetKey, SessionId, SharedSession, State, UnixSeconds};

use super::{Segment, at, settings};
use crate::{HOUR, NOW, policy, simple, two_hours};

const KEPT: &str = include_str!("messages_v2.txt");
const KEY: &str = include_str!("../../../../courser-session/tests/it/golden/fleet.key");

#[test]
fn a_conversation_is_what_it_was() {
    let mut segment = Segment::new(&[]);
    for (name, state_transfer) in [("a", false), ("b", true)] {
        let keys = Arc::new(simple(FleetKey::parse(KEY).unwrap(), 2 * HOUR, NOW));
        segment.start(MemberSettings { state_transfer, ..settings(name, 1) }, keys);
    }
    tick(&mut segment, 0);
    let (pushed, pulled) = (session(1), session(3));
    [&pushed, &pulled].into_iter().for_each(|session| segment.put(0, session));
    segment.now = at(1);
    segment.hosts[0].member.push(&pushed, at(1));
    tick(&mut segment, 3);
    segment.now = at(4);
    segment.hosts[0].member.delete(&id(2), at(4));
    segment.exchange();
    segment.now = at(5);
    [3, 4].into_iter().for_each(|number| segment.want(1, &id(number)));
    segment.exchange();
    tick(&mut segment, 2000);
    tick(&mut segment, 3100);
    segment.now = at(3200);
    let expires = UnixSeconds(NOW.0 + 600);
    let check = DomainCheck { name: "shop.example".to_owned(), digest: [7; 32], expires };
    segment.hosts[0].member.send_check(&check, at(3200));
    segment.exchange();
    let asks = segment.hosts[0].member.status(at(3200)).id;
    segment.hosts[1].member.acknowledge(&check.digest, asks, at(3200));
    segment.exchange();

    let answers = segment.hosts[1].member.status(at(3200)).id;
    assert!(segment.hosts[0].events.contains(&Event::Acknowledged { digest: check.digest, from: answers }));
    assert!(segment.has(1, &pushed) && segment.has(1, &pulled));
    assert_eq!(segment.answers(1), [true, false]);
    assert_eq!(segment.status(1).state_transfer, StateTransferStatus::Done);
    let lines: Vec<_> = segment.sent.iter().map(line).collect();
    assert_eq!(lines, KEPT.lines().collect::<Vec<_>>(), "{}", lines.join("\n"));
}

/// Both members, at this millisecond.
fn tick(segment: &mut Segment, ms: u64) {
    segment.now = at(ms);
    for host in &mut segment.hosts {
        host.member.tick(at(ms));
    }
    segment.exchange();
}

fn session(number: u8) -> SharedSession {
    let (policy, state) = (policy("example.org"), State::from(&b"state"[..]));
    SharedSession { id: id(number), policy, lifespan: two_hours(NOW), state }
}

fn id(number: u8) -> SessionId {
    [number; 32][..].try_into().unwrap()
}

fn line((from, to, bytes): &(usize, Destination, Vec<u8>)) -> String {
    let to = if *to == Destination::All { "all" } else { "one" };
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} {to} {hex}", ["a", "b"][*from])
}
