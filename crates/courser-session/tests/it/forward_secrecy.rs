//! What a thief of a state file cannot do.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use courser_session::{FleetKey, FleetKeys, FleetState, ResumptionFailure, Source, Ticketer, UnixSeconds};

use crate::{HOUR, NOW, hourly, policy, simple, two_hours};

/// What a host of `key` keeps at `now`, in bytes: every line's value, and the whole text.
fn state(key: &FleetKey, now: UnixSeconds) -> (FleetState, Vec<Vec<u8>>) {
    let text = FleetState::from_key(key, 2 * HOUR, now).unwrap().to_text();
    let values = text.split_whitespace().filter_map(from_hex).collect();
    (FleetState::parse(&text).unwrap(), values)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

fn ticket(now: UnixSeconds) -> Vec<u8> {
    let ticketer = Ticketer::new(Arc::new(simple(hourly(1), 2 * HOUR, now)));
    ticketer.seal(&policy("a"), two_hours(now), b"state", [1; 12], now).unwrap()
}

/// Whether these 32 bytes are the key of the ticket.
fn is_key_of(bytes: &[u8], ticket: &[u8]) -> bool {
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, bytes).unwrap());
    let (header, rest) = ticket.split_at(17);
    let (nonce, sealed) = rest.split_first_chunk::<12>().unwrap();
    let mut sealed = sealed.to_vec();
    key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(header), &mut sealed).is_ok()
}

fn holds_key_of(values: &[Vec<u8>], ticket: &[u8]) -> bool {
    values.iter().flat_map(|value| value.windows(32)).any(|window| is_key_of(window, ticket))
}

/// A key opens for a lifetime after its epoch, in whole epochs: here two lifetimes after the ticket was sealed at most.
#[test]
fn a_state_holds_no_key_of_tickets_that_are_over() {
    let sealed = UnixSeconds(NOW.0 + 1800);
    let ticket = ticket(sealed);
    for (hours, holds) in [(1, true), (2, true), (3, false), (4, false), (40, false)] {
        let later = UnixSeconds(NOW.0 + hours * 3600);
        let (state, values) = state(&hourly(1), later);
        assert_eq!(holds_key_of(&values, &ticket), holds, "{hours} h later");
        // Nor does the service open it, whatever clock the thief gives it.
        let keys = FleetKeys::new(vec![Source::Ratcheted(state)], 2 * HOUR, later).unwrap();
        let stolen = Ticketer::new(Arc::new(keys));
        let opened = stolen.open(&policy("a"), &ticket, sealed);
        assert_eq!(opened.err(), (!holds).then_some(ResumptionFailure::UnknownKey), "{hours} h later");
    }
}

#[test]
fn a_state_holds_no_secret_and_no_message_secret_of_the_past() {
    let earlier = simple(hourly(1), 2 * HOUR, NOW);
    let message_secret = earlier.sealing(NOW).secret;
    let (_, before) = state(&hourly(1), NOW);
    let secret =
        before.iter().find(|value| value.len() == 32).expect("the secret is the first of this length");
    for hours in [1, 2, 10] {
        let text = |seconds| {
            let keys = simple(hourly(1), 2 * HOUR, NOW);
            keys.export(UnixSeconds(NOW.0 + hours * 3600 + seconds)).pop().unwrap().1
        };
        let values = |text: &str| text.split_whitespace().filter_map(from_hex).collect::<Vec<_>>();
        let holds = |values: &[Vec<u8>], bytes: &[u8]| {
            values.iter().any(|value| value.windows(32).any(|window| window == bytes))
        };
        assert!(!holds(&values(&text(0)), secret), "{hours} h later");
        // For a minute it may still be needed.
        assert_eq!(holds(&values(&text(59)), message_secret.as_bytes()), hours == 1, "{hours} h later");
        assert!(!holds(&values(&text(60)), message_secret.as_bytes()), "{hours} h later");
    }
}

/// A machine without a clock of its own starts in 1970, or anywhere, and is told the time later.
#[test]
fn a_process_alone_rolls_on_when_a_wrong_clock_is_set_right() {
    let length = courser_session::EpochLength::DEFAULT;
    for wrong in [UnixSeconds(0), UnixSeconds(NOW.0 - 400 * 86_400), UnixSeconds(NOW.0 + 400 * 86_400)] {
        let keys = FleetKeys::alone(length, 2 * HOUR, wrong).unwrap();
        let (first, epoch) = (keys.fleet(), length.seconds());
        keys.advance(UnixSeconds(wrong.0 + 1));
        assert_eq!(keys.fleet(), first, "nothing has happened");
        keys.advance(NOW);
        let second = keys.fleet();
        assert_ne!(second, first, "{wrong:?}");
        keys.advance(UnixSeconds(NOW.0 + epoch));
        assert_eq!((keys.fleet(), keys.epoch(UnixSeconds(NOW.0 + epoch))), (second, 1));
        keys.advance(UnixSeconds(NOW.0 + epoch - 30));
        assert_eq!(keys.fleet(), second, "half a minute back is no reason");
    }
}

/// The same for what a process holds: the previous message secret is gone, also for a clock that is set back.
#[test]
fn a_process_forgets_as_well() {
    let keys = FleetKeys::alone(courser_session::EpochLength::DEFAULT, 2 * HOUR, NOW).unwrap();
    let later = UnixSeconds(NOW.0 + 8 * 3600);
    keys.advance(later);
    assert!(keys.opening(keys.fleet(), 0, UnixSeconds(later.0 + 59)).is_ok());
    keys.advance(UnixSeconds(later.0 + 60));
    assert!(keys.opening(keys.fleet(), 0, later).is_err());
}
