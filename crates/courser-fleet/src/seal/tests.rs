//! Keys and nonces: none twice, none too long, and none that strangers push out.

use std::collections::HashSet;
use std::time::Duration;

use courser_session::EpochLength;

use super::*;
use crate::message::Kind;

const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
const HOUR: Duration = Duration::from_secs(3600);

fn keys() -> Arc<FleetKeys> {
    Arc::new(FleetKeys::alone(EpochLength::new(HOUR).unwrap(), HOUR, NOW).unwrap())
}

fn at(second: UnixSeconds) -> Now {
    Now { wall: UnixMillis(second.0 * 1000), mono: 0 }
}

fn sealer(keys: &Arc<FleetKeys>, incarnation: u64) -> Sealer {
    let incarnation = Incarnation([incarnation.to_be_bytes(), [0; 8]].concat().try_into().unwrap());
    Sealer::new(Arc::clone(keys), MemberId([1; 8]), incarnation)
}

fn message(sealer: &mut Sealer, to: To, second: UnixSeconds) -> Vec<u8> {
    sealer.seal(Draft::new(Kind::New, 600), to, at(second)).bytes
}

fn open(opener: &mut Opener, bytes: &[u8], second: UnixSeconds) -> Result<(), Refusal> {
    let header = Header::parse(bytes)?;
    opener.open(&header, &mut bytes.to_vec(), second).map(|_| ())
}

#[test]
fn no_number_comes_twice_under_a_key_whomever_messages_are_for() {
    let keys = keys();
    let one = To::One(MemberId([2; 8]), "192.0.2.1:1".parse().unwrap());
    let mut seen = HashSet::new();
    for incarnation in 0..2 {
        let mut sealer = sealer(&keys, incarnation);
        for number in 0..600_u64 {
            let to = if number.is_multiple_of(3) { one } else { To::All };
            // Back and forth over the end of an epoch.
            let second = UnixSeconds(NOW.0 + 3600 - number % 2);
            let header = Header::parse(&message(&mut sealer, to, second)).unwrap();
            assert!(seen.insert((header.epoch, header.incarnation, header.sequence.0)));
        }
    }
}

#[test]
fn a_key_is_not_used_when_its_epoch_is_over_also_if_it_is_remembered() {
    let keys = keys();
    let (mut sealer, mut opener) = (sealer(&keys, 1), Opener::new(Arc::clone(&keys), MemberId([2; 8])));
    let message = message(&mut sealer, To::All, NOW);
    assert_eq!(open(&mut opener, &message, NOW), Ok(()));
    assert_eq!(open(&mut opener, &message, NOW.plus(HOUR)), Ok(()), "a clock may be late");
    assert_eq!(open(&mut opener, &message, NOW.plus(2 * HOUR)), Err(Refusal::UnknownEpoch));
    assert_eq!(opener.known.len(), 1);
    opener.forget_old(NOW.plus(2 * HOUR));
    assert!(opener.known.is_empty());
}

#[test]
fn whoever_invents_senders_makes_it_forget_nobody() {
    let keys = keys();
    let (mut sealer, mut opener) = (sealer(&keys, 1), Opener::new(Arc::clone(&keys), MemberId([2; 8])));
    let genuine = message(&mut sealer, To::All, NOW);
    assert_eq!(open(&mut opener, &genuine, NOW), Ok(()));
    for invented in 0..300_u64 {
        let mut forged = genuine.clone();
        forged[22..30].copy_from_slice(&invented.to_be_bytes());
        assert_eq!(open(&mut opener, &forged, NOW), Err(Refusal::Forged));
    }
    assert_eq!(opener.known.len(), 1);
    for incarnation in 2..300 {
        assert_eq!(
            open(&mut opener, &message(&mut self::sealer(&keys, incarnation), To::All, NOW), NOW),
            Ok(())
        );
    }
    assert_eq!(opener.known.len(), MAX_KNOWN, "and members that are many are not remembered without end");
}

/// As a machine does whose snapshot is resumed twice: both go on under one start, with the same numbers.
#[test]
fn a_number_that_comes_twice_tells_no_more_than_whether_messages_are_the_same() {
    let keys = keys();
    let resumed = |content: &[u8; 40]| {
        let mut draft = Draft::new(Kind::New, 600);
        assert!(draft.append(40, |bytes| bytes.extend_from_slice(content)));
        sealer(&keys, 1).seal(draft, To::All, at(NOW)).bytes[HEADER_LEN..].to_vec()
    };
    let (one, other) = (resumed(&[1; 40]), resumed(&[2; 40]));
    assert_eq!(one, resumed(&[1; 40]));
    // The time comes first in both. A key stream that is used twice would show it, and the difference of the rest.
    let difference: Vec<_> = one.iter().zip(&other).map(|(one, other)| one ^ other).collect();
    assert_ne!(difference[..TIME_LEN], [0; TIME_LEN]);
    assert_ne!(difference[TIME_LEN..TIME_LEN + 40], [3; 40]);
}
