//! What opens and what does not, and why not.

use courser_session::{Lifespan, ResumptionFailure, UnixSeconds};
use proptest::prelude::*;

use crate::{HOUR, NOW, policy, ticketer, two_hours};

const STATE: &[u8] = b"the state of a session, with its master secret";
const NONCE: [u8; 12] = [9; 12];

fn ticket() -> Vec<u8> {
    ticketer(1).seal(&policy("a"), two_hours(NOW), STATE, NONCE, NOW).expect("the session lives")
}

#[test]
fn any_host_with_the_secret_opens_it() {
    let opened = ticketer(1).open(&policy("a"), &ticket(), UnixSeconds(NOW.0 + 60)).unwrap();
    assert_eq!(opened.state, STATE);
    assert_eq!(opened.lifespan, two_hours(NOW));
}

#[test]
fn a_host_with_another_secret_does_not_know_its_key() {
    assert_eq!(ticketer(2).open(&policy("a"), &ticket(), NOW).unwrap_err(), ResumptionFailure::UnknownKey);
}

#[test]
fn another_policy_is_told_apart_from_a_forgery() {
    assert_eq!(ticketer(1).open(&policy("b"), &ticket(), NOW).unwrap_err(), ResumptionFailure::OtherPolicy);
}

#[test]
fn each_bit_counts_and_the_reason_says_which_part_it_is_in() {
    let ticketer = ticketer(1);
    let good = ticket();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            0 => ResumptionFailure::UnknownFormat,
            1..17 => ResumptionFailure::UnknownKey,
            _ => ResumptionFailure::Forged,
        };
        assert_eq!(ticketer.open(&policy("a"), &bad, NOW).unwrap_err(), expected, "bit {bit}");
    }
}

#[test]
fn a_ticket_cut_short_or_with_more_behind_it_is_a_miss() {
    let ticketer = ticketer(1);
    let good = ticket();
    for len in 0..good.len() {
        let expected = if len < 93 { ResumptionFailure::Malformed } else { ResumptionFailure::Forged };
        assert_eq!(ticketer.open(&policy("a"), &good[..len], NOW).unwrap_err(), expected, "{len} bytes");
    }
    let longer = [&good[..], &[0]].concat();
    assert_eq!(ticketer.open(&policy("a"), &longer, NOW).unwrap_err(), ResumptionFailure::Forged);
}

#[test]
fn a_ticket_shows_nothing_of_what_is_in_it() {
    let ticket = ticket();
    for secret in [STATE, &policy("a").as_bytes()[..], &NOW.0.to_be_bytes()] {
        assert!(!ticket.windows(8).any(|window| secret.starts_with(window)));
    }
}

#[test]
fn a_state_of_any_length_that_fits_comes_back() {
    let ticketer = ticketer(1);
    for len in [0, 1, 15, 16, 17, 4096, 65_535 - 93] {
        let state = vec![3; len];
        let ticket = ticketer.seal(&policy("a"), two_hours(NOW), &state, NONCE, NOW).unwrap();
        assert_eq!(ticket.len(), len + 93);
        assert_eq!(ticketer.open(&policy("a"), &ticket, NOW).unwrap().state, state);
    }
}

#[test]
fn a_state_too_long_for_tls_gets_no_ticket() {
    let state = vec![3; 65_535 - 92];
    assert!(ticketer(1).seal(&policy("a"), two_hours(NOW), &state, NONCE, NOW).is_none());
    let oversized = vec![1; 65_536];
    assert_eq!(ticketer(1).open(&policy("a"), &oversized, NOW).unwrap_err(), ResumptionFailure::Malformed);
}

#[test]
fn a_session_that_is_over_gets_no_ticket() {
    let seal = |lifespan, now| ticketer(1).seal(&policy("a"), lifespan, STATE, NONCE, now);
    assert!(seal(two_hours(NOW), two_hours(NOW).expires).is_none());
    assert!(seal(two_hours(UnixSeconds(NOW.0 + 61)), NOW).is_none());
}

#[test]
fn renewing_a_ticket_does_not_extend_the_session() {
    let ticketer = ticketer(1);
    let (mut ticket, mut now) = (ticket(), NOW);
    let last = UnixSeconds(NOW.0 + 7199);
    while now < last {
        now = UnixSeconds((now.0 + 600).min(last.0));
        let opened = ticketer.open(&policy("a"), &ticket, now).unwrap();
        assert_eq!(opened.lifespan.created, NOW);
        ticket = ticketer.seal(&policy("a"), opened.lifespan, &opened.state, NONCE, now).unwrap();
    }
    let end = UnixSeconds(NOW.0 + 7200);
    assert_eq!(ticketer.open(&policy("a"), &ticket, end).unwrap_err(), ResumptionFailure::Expired);
}

#[test]
fn the_lifetime_of_tickets_cuts_a_longer_lifespan() {
    let ticketer = ticketer(1);
    let long = Lifespan::new(NOW, 24 * HOUR);
    let ticket = ticketer.seal(&policy("a"), long, STATE, NONCE, NOW).unwrap();
    assert_eq!(ticketer.open(&policy("a"), &ticket, NOW).unwrap().lifespan, two_hours(NOW));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_a_miss(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(ticketer(1).open(&policy("a"), &bytes, NOW).is_err());
    }

    /// Behind a genuine header, so that the bytes reach the cipher.
    #[test]
    fn arbitrary_bytes_under_our_key_are_forged(bytes in prop::collection::vec(any::<u8>(), 76..400)) {
        let forged = [&ticket()[..17], &bytes].concat();
        prop_assert_eq!(ticketer(1).open(&policy("a"), &forged, NOW).unwrap_err(), ResumptionFailure::Forged);
    }

    #[test]
    fn what_is_sealed_opens(state in prop::collection::vec(any::<u8>(), 0..2000), nonce: [u8; 12], age in 0..7200_u64) {
        let ticketer = ticketer(1);
        let ticket = ticketer.seal(&policy("a"), two_hours(NOW), &state, nonce, NOW).unwrap();
        let opened = ticketer.open(&policy("a"), &ticket, UnixSeconds(NOW.0 + age)).unwrap();
        prop_assert_eq!(opened.state, state);
    }
}
