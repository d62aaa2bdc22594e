//! Keys roll by themselves: nothing that lives is lost, nothing that is over opens, on clocks that differ a little.

use std::sync::Arc;
use std::time::Duration;

use courser_session::{FleetKey, Lifespan, ResumptionFailure, Ticketer, UnixSeconds};

use crate::{HOUR, fleet_key, hourly, policy, simple, ticketer, two_hours};

/// An hour boundary: the first second of an epoch of `ticketer`.
const ROLL: u64 = 500_000 * 3600;

fn with(key: FleetKey, lifetime: Duration, now: u64) -> Ticketer {
    Ticketer::new(Arc::new(simple(key, lifetime, UnixSeconds(now))))
}

fn seal(ticketer: &Ticketer, now: u64) -> Vec<u8> {
    let now = UnixSeconds(now);
    ticketer.seal(&policy("a"), two_hours(now), b"state", [1; 12], now).expect("the session lives")
}

fn open(ticketer: &Ticketer, ticket: &[u8], now: u64) -> Result<Vec<u8>, ResumptionFailure> {
    ticketer.open(&policy("a"), ticket, UnixSeconds(now)).map(|opened| opened.state)
}

fn key_name(ticket: &[u8]) -> &[u8] {
    &ticket[1..17]
}

#[test]
fn each_epoch_has_its_own_key() {
    let ticketer = ticketer(1);
    let (before, last, first) =
        (seal(&ticketer, ROLL - 3600), seal(&ticketer, ROLL - 1), seal(&ticketer, ROLL));
    assert_eq!(key_name(&before), key_name(&last));
    assert_ne!(key_name(&last), key_name(&first));
}

#[test]
fn a_ticket_opens_for_all_its_life_whenever_in_an_epoch_it_was_sealed() {
    for sealed in (ROLL - 3600..=ROLL).step_by(450).chain([ROLL - 1]) {
        let ticketer = ticketer(1);
        let ticket = seal(&ticketer, sealed);
        for age in (0..7200).step_by(300).chain([7199]) {
            assert!(open(&ticketer, &ticket, sealed + age).is_ok(), "sealed at {sealed}, {age} s old");
        }
        assert_eq!(open(&ticketer, &ticket, sealed + 7200), Err(ResumptionFailure::Expired));
        assert_eq!(open(&ticketer, &ticket, sealed + 5 * 3600), Err(ResumptionFailure::UnknownKey));
    }
}

#[test]
fn a_host_that_rolls_a_minute_early_is_understood_and_not_earlier() {
    let (early, late) = (ticketer(1), ticketer(1));
    let ticket = seal(&early, ROLL);
    assert!(open(&late, &ticket, ROLL - 60).is_ok());
    assert_eq!(open(&late, &ticket, ROLL - 61), Err(ResumptionFailure::UnknownKey));
}

#[test]
fn a_host_that_rolls_a_minute_late_is_understood() {
    let ticket = seal(&ticketer(1), ROLL - 1);
    assert!(open(&ticketer(1), &ticket, ROLL + 59).is_ok());
}

#[test]
fn a_clock_that_is_set_back_or_far_ahead_changes_the_answer_and_no_more() {
    let ticketer = ticketer(1);
    let ticket = seal(&ticketer, ROLL);
    for now in [ROLL + 100 * 3600, 0, u64::MAX, ROLL - 3601] {
        assert!(open(&ticketer, &ticket, now).is_err(), "at {now}");
        assert!(open(&ticketer, &ticket, ROLL + 1).is_ok(), "after {now}");
    }
}

#[test]
fn workers_that_pass_the_roll_at_different_times_need_not_roll_back_and_forth() {
    let ticketer = ticketer(1);
    // Just before the end of its life, under the oldest key that there is after the roll.
    let old = seal(&ticketer, ROLL - 7200);
    let new = seal(&ticketer, ROLL);
    for now in [ROLL - 1, ROLL - 60] {
        assert!(open(&ticketer, &old, now).is_ok(), "at {now}");
        assert_eq!(key_name(&seal(&ticketer, now)), key_name(&new), "at {now}");
    }
}

#[test]
fn a_host_whose_clock_is_set_back_over_a_roll_seals_as_it_did() {
    let ticketer = ticketer(1);
    let before = seal(&ticketer, ROLL - 61);
    let after = seal(&ticketer, ROLL);
    assert_ne!(key_name(&before), key_name(&after));
    assert_eq!(key_name(&before), key_name(&seal(&ticketer, ROLL - 61)));
}

#[test]
fn eight_workers_roll_through_epochs_together() {
    let ticketer = ticketer(1);
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let ticketer = &ticketer;
            scope.spawn(move || {
                for now in (ROLL..ROLL + 20 * 3600).step_by(60) {
                    let ticket = seal(ticketer, now + worker);
                    assert!(open(ticketer, &ticket, now).is_ok(), "worker {worker} at {now}");
                }
            });
        }
    });
}

#[test]
fn the_origin_shifts_the_roll() {
    let ticketer = with(fleet_key(1, 3600, UnixSeconds(ROLL + 600)), HOUR, ROLL);
    assert_eq!(key_name(&seal(&ticketer, ROLL)), key_name(&seal(&ticketer, ROLL + 4199)));
    assert_ne!(key_name(&seal(&ticketer, ROLL + 4199)), key_name(&seal(&ticketer, ROLL + 4200)));
}

#[test]
fn a_week_of_hourly_keys_is_kept() {
    let week = Duration::from_secs(7 * 24 * 3600);
    let ticketer = with(hourly(1), week, ROLL);
    let made = UnixSeconds(ROLL - 1);
    let lifespan = Lifespan::new(made, week);
    let ticket = ticketer.seal(&policy("a"), lifespan, b"state", [1; 12], made).unwrap();
    assert!(open(&ticketer, &ticket, made.0 + week.as_secs() - 1).is_ok());
}
