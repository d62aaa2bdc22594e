//! Floods of datagrams under a peer's address: they cost a bounded time, and the peer is still heard.

use courser_fleet::{MemberSettings, Refusal};

use super::{Segment, address, keys, settings};
use crate::Random;

/// Lets so many milliseconds pass, in each of which one session is made at the first host, and the second gets so many
/// datagrams under the first one's address, its message at any place among them. Gives how many of the sessions arrived.
fn flooded(
    segment: &mut Segment,
    ms: u64,
    datagrams: u64,
    forge: impl Fn(&Segment, &mut Random) -> Vec<u8>,
) -> usize {
    let mut random = Random(17);
    let mut made = Vec::new();
    for number in 0..ms {
        let before = random.below(datagrams + 1);
        for place in 0..=datagrams {
            if place == before {
                made.push(segment.make(0, number));
                segment.act();
            } else {
                let datagram = forge(segment, &mut random);
                segment.deliver(0, 1, &datagram);
            }
        }
        segment.pass();
    }
    segment.run(5);
    made.iter().filter(|session| segment.has(1, session)).count()
}

/// As one that listens on the wire forges it: a genuine header with a number that is still to come.
fn overheard(segment: &Segment, random: &mut Random) -> Vec<u8> {
    let mut datagram = segment.last_to_all(0);
    datagram[46..54].copy_from_slice(&(1_000_000 + random.below(1 << 40)).to_be_bytes());
    datagram
}

/// As one forges it that knows the fleet, but no member.
fn invented(segment: &Segment, random: &mut Random) -> Vec<u8> {
    let mut datagram = segment.last_to_all(0);
    datagram[22..30].copy_from_slice(&random.next().to_be_bytes());
    datagram
}

fn acquainted() -> Segment {
    let mut segment = Segment::acquainted(&["a", "b"]);
    segment.make(0, u64::MAX);
    // Until its first heartbeat as a peer, which has its name.
    segment.run(1200);
    segment
}

#[test]
fn forgeries_under_a_peers_address_do_not_silence_it() {
    let mut segment = acquainted();
    assert_eq!(flooded(&mut segment, 2500, 20, overheard), 2500);
    assert!(!segment.peer(1, "a").is_silent);
    assert_eq!(segment.refused(1, Refusal::Forged), 50_000);
}

#[test]
fn recordings_under_a_peers_address_do_not_silence_it() {
    let mut segment = acquainted();
    let recorded = |segment: &Segment, _: &mut Random| segment.last_to_all(0);
    assert_eq!(flooded(&mut segment, 1000, 20, recorded), 1000);
    assert_eq!(segment.refused(1, Refusal::Replayed), 20_000);
}

#[test]
fn who_does_not_listen_on_the_wire_cannot_make_peers_lose_a_message() {
    let mut segment = acquainted();
    assert_eq!(flooded(&mut segment, 1000, 100, invented), 1000);
    let opened = segment.refused(1, Refusal::Forged);
    assert!((10_000..=11_000).contains(&opened), "{opened} in a second");
    assert!(segment.refused(1, Refusal::TooManyForged) > 80_000);
}

#[test]
fn beyond_what_is_opened_a_peer_has_its_share() {
    let mut segment = acquainted();
    let arrived = flooded(&mut segment, 300, 200, overheard);
    let opened = segment.refused(1, Refusal::Forged);
    assert!((19_900..=20_500).contains(&opened), "{opened} in 300 ms, after a burst of 5000");
    // A third of what comes is opened.
    assert!((60..=160).contains(&arrived), "{arrived} of 300");
    assert!(!segment.peer(1, "a").is_silent);
}

#[test]
fn a_host_can_join_meanwhile() {
    let mut segment = acquainted();
    let late = segment.start(MemberSettings { ..settings("c", 1) }, keys());
    for _ in 0..1000 {
        for _ in 0..10 {
            let forged = invented(&segment, &mut Random(segment.now.mono));
            segment.deliver(late, 1, &forged);
        }
        segment.run(0);
    }
    assert!(segment.status(1).peers.iter().any(|peer| peer.address == address(late)));
}
