//! Sessions in a store and in a file: what comes back, and what does not.

use std::io::{self, Read};
use std::sync::Arc;

use courser_session::{
    FleetKeys, Lifespan, ResumptionFailure, SavedCounts, SharedSession, Source, State, UnixSeconds, Vault,
};
use proptest::prelude::*;

use crate::{HOUR, NOW, hourly, policy, session_id, simple, two_hours};

const NONCE: [u8; 12] = [9; 12];

fn vault(secret: u8) -> Vault {
    Vault::new(Arc::new(simple(hourly(secret), 2 * HOUR, NOW)))
}

fn session(number: u64) -> SharedSession {
    SharedSession {
        id: session_id(number),
        policy: policy("a"),
        lifespan: two_hours(NOW),
        state: State::from(number.to_be_bytes().repeat(10)),
    }
}

fn value() -> Vec<u8> {
    vault(1).seal(&session(1), NONCE, NOW).unwrap()
}

fn file(numbers: std::ops::Range<u64>) -> Vec<u8> {
    let vault = vault(1);
    let mut file = Vault::FILE_HEADER.to_vec();
    for number in numbers {
        vault.append(&mut file, &session(number), NONCE, NOW);
    }
    file
}

/// The numbers of the sessions that come back, and the counts.
fn read(vault: &Vault, file: &[u8], now: UnixSeconds) -> (Vec<u64>, SavedCounts) {
    let mut saved = vault.read(file, now);
    let number = |session: SharedSession| u64::from_be_bytes(session.state[..8].try_into().unwrap());
    let numbers = saved.by_ref().map(number).collect();
    (numbers, saved.counts())
}

#[test]
fn any_host_of_the_fleet_opens_it_under_its_own_name() {
    let opened = vault(1).open(&session_id(1), &value(), UnixSeconds(NOW.0 + 7199)).unwrap();
    let made = session(1);
    assert_eq!((opened.id, opened.policy, opened.lifespan), (made.id, made.policy, made.lifespan));
    assert_eq!(opened.state[..], made.state[..]);
}

#[test]
fn it_opens_under_no_other_name_and_not_as_a_record() {
    assert_eq!(vault(1).open(&session_id(2), &value(), NOW).unwrap_err(), ResumptionFailure::Forged);
    let len = u32::try_from(value().len()).unwrap().to_be_bytes();
    let file = [Vault::FILE_HEADER, &len, &value()].concat();
    let damaged = SavedCounts { damaged: 1, ..SavedCounts::default() };
    assert_eq!(read(&vault(1), &file, NOW), (vec![], damaged));
    let record = &self::file(1..2)[Vault::FILE_HEADER.len() + 4..];
    assert_eq!(vault(1).open(&session_id(1), record, NOW).unwrap_err(), ResumptionFailure::Forged);
}

#[test]
fn each_bit_counts() {
    let (vault, good) = (vault(1), value());
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            0 => ResumptionFailure::UnknownFormat,
            1..17 => ResumptionFailure::UnknownKey,
            _ => ResumptionFailure::Forged,
        };
        assert_eq!(vault.open(&session_id(1), &bad, NOW).unwrap_err(), expected, "bit {bit}");
    }
}

#[test]
fn another_fleet_does_not_know_the_key() {
    assert_eq!(vault(2).open(&session_id(1), &value(), NOW).unwrap_err(), ResumptionFailure::UnknownKey);
}

#[test]
fn it_opens_while_the_session_lives_and_no_longer() {
    let vault = vault(1);
    assert_eq!(
        vault.open(&session_id(1), &value(), UnixSeconds(NOW.0 + 7200)).unwrap_err(),
        ResumptionFailure::Expired
    );
    assert_eq!(
        vault.open(&session_id(1), &value(), UnixSeconds(NOW.0 + 18_000)).unwrap_err(),
        ResumptionFailure::UnknownKey
    );
}

#[test]
fn a_lifespan_is_cut_to_the_lifetime_and_one_that_is_over_is_not_sealed() {
    let long = SharedSession { lifespan: Lifespan::new(NOW, 24 * HOUR), ..session(1) };
    let sealed = vault(1).seal(&long, NONCE, NOW).unwrap();
    assert_eq!(vault(1).open(&long.id, &sealed, NOW).unwrap().lifespan, two_hours(NOW));
    assert!(vault(1).seal(&session(1), NONCE, UnixSeconds(NOW.0 + 7200)).is_none());
}

#[test]
fn a_state_up_to_what_travels_is_sealed() {
    let sized = |len| SharedSession { state: State::from(vec![1; len]), ..session(1) };
    let longest = vault(1).seal(&sized(65_535), NONCE, NOW).unwrap();
    assert_eq!(vault(1).open(&session_id(1), &longest, NOW).unwrap().state.len(), 65_535);
    assert!(vault(1).seal(&sized(65_536), NONCE, NOW).is_none());
}

#[test]
fn a_name_stays_and_shows_nothing() {
    assert_ne!(Vault::name(&session_id(1)), Vault::name(&session_id(2)));
    let id = session_id(1);
    assert!(!value().windows(8).any(|window| id.as_bytes().starts_with(window)));
}

/// Found under the same name, with either key first.
#[test]
fn rekeying_loses_nothing_in_a_store() {
    let sources = [2, 1].map(|secret| Source::Simple(hourly(secret)));
    let both = Vault::new(Arc::new(FleetKeys::new(sources.into(), 2 * HOUR, NOW).unwrap()));
    assert!(both.open(&session_id(1), &value(), NOW).is_ok());
    let new = both.seal(&session(1), NONCE, NOW).unwrap();
    assert!(vault(2).open(&session_id(1), &new, NOW).is_ok());
}

#[test]
fn a_file_gives_back_what_still_lives() {
    let taken = SavedCounts { taken: 50, ..SavedCounts::default() };
    assert_eq!(read(&vault(1), &file(0..50), NOW), ((0..50).collect(), taken));
    let over = SavedCounts { over: 50, ..SavedCounts::default() };
    assert_eq!(read(&vault(1), &file(0..50), UnixSeconds(NOW.0 + 7200)), (vec![], over));
    assert_eq!(read(&vault(2), &file(0..50), NOW), (vec![], over));
}

#[test]
fn a_damaged_record_costs_one_session() {
    let mut file = file(0..10);
    let record = (file.len() - Vault::FILE_HEADER.len()) / 10;
    file[Vault::FILE_HEADER.len() + 3 * record + 60] ^= 1;
    let counts = SavedCounts { taken: 9, over: 0, damaged: 1 };
    assert_eq!(read(&vault(1), &file, NOW), (vec![0, 1, 2, 4, 5, 6, 7, 8, 9], counts));
}

#[test]
fn a_file_that_is_cut_anywhere_gives_what_is_whole() {
    let (vault, file) = (vault(1), file(0..4));
    let record = (file.len() - Vault::FILE_HEADER.len()) / 4;
    for len in 0..file.len() {
        let (whole, rest) = match len.checked_sub(Vault::FILE_HEADER.len()) {
            Some(len) => (len / record, len % record),
            None => (0, 1),
        };
        let counts = SavedCounts { taken: whole as u64, over: 0, damaged: u64::from(rest > 0) };
        let numbers = (0..whole as u64).collect();
        assert_eq!(read(&vault, &file[..len], NOW), (numbers, counts), "cut to {len}");
    }
}

#[test]
fn something_else_is_not_a_file_of_sessions() {
    let damaged = SavedCounts { damaged: 1, ..SavedCounts::default() };
    for file in [&b""[..], b"courser sessions 2\n", b"hello"] {
        assert_eq!(read(&vault(1), file, NOW), (vec![], damaged));
    }
    let absurd = [Vault::FILE_HEADER, &u32::MAX.to_be_bytes(), b"x"].concat();
    assert_eq!(read(&vault(1), &absurd, NOW), (vec![], damaged));
}

/// A byte at a time, and then an error.
struct Reluctant<'a>(&'a [u8]);

impl Read for Reluctant<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let (&first, rest) = self.0.split_first().ok_or(io::ErrorKind::Other)?;
        self.0 = rest;
        room[0] = first;
        Ok(1)
    }
}

#[test]
fn a_disk_that_fails_costs_what_could_not_be_read() {
    let file = file(0..3);
    let vault = vault(1);
    let mut saved = vault.read(Reluctant(&file[..file.len() - 1]), NOW);
    assert_eq!(saved.by_ref().count(), 2);
    assert_eq!(saved.counts(), SavedCounts { taken: 2, over: 0, damaged: 1 });
}

proptest! {
    #[test]
    fn what_is_sealed_opens(state in prop::collection::vec(any::<u8>(), 0..2000), nonce: [u8; 12], age in 0..7200_u64) {
        let (vault, session) = (vault(1), SharedSession { state: State::from(&state[..]), ..session(1) });
        let sealed = vault.seal(&session, nonce, NOW).unwrap();
        let opened = vault.open(&session.id, &sealed, UnixSeconds(NOW.0 + age)).unwrap();
        prop_assert_eq!(&opened.state[..], &state[..]);
    }
}
