//! Searches on simulated servers whose knees are known.

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::Histogram;
use crate::number::{float, whole};
use crate::simulate::{exponential, normal};

/// A server with one worker and exponential service times, that differs by 0.5 % from trial to trial, and in one of
/// fifty loses three tenths of its capacity.
struct Server {
    rng: Rng,
    /// Requests a second, on average over trials.
    capacity: f64,
}

/// Requests that wait longer fail.
const PATIENCE: f64 = 1.0;

impl Server {
    fn new(seed: u64, capacity: f64) -> Self {
        Self { rng: Rng::with_seed(seed), capacity }
    }

    /// Response times and failures of a trial, each request simulated (Lindley's recursion).
    fn serve(&mut self, trial: &Trial) -> (Histogram, u64) {
        let mut capacity = self.capacity * (0.005 * normal(&mut self.rng)).exp();
        if self.rng.f64() < 0.02 {
            capacity *= 0.7;
        }
        let (mut response, mut failed) = (Histogram::default(), 0);
        let (mut now, mut free) = (0.0_f64, 0.0_f64);
        while now < trial.length().as_secs_f64() {
            now += exponential(&mut self.rng) / trial.rate;
            let wait = (free - now).max(0.0);
            let counted = now >= trial.warm_up.as_secs_f64();
            if wait > PATIENCE {
                failed += u64::from(counted);
                continue;
            }
            let service = exponential(&mut self.rng) / capacity;
            free = now + wait + service;
            if counted {
                response.record(Duration::from_secs_f64(wait + service));
            }
        }
        (response, failed)
    }
}

fn run(search: &mut Search, server: &mut Server) -> usize {
    let mut trials = 0;
    while let Step::Trial(trial) = search.step() {
        let (response, failed) = server.serve(&trial);
        report(search, &trial, &response, failed);
        trials += 1;
        assert!(trials <= MOST_TRIALS);
    }
    trials
}

fn report(search: &mut Search, trial: &Trial, response: &Histogram, failed: u64) {
    let succeeded = response.count();
    search.report(&Observation {
        attempted: succeeded + failed,
        succeeded,
        failed,
        offered: trial.rate,
        achieved: float(succeeded) / trial.measure.as_secs_f64(),
        response,
    });
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Two rules on queues of one server whose capacities lie between `slowest` and five times as much.
fn searched(seeds: std::ops::Range<u64>, slowest: f64) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let capacity = slowest * 5_f64.powf(Rng::with_seed(seed).f64());
        let mut search = Search::new(rules(&["bernat", "p99<100ms"]), Scope::new(100.0, 100_000.0)).unwrap();
        let trials = run(&mut search, &mut Server::new(seed + 1000, capacity));
        assert!(trials < 80, "{trials} trials with seed {seed}");
        assert!(search.time_spent() < Duration::from_secs(300), "{:?}", search.time_spent());
        // A response time of this queue is exponential, with a rate of what is left of its capacity.
        for (found, left) in search.findings().iter().zip([10.0, 100_f64.ln() * 10.0]) {
            tally.count(&found.finding, capacity - left);
        }
    }
    tally
}

/// How findings compare with the truth.
#[derive(Default)]
struct Tally {
    all: f64,
    right: f64,
    precise: f64,
    confirmed: f64,
}

impl Tally {
    fn count(&mut self, finding: &Finding, truth: f64) {
        self.all += 1.0;
        let Finding::Maximum { interval, precise, confirmation, .. } = finding else { return };
        self.right += f64::from(interval.contains(truth));
        self.precise += f64::from(*precise);
        self.confirmed += f64::from(matches!(confirmation, Confirmation::At(_)));
        assert!(!precise || interval.either_way() <= 0.03);
    }
}

#[test]
fn of_two_hundred_intervals_nine_of_ten_contain_the_knee() {
    let tally = searched(0..100, 300.0);
    assert!(tally.right / tally.all >= 0.9, "{} of {}", tally.right, tally.all);
    assert!(tally.confirmed / tally.all >= 0.8, "{} of {}", tally.confirmed, tally.all);
}

#[test]
fn on_servers_of_today_two_rules_are_found_within_three_percent_in_five_minutes() {
    let tally = searched(0..30, 1500.0);
    assert!(tally.right / tally.all >= 0.9, "{} of {}", tally.right, tally.all);
    assert!(tally.precise / tally.all >= 0.9, "{} of {}", tally.precise, tally.all);
    assert!(tally.confirmed / tally.all >= 0.9, "{} of {}", tally.confirmed, tally.all);
}

/// A server that answers at once up to its capacity, and beyond lets a queue grow.
fn fluid(trial: &Trial, capacity: f64) -> Histogram {
    let overload = (trial.rate / capacity - 1.0).max(0.0);
    let mut response = Histogram::default();
    for step in 0..100_u32 {
        let at = trial.warm_up.as_secs_f64() + trial.measure.as_secs_f64() * f64::from(step) / 100.0;
        let delay = Duration::from_secs_f64(0.001 + overload * at);
        response.record_many(delay, 1 + trial.measure.as_secs() * 100);
    }
    response
}

#[test]
fn an_overload_that_a_mean_feels_late_is_allowed_for() {
    for capacity in [150.0, 777.0, 12_345.0, 98_000.0] {
        let mut search = Search::new(rules(&["avg<100ms", "max<1s"]), Scope::new(100.0, 100_000.0)).unwrap();
        while let Step::Trial(trial) = search.step() {
            report(&mut search, &trial, &fluid(&trial, capacity), 0);
        }
        let Finding::Maximum { interval, precise, .. } = search.findings()[0].finding.clone() else {
            panic!()
        };
        assert!(interval.contains(capacity) && precise, "{interval:?} {capacity}");
    }
}

#[test]
fn a_maximum_that_was_never_exceeded_is_none() {
    let mut search = Search::new(rules(&["avg<100ms"]), Scope::new(100.0, 2000.0)).unwrap();
    while let Step::Trial(trial) = search.step() {
        report(&mut search, &trial, &fluid(&trial, 1e6), 0);
    }
    assert_eq!(search.findings()[0].finding, Finding::NeverExceeded { at: 2000.0 });
    assert!(search.time_spent() < Duration::from_secs(120), "{:?}", search.time_spent());
}

#[test]
fn a_server_that_fails_at_once_is_below_the_range() {
    let mut search = Search::new(rules(&["loss<1%"]), Scope::new(100.0, 2000.0)).unwrap();
    while let Step::Trial(trial) = search.step() {
        report(&mut search, &trial, &fluid(&trial, 1e6), 5000);
    }
    assert_eq!(search.findings()[0].finding, Finding::BelowRange { from: 100.0 });
}

#[test]
fn a_generator_that_gives_out_is_named_where_it_matters() {
    let mut search = Search::new(rules(&["avg<1ms", "avg<100ms"]), Scope::new(100.0, 100_000.0)).unwrap();
    while let Step::Trial(trial) = search.step() {
        if trial.rate > 3000.0 {
            search.report_invalid("core 1 was 97 % busy");
            continue;
        }
        let mut response = Histogram::default();
        response.record_many(Duration::from_micros(if trial.rate < 800.0 { 500 } else { 1500 }), 1000);
        report(&mut search, &trial, &response, 0);
    }
    let findings = search.findings();
    let Finding::Maximum { interval, .. } = &findings[0].finding else { panic!("{findings:?}") };
    assert!(interval.contains(800.0), "{interval:?}");
    let Finding::GeneratorBound { above, reason } = &findings[1].finding else { panic!("{findings:?}") };
    assert!((900.0..=3000.0).contains(above) && reason.contains("97 %"), "{above} {reason}");
}

#[test]
fn losses_too_rare_for_the_budget_are_not_called_confirmed() {
    let mut search = Search::new(rules(&["loss<0.001%"]), Scope::new(10.0, 1000.0)).unwrap();
    while let Step::Trial(trial) = search.step() {
        let attempts = trial.rate * trial.measure.as_secs_f64();
        let failed = if trial.rate > 100.0 { whole(attempts * 0.1) } else { 0 };
        let mut response = Histogram::default();
        response.record_many(Duration::from_millis(1), whole(attempts));
        report(&mut search, &trial, &response, failed);
    }
    let finding = &search.findings()[0].finding;
    assert!(!matches!(finding, Finding::Maximum { confirmation: Confirmation::At(_), .. }), "{finding:?}");
}

#[test]
fn the_step_stays_until_a_report_and_the_time_left_ends_at_zero() {
    let mut search = Search::new(rules(&["avg<100ms"]), Scope::new(100.0, 10_000.0)).unwrap();
    assert_eq!(search.step(), search.step());
    while let Step::Trial(trial) = search.step() {
        let left = search.time_left();
        assert!(left > Duration::ZERO && left + search.time_spent() <= Duration::from_secs(290));
        report(&mut search, &trial, &fluid(&trial, 700.0), 0);
    }
    assert_eq!(search.time_left(), Duration::ZERO);
}

#[test]
fn a_small_budget_has_eight_trials_and_ends_with_the_bracket_it_knows() {
    let budget = Duration::from_secs(30);
    let scope = Scope { budget, overhead: Duration::from_millis(750), ..Scope::new(50.0, 100_000.0) };
    let mut search = Search::new(rules(&["avg<100ms,loss<0.1%"]), scope).unwrap();
    let mut trials = 0;
    while let Step::Trial(trial) = search.step() {
        let (number, about) = search.trial_number();
        trials += 1;
        assert!(number == trials && (8..=40).contains(&about), "{number} of {about}");
        report(&mut search, &trial, &fluid(&trial, 100.0), 0);
        search.add_time(Duration::from_millis(500));
    }
    assert!(trials >= 8, "{trials} trials");
    assert!(search.time_spent() <= budget);

    // Two trials of which the first held and the second did not: no more than that is known.
    let mut search = Search::new(rules(&["avg<100ms,loss<0.1%"]), scope).unwrap();
    for capacity in [100_000.0, 1.0] {
        let Step::Trial(trial) = search.step() else { panic!() };
        report(&mut search, &trial, &fluid(&trial, capacity), 0);
    }
    let known = Finding::Bracket { held: Some(50.0), broken: Some(150.0) };
    assert_eq!(search.findings()[0].finding, known);
}

#[test]
fn a_search_without_a_trial_knows_nothing() {
    let search = Search::new(rules(&["avg<100ms"]), Scope::new(100.0, 2000.0)).unwrap();
    assert_eq!(search.findings()[0].finding, Finding::Bracket { held: None, broken: None });
}

#[test]
fn time_that_went_by_outside_of_trials_is_the_budgets() {
    let scope = Scope { budget: Duration::from_secs(60), ..Scope::new(100.0, 2000.0) };
    let mut search = Search::new(rules(&["avg<100ms"]), scope).unwrap();
    search.add_time(Duration::from_millis(56_900));
    let Step::Trial(trial) = search.step() else { panic!("{:?}", search.step()) };
    assert!(trial.length() <= Duration::from_millis(3100), "{trial:?}");
    search.add_time(Duration::from_millis(500));
    assert_eq!(search.step(), Step::Done);
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let error = |rules, scope| Search::new(rules, scope).unwrap_err();
    assert_eq!(error(Vec::new(), Scope::new(1.0, 2.0)), ScopeError::NoRule);
    for (from, to) in [(0.0, 5.0), (5.0, 5.0), (f64::NAN, 5.0), (1.0, f64::INFINITY)] {
        assert_eq!(error(rules(&["bernat"]), Scope::new(from, to)), ScopeError::Range);
    }
    let scope = Scope { precision: 0.0, ..Scope::new(1.0, 2.0) };
    assert_eq!(error(rules(&["bernat"]), scope), ScopeError::Precision);
    let (budget, overhead) = (Duration::from_secs(11), Duration::from_millis(500));
    let scope = Scope { budget, overhead, ..Scope::new(1.0, 2.0) };
    let why = error(rules(&["bernat"]), scope);
    assert_eq!(why, ScopeError::Budget { least: Duration::from_secs(12) });
    assert!(why.to_string().contains("a budget of 12 s or more"), "{why}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_is_reported_the_search_ends_within_its_budget(
        from in 0.01_f64..1e5, factor in 1.01_f64..1e5, precision in 0.01_f64..0.3, seconds in 0_u64..2000,
        reports in prop::collection::vec((0_u64..100_000, 0_u64..10_000, 1_u64..5000, 0_u8..20), 1..40),
    ) {
        let budget = Duration::from_secs(seconds);
        let overhead = budget.mul_f64(0.03);
        let scope = Scope { from, to: from * factor, precision, budget, overhead };
        let mut search = match Search::new(rules(&["bernat", "p99.9<1s", "rfc9411"]), scope) {
            Err(ScopeError::Budget { least }) => {
                prop_assert!(budget < least);
                return Ok(());
            }
            other => other.unwrap(),
        };
        let mut reports = reports.iter().cycle();
        let mut trials = 0;
        while let Step::Trial(trial) = search.step() {
            prop_assert!(trial.rate >= from * 0.999 && trial.rate <= scope.to * 1.001, "{:?}", trial);
            let (succeeded, failed, ms, kind) = reports.next().unwrap();
            let mut response = Histogram::default();
            response.record_many(Duration::from_millis(*ms), *succeeded);
            if *kind == 0 { search.report_invalid("busy") } else { report(&mut search, &trial, &response, *failed) }
            search.add_time(overhead.mul_f64(f64::from(*kind) / 20.0));
            trials += 1;
            prop_assert!(trials <= MOST_TRIALS);
        }
        prop_assert!(search.time_spent() <= scope.budget);
        prop_assert_eq!(search.findings().len(), 3);
    }
}
