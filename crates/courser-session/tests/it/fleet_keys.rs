//! The keys of a fleet over time: in both modes, with two secrets, on clocks that are wrong, through restarts.

use std::sync::Arc;
use std::time::Duration;

use courser_session::{
    BadFleetKeys, ClockStatus, FleetKey, FleetKeys, FleetState, NoKey, ResumptionFailure, Source, Ticketer,
    UnixSeconds,
};
use proptest::prelude::*;

use crate::{HOUR, NOW, fleet_key, hourly, policy, simple, two_hours};

/// A year and a day.
const YEAR: u64 = 367 * 24 * 3600;

fn forward_secret(key: &FleetKey, now: UnixSeconds) -> FleetKeys {
    let state = FleetState::from_key(key, 2 * HOUR, now).unwrap();
    ratcheted(state, now)
}

fn ratcheted(state: FleetState, now: UnixSeconds) -> FleetKeys {
    FleetKeys::new(vec![Source::Ratcheted(state)], 2 * HOUR, now).unwrap()
}

fn two(first: u8, second: u8, now: UnixSeconds) -> FleetKeys {
    let sources = [first, second].map(|secret| Source::Simple(hourly(secret)));
    FleetKeys::new(sources.into(), 2 * HOUR, now).unwrap()
}

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds(NOW.0.checked_add_signed(seconds).unwrap())
}

fn ticketer(keys: FleetKeys) -> (Arc<FleetKeys>, Ticketer) {
    let keys = Arc::new(keys);
    (Arc::clone(&keys), Ticketer::new(keys))
}

fn seal(ticketer: &Ticketer, now: UnixSeconds) -> Vec<u8> {
    ticketer.seal(&policy("a"), two_hours(now), b"state", [1; 12], now).unwrap()
}

fn open(ticketer: &Ticketer, ticket: &[u8], now: UnixSeconds) -> Result<(), ResumptionFailure> {
    ticketer.open(&policy("a"), ticket, now).map(|opened| assert_eq!(opened.state, b"state"))
}

/// Whether what `sender` seals is understood by `receiver`.
fn understands(receiver: &FleetKeys, sender: &FleetKeys, now: UnixSeconds) -> bool {
    let sealed = sender.sealing(now);
    receiver
        .opening(sealed.fleet, sealed.epoch, now)
        .is_ok_and(|opened| opened.secret.as_bytes() == sealed.secret.as_bytes())
}

/// The one text that has to be written.
fn written(keys: &FleetKeys, now: UnixSeconds) -> Option<String> {
    let mut texts = keys.advance(now);
    assert!(texts.len() <= 1);
    texts.pop().map(|(_, text)| text.to_string())
}

/// The value of a line.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))
}

#[test]
fn both_modes_have_the_same_keys_over_forty_epochs() {
    let (simple_keys, simple_tickets) = ticketer(simple(hourly(1), 2 * HOUR, NOW));
    let (strict_keys, strict_tickets) = ticketer(forward_secret(&hourly(1), NOW));
    for step in 0..40 * 6 {
        let now = at(step * 600);
        assert_eq!(simple_keys.epoch(now), strict_keys.epoch(now));
        assert!(understands(&simple_keys, &strict_keys, now) && understands(&strict_keys, &simple_keys, now));
        assert_eq!(seal(&simple_tickets, now), seal(&strict_tickets, now));
        assert_eq!(*simple_keys.export(now)[0].1, *strict_keys.export(now)[0].1, "at {now:?}");
    }
    assert_eq!(simple_keys.epoch(at(39 * 3600)), 1039);
}

#[test]
fn a_host_that_starts_late_has_the_keys_of_one_that_was_there() {
    let early = forward_secret(&hourly(1), NOW);
    early.advance(at(30 * 3600));
    for now in [at(30 * 3600), at(30 * 3600 + 1800)] {
        assert_eq!(*early.export(now)[0].1, *simple(hourly(1), 2 * HOUR, now).export(now)[0].1);
    }
}

#[test]
fn tickets_outlive_a_restart_from_the_state() {
    let (keys, before) = ticketer(forward_secret(&hourly(1), NOW));
    let text = written(&keys, NOW).expect("the first state has to be written");
    let ticket = seal(&before, NOW);
    for down in [0, 59, 3599, 3600, 7199] {
        let now = at(down);
        let (_, after) = ticketer(ratcheted(FleetState::parse(&text).unwrap(), now));
        assert_eq!(open(&after, &ticket, now), Ok(()), "{down} s later");
        assert_eq!(open(&before, &seal(&after, now), now), Ok(()), "{down} s later");
    }
}

#[test]
fn a_host_joins_with_what_a_member_exports() {
    let (keys, member) = ticketer(simple(hourly(1), 2 * HOUR, NOW));
    let ticket = seal(&member, at(-3600));
    let (fleet, text) = keys.export(at(10)).pop().unwrap();
    assert_eq!(fleet, keys.fleet());
    let joiner = ratcheted(FleetState::parse(&text).unwrap(), at(10));
    assert!(understands(&joiner, &keys, at(10)) && understands(&keys, &joiner, at(10)));
    // Of a host whose clock is half a minute late.
    assert!(joiner.opening(fleet, 999, at(30)).is_ok());
    assert_eq!(open(&ticketer(joiner).1, &ticket, at(10)), Ok(()));
}

#[test]
fn a_state_is_to_be_written_when_it_changes_and_not_otherwise() {
    let keys = forward_secret(&hourly(1), at(100));
    assert!(written(&keys, at(100)).is_some(), "at the start");
    assert_eq!(written(&keys, at(101)), None);
    assert_eq!(written(&keys, at(3599)), None);
    let rolled = written(&keys, at(3600)).expect("a new epoch");
    assert_eq!(value(&rolled, "epoch"), Some("1001"));
    assert!(value(&rolled, "previous-message-secret").is_some());
    assert_eq!(written(&keys, at(3659)), None);
    let settled = written(&keys, at(3660)).expect("the previous epoch's message secret goes");
    assert_eq!(value(&settled, "previous-message-secret"), None);
    assert_eq!(written(&keys, at(3661)), None);
}

#[test]
fn a_roll_that_a_ticket_causes_is_written_as_well() {
    let (keys, tickets) = ticketer(forward_secret(&hourly(1), NOW));
    written(&keys, NOW);
    seal(&tickets, at(7200));
    let text = written(&keys, at(7200)).expect("it rolled");
    assert_eq!(value(&text, "epoch"), Some("1002"));
}

#[test]
fn simple_mode_writes_nothing() {
    let keys = simple(hourly(1), 2 * HOUR, NOW);
    assert!((0..10).all(|hour| keys.advance(at(hour * 3600)).is_empty()));
}

#[test]
fn a_shorter_lifetime_wipes_keys_at_the_next_start() {
    let text = FleetState::from_key(&hourly(1), 5 * HOUR, NOW).unwrap().to_text();
    assert_eq!(text.matches("past = ").count(), 5);
    let keys = ratcheted(FleetState::parse(&text).unwrap(), NOW);
    assert_eq!(written(&keys, NOW).unwrap().matches("past = ").count(), 2);
}

#[test]
fn messages_open_in_their_epoch_and_a_minute_around_it() {
    for keys in [simple(hourly(1), 2 * HOUR, at(-1800)), forward_secret(&hourly(1), at(-1800))] {
        let fleet = keys.fleet();
        let may_open = |epoch, now| keys.opening(fleet, epoch, at(now)).is_ok();
        assert_eq!([998, 999, 1000].map(|epoch| may_open(epoch, -1800)), [false, true, false]);
        assert_eq!([999, 1000, 1001].map(|epoch| may_open(epoch, -61)), [true, false, false]);
        assert_eq!([999, 1000, 1001].map(|epoch| may_open(epoch, -60)), [true, true, false]);
        assert_eq!([998, 999, 1000, 1001].map(|epoch| may_open(epoch, 0)), [false, true, true, false]);
        assert_eq!([999, 1000, 1001].map(|epoch| may_open(epoch, 59)), [true, true, false]);
        assert_eq!([999, 1000, 1001].map(|epoch| may_open(epoch, 60)), [false, true, false]);
        assert_eq!(keys.opening(fleet, u64::MAX, NOW).unwrap_err(), NoKey::UnknownEpoch);
    }
}

#[test]
fn each_epoch_and_each_fleet_has_its_own_message_secret() {
    let keys = simple(hourly(1), 2 * HOUR, NOW);
    let other = simple(hourly(2), 2 * HOUR, NOW);
    let now = keys.sealing(NOW);
    assert_eq!((now.fleet, now.epoch), (keys.fleet(), 1000));
    assert_ne!(now.secret.as_bytes(), keys.sealing(at(3600)).secret.as_bytes());
    assert_ne!(now.secret.as_bytes(), other.sealing(NOW).secret.as_bytes());
    assert_eq!(keys.opening(other.fleet(), 1000, NOW).unwrap_err(), NoKey::OtherFleet);
}

#[test]
fn rekeying_host_by_host_loses_no_session() {
    let sources = [
        |now| simple(hourly(1), 2 * HOUR, now),
        |now| two(1, 2, now),
        |now| two(2, 1, now),
        |now| simple(hourly(2), 2 * HOUR, now),
    ];
    let mut hosts: Vec<_> = (0..4).map(|_| ticketer(sources[0](NOW))).collect();
    let mut tickets: Vec<(UnixSeconds, Vec<u8>)> = Vec::new();
    // One host a step; between the last two stages, a session's lifetime.
    let steps = [(0..4, 1), (4..8, 2), (8 + 12..12 + 12, 3)];
    for step in 0..36_u32 {
        let now = at(i64::from(step) * 600);
        if let Some((range, stage)) = steps.iter().find(|(range, _)| range.contains(&step)) {
            hosts[(step - range.start) as usize] = ticketer(sources[*stage](now));
        }
        for (_, host) in &hosts {
            tickets.push((now, seal(host, now)));
        }
        tickets.retain(|(made, _)| now.0 < made.0 + 7200);
        for (keys, host) in &hosts {
            assert!(tickets.iter().all(|(_, ticket)| open(host, ticket, now).is_ok()), "step {step}");
            assert!(hosts.iter().all(|(sender, _)| understands(keys, sender, now)), "step {step}");
        }
    }
    assert!(hosts.iter().all(|(keys, _)| keys.fleet() == hourly(2).id()));
}

#[test]
fn the_second_secret_rolls_at_its_own_times() {
    let sources = vec![Source::Simple(fleet_key(2, 8 * 3600, at(-1800))), Source::Simple(hourly(1))];
    let (both, tickets) = ticketer(FleetKeys::new(sources, 2 * HOUR, NOW).unwrap());
    let (old, old_tickets) = ticketer(simple(hourly(1), 2 * HOUR, NOW));
    for hour in 0..7 {
        let now = at(hour * 3600 + 1800);
        assert_eq!(open(&tickets, &seal(&old_tickets, now), now), Ok(()), "hour {hour}");
        assert!(understands(&both, &old, now), "hour {hour}");
    }
}

#[test]
fn a_fleet_is_converted_and_rekeyed_at_once() {
    let state = FleetState::from_key(&hourly(1), 2 * HOUR, NOW).unwrap();
    let sources = vec![Source::Simple(hourly(2)), Source::Ratcheted(state)];
    let keys = FleetKeys::new(sources, 2 * HOUR, NOW).unwrap();
    let fleets: Vec<_> = keys.advance(at(3600)).into_iter().map(|(fleet, _)| fleet).collect();
    assert_eq!(fleets, [hourly(1).id()], "what is in simple mode is not written");
    let shown: Vec<_> = keys.statuses(at(3600)).iter().map(|one| (one.fleet, one.forward_secret)).collect();
    assert_eq!(shown, [(hourly(2).id(), false), (hourly(1).id(), true)]);
}

#[test]
fn a_clock_that_was_ahead_is_followed_back_in_simple_mode() {
    let (keys, tickets) = ticketer(simple(hourly(1), 2 * HOUR, NOW));
    let before = seal(&tickets, NOW);
    assert_eq!(keys.epoch(at(100 * 3600)), 1100);
    assert_eq!(keys.epoch(at(10)), 1000);
    assert_eq!(open(&tickets, &before, at(10)), Ok(()));
    assert_eq!(keys.statuses(at(10))[0].clock, ClockStatus::Agrees);
}

proptest! {
    // Each case takes thousands of steps from the key file's origin.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However its clock was set meanwhile, a host in simple mode has the keys of one that starts now.
    #[test]
    fn in_simple_mode_keys_depend_on_the_time_alone(hours in prop::collection::vec(-990_i64..100, 1..8)) {
        let keys = simple(hourly(1), 2 * HOUR, NOW);
        for hour in hours {
            let now = at(hour * 3600 + 1800);
            prop_assert_eq!(&*keys.export(now)[0].1, &*simple(hourly(1), 2 * HOUR, now).export(now)[0].1);
        }
    }

    /// And in forward-secret mode of one that started at the latest time that the clock has shown.
    #[test]
    fn in_forward_secret_mode_keys_depend_on_the_latest_time_alone(hours in prop::collection::vec(0_i64..100, 1..8)) {
        let keys = forward_secret(&hourly(1), NOW);
        let mut latest = NOW;
        for hour in hours {
            let now = at(hour * 3600 + 1800);
            latest = latest.max(now);
            let fresh = simple(hourly(1), 2 * HOUR, latest);
            prop_assert_eq!(&*keys.export(now)[0].1, &*fresh.export(latest)[0].1);
        }
    }
}

#[test]
fn keys_do_not_go_back_in_forward_secret_mode_and_hosts_that_erred_alike_agree() {
    let (keys, tickets) = ticketer(forward_secret(&hourly(1), NOW));
    let (other, other_tickets) = ticketer(forward_secret(&hourly(1), NOW));
    for keys in [&keys, &other] {
        keys.advance(at(10 * 3600));
        assert_eq!(keys.epoch(at(60)), 1010);
        assert_eq!(keys.statuses(at(60))[0].clock, ClockStatus::Behind);
    }
    assert!(understands(&keys, &other, at(60)));
    assert_eq!(open(&tickets, &seal(&other_tickets, at(60)), at(120)), Ok(()));
    // Caught up.
    assert_eq!(keys.statuses(at(10 * 3600))[0].clock, ClockStatus::Agrees);
    assert_eq!(keys.epoch(at(11 * 3600)), 1011);
}

#[test]
fn one_epoch_ahead_and_back_costs_a_forward_secret_host_no_ticket_of_others() {
    let strict = forward_secret(&hourly(1), at(1800));
    strict.advance(at(1800 + 3600));
    let right = simple(hourly(1), 2 * HOUR, at(1800));
    assert!(!understands(&strict, &right, at(1801)), "message secrets are not kept");
    let ticket = seal(&ticketer(right).1, at(1801));
    assert_eq!(open(&ticketer(strict).1, &ticket, at(1801)), Ok(()));
}

#[test]
fn a_leap_of_more_than_a_year_is_not_believed_in_forward_secret_mode() {
    let keys = forward_secret(&hourly(1), NOW);
    for now in [UnixSeconds(NOW.0 + YEAR), UnixSeconds(u64::MAX)] {
        assert_eq!(keys.epoch(now), 1000);
        assert_eq!(keys.statuses(now)[0].clock, ClockStatus::TooFarAhead);
    }
    assert_eq!(keys.epoch(at(3600)), 1001);
    assert_eq!(keys.statuses(at(3600))[0].clock, ClockStatus::Agrees);
    // A host that was off for months is believed.
    let months = UnixSeconds(NOW.0 + 300 * 24 * 3600);
    assert_eq!(keys.epoch(months), 1000 + 300 * 24);
}

#[test]
fn a_clock_before_the_origin_is_in_the_first_epoch() {
    let key = fleet_key(1, 3600, NOW);
    let keys = simple(key, 2 * HOUR, at(-3600));
    assert_eq!(
        [at(-3600), at(0), at(3599), at(3600), UnixSeconds(0)].map(|now| keys.epoch(now)),
        [0, 0, 0, 1, 0]
    );
}

#[test]
fn what_cannot_work_is_refused_with_its_reason() {
    let new = |sources, lifetime, now| FleetKeys::new(sources, lifetime, now).unwrap_err();
    let one = |secret| Source::Simple(hourly(secret));
    let fleet = hourly(1).id();
    assert_eq!(new(vec![], HOUR, NOW), BadFleetKeys::None);
    assert_eq!(new(vec![one(1), one(2), one(3)], HOUR, NOW), BadFleetKeys::TooMany);
    assert_eq!(new(vec![one(1), one(1)], HOUR, NOW), BadFleetKeys::SameFleet { fleet });
    assert_eq!(new(vec![one(1)], Duration::ZERO, NOW), BadFleetKeys::LifetimeOutOfRange);
    assert_eq!(new(vec![one(1)], 169 * HOUR, NOW), BadFleetKeys::LifetimeOutOfRange);
    let minutes = vec![Source::Simple(fleet_key(1, 60, NOW))];
    assert_eq!(new(minutes, 5 * HOUR, NOW), BadFleetKeys::TooManyKeys);
    let state = FleetState::from_key(&hourly(1), HOUR, NOW).unwrap();
    let late = UnixSeconds(NOW.0 + YEAR);
    assert_eq!(new(vec![Source::Ratcheted(state)], HOUR, late), BadFleetKeys::StateTooOld { fleet });
    let key = |origin| vec![Source::Simple(fleet_key(1, 60, UnixSeconds(origin)))];
    let ahead = BadFleetKeys::OriginAhead { fleet, seconds: 3601 };
    assert_eq!(new(key(NOW.0 + 3601), HOUR, NOW), ahead);
    let too_old = key(NOW.0 - 60 * 1_000_001);
    assert_eq!(new(too_old, HOUR, NOW), BadFleetKeys::OriginTooOld { fleet });
    assert!(FleetKeys::new(key(NOW.0 + 3600), HOUR, NOW).is_ok());
}

#[test]
fn nothing_secret_is_printed() {
    let keys = forward_secret(&hourly(1), NOW);
    let state = FleetState::from_key(&hourly(1), HOUR, NOW).unwrap();
    let shown = format!("{keys:?} {state:?} {:?} {:?}", hourly(1), keys.sealing(NOW));
    let text = keys.export(NOW)[0].1.to_string();
    for secret in ["secret", "previous-message-secret"] {
        assert!(!shown.contains(&value(&text, secret).unwrap()[..8]), "{shown}");
    }
    assert!(!shown.contains(&"01".repeat(16)), "{shown}");
}
