//! Who has a place, and what a clock is worth.

use super::*;
use crate::now::UnixMillis;

fn life(number: u8, incarnation: u64) -> MemberStart {
    (MemberId([number; 8]), Incarnation::new(UnixMillis(incarnation), [0; 8]))
}

fn at(mono: u64) -> Now {
    Now { wall: UnixMillis(mono), mono }
}

fn address() -> SocketAddr {
    "192.0.2.1:8888".parse().unwrap()
}

#[test]
fn a_full_table_gives_the_place_of_who_is_gone_longest_and_of_nobody_else() {
    let mut peers = Peers::default();
    for number in 0..64 {
        let place = usize::from(number);
        assert_eq!(
            peers.admit(life(number, 1), address(), at(u64::from(number))),
            Ok((place, Admitted::New))
        );
    }
    let mut admit = |number, mono| peers.admit(life(number, 1), address(), at(mono));
    assert_eq!(admit(100, GONE_MS - 1), Err(Refusal::TooManyPeers));
    assert_eq!(admit(100, GONE_MS + 1), Ok((0, Admitted::New)));
    assert_eq!(admit(101, GONE_MS + 1), Ok((1, Admitted::New)));
    assert_eq!(admit(102, GONE_MS + 1), Err(Refusal::TooManyPeers));
    assert_eq!(admit(7, GONE_MS + 1), Ok((7, Admitted::Restarted)), "who is there keeps its place");
}

#[test]
fn a_clock_is_off_by_what_the_fastest_message_says() {
    let mut lateness = Lateness::default();
    lateness.note(5, 0);
    lateness.note(70_000, 1);
    assert!(!lateness.is_clock_off(), "one was held back");
    assert_eq!((lateness.clock_ahead_ms(), lateness.lag_ms()), (-5, 69_995));
    lateness.note(-3_600_000, 2);
    assert!(lateness.is_clock_off());
    assert_eq!(lateness.clock_ahead_ms(), 3_600_000);
    lateness.note(4, 3);
    assert!(!lateness.is_clock_off(), "it was set");
    assert_eq!((lateness.clock_ahead_ms(), lateness.lag_ms()), (-4, 0));
}

#[test]
fn lag_is_forgotten_after_a_minute() {
    let mut lateness = Lateness::default();
    lateness.note(0, 0);
    lateness.note(500, 10);
    for mono in [LATENESS_MS, 2 * LATENESS_MS] {
        lateness.note(1, mono);
    }
    assert_eq!((lateness.lag_ms(), lateness.clock_ahead_ms()), (0, -1));
    lateness.note(i64::MIN, 2 * LATENESS_MS + 1);
    lateness.note(i64::MAX, 2 * LATENESS_MS + 2);
    assert!(lateness.is_clock_off());
}

#[test]
fn the_richest_peer_is_one_that_is_there() {
    let mut peers = Peers::default();
    for (number, entries) in [(0, 10), (1, 30), (2, 20), (3, 0)] {
        let (place, _) = peers.admit(life(number, 1), address(), at(0)).unwrap();
        let name = MemberName::new("any").unwrap();
        peers.get(place).heartbeat = Some(Heartbeat { name, entries, pushed: 0, taken: 0 });
    }
    assert_eq!(peers.richest(0, 1), Some(1));
    assert_eq!(peers.richest(0b10, 1), Some(2));
    assert_eq!(peers.richest(0b111, 1), None, "who has nothing is not asked");
    peers.get(1).lateness.note(-3_600_000, 1);
    assert_eq!((peers.richest(0, 1), peers.useful(1)), (Some(2), 0b1101));
    assert_eq!((peers.richest(0, SILENT_MS), peers.useful(SILENT_MS)), (None, 0));
}
