//! The search for one rule's knee.

use std::time::Duration;

use super::{Confirmation, Finding, Kind, Scope, Trial, confirms};
use crate::search::belief::Belief;
use crate::{Interval, Observation, Rule};

/// Lengths of trials, seconds: warm-up, and what counts.
const SHORT: (f64, f64) = (1.0, 2.0);
const LONG: (f64, f64) = (3.0, 7.0);
const CONFIRM: (f64, f64) = (4.0, 16.0);

/// Longest that one trial counts for the samples that its rule needs, seconds.
const LONGEST: f64 = 60.0;

/// Above this width (upper over lower end) of the interval short trials do.
const WIDE: f64 = 1.2;

/// How much higher than the highest rate that held a trial may be, so that no server is buried.
const CLIMB: f64 = 3.0;

/// How sure it has to be that the knee lies outside what can be tried.
const SURE: f64 = 0.95;

/// What is known of one rule.
#[derive(Clone, Debug)]
pub(super) struct Quest {
    rule: Rule,
    belief: Belief,
    from: f64,
    to: f64,
    precision: f64,
    held: f64,
    broken: bool,
    confirmation: Confirmation,
}

impl Quest {
    pub(super) fn new(rule: Rule, scope: &Scope) -> Self {
        let belief = Belief::new(scope.from, scope.to, scope.precision);
        let (from, to, precision) = (scope.from, scope.to, scope.precision);
        Self { rule, belief, from, to, precision, held: 0.0, broken: false, confirmation: Confirmation::None }
    }

    pub(super) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Learns from a trial, whichever rule it was made for.
    pub(super) fn take(&mut self, trial: &Trial, observation: &Observation<'_>) {
        let leaning = self.rule.leaning(observation);
        let kind = if trial.measure.as_secs_f64() < LONG.1 { Kind::Short } else { Kind::Long };
        self.belief.learn(trial.rate, leaning, kind);
        if leaning > 0.5 {
            self.broken = true;
        } else {
            self.held = self.held.max(trial.rate);
        }
        if trial.confirm && trial.rate >= self.interval().low * 0.999 {
            self.confirm(trial, observation);
        }
    }

    /// Whether trials have nothing more to say, given what the generator cannot make.
    pub(super) fn is_settled(&self, ceiling: Option<&(f64, String)>) -> bool {
        let confirmed = self.is_precise() && self.confirmation != Confirmation::None;
        confirmed || self.is_outside(ceiling)
    }

    /// How far the interval is from what was asked for; the rule with the most comes first.
    pub(super) fn need(&self) -> f64 {
        self.interval().either_way() / self.precision
    }

    /// The trial that teaches most, at `highest` at most, in what is `left` of the budget.
    pub(super) fn trial(&self, highest: f64, left: Duration) -> Trial {
        if self.is_precise() {
            return self.confirming(highest, left);
        }
        let climb = if self.held > 0.0 { self.held * CLIMB } else { self.from };
        let rate = self.belief.quantile(0.5).min(climb).clamp(self.from, highest.max(self.from));
        let narrow = self.belief.quantile(0.975) < WIDE * self.belief.quantile(0.025);
        let (warm_up, measure) = if narrow { LONG } else { SHORT };
        // A third of what a confirmation needs is the least that leans to one side.
        let samples = measure.max(self.samples() / 3.0 / rate).min(LONGEST);
        trial(rate, warm_up, samples, false, left)
    }

    pub(super) fn time_left(&self) -> Duration {
        // A trial that always told the truth would halve the interval; real ones take half as many again.
        let halvings = self.need().max(1.0).log2();
        let trials = 1.5 * halvings;
        let long = trials.min(6.0) * (LONG.0 + LONG.1);
        let short = (trials - 6.0).max(0.0) * (SHORT.0 + SHORT.1);
        let confirm = CONFIRM.0 + CONFIRM.1.max(self.samples() / self.belief.quantile(0.5)).min(LONGEST);
        Duration::from_secs_f64(long + short + confirm)
    }

    pub(super) fn finding(&self, ceiling: Option<&(f64, String)>) -> Finding {
        let interval = self.interval();
        if let Some((limit, reason)) = ceiling.filter(|(limit, _)| !self.broken || interval.high > *limit) {
            let above = self.held.min(*limit);
            return Finding::GeneratorBound { above, reason: reason.clone() };
        }
        if self.is_above() || !self.broken {
            return Finding::NeverExceeded { at: self.held };
        }
        if self.is_below() {
            return Finding::BelowRange { from: self.from };
        }
        if interval.high > 2.0 * interval.low {
            return Finding::Unknown { interval };
        }
        let rate = f64::midpoint(interval.low, interval.high);
        let (precise, confirmation) = (self.is_precise(), self.confirmation);
        Finding::Maximum { rate, interval, precise, confirmation }
    }

    /// The middle 95 %, its lower end moved by the overload that long trials cannot see.
    fn interval(&self) -> Interval {
        let low = self.belief.quantile(0.025) * (1.0 - self.unseen());
        Interval { low, high: self.belief.quantile(0.975) }
    }

    fn unseen(&self) -> f64 {
        self.rule
            .hidden_queue()
            .map_or(0.0, |(delay, part)| (delay.as_secs_f64() / (LONG.0 + LONG.1 * part)).min(0.5))
    }

    fn is_precise(&self) -> bool {
        self.interval().either_way() <= self.precision
    }

    fn is_outside(&self, ceiling: Option<&(f64, String)>) -> bool {
        let bound = ceiling.is_some_and(|(rate, _)| self.belief.below(*rate * 0.95) < 1.0 - SURE);
        bound || self.is_above() || self.is_below()
    }

    fn is_above(&self) -> bool {
        self.belief.below(self.to) < 1.0 - SURE
    }

    fn is_below(&self) -> bool {
        self.belief.below(self.from) > SURE
    }

    /// A long trial where the rule holds if the interval is right.
    fn confirming(&self, highest: f64, left: Duration) -> Trial {
        let rate = self.interval().low.clamp(self.from, highest.max(self.from));
        let needed = CONFIRM.1.max(1.1 * self.samples() / rate).min(LONGEST);
        trial(rate, CONFIRM.0, needed, true, left)
    }

    fn confirm(&mut self, trial: &Trial, observation: &Observation<'_>) {
        let said = confirms(&self.rule.check(observation), trial.rate);
        if said != Confirmation::None {
            self.confirmation = said;
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "at most some millions")]
    fn samples(&self) -> f64 {
        self.rule.samples_to_confirm() as f64
    }
}

/// A trial, shortened to what is left of the budget where that leaves it of use.
fn trial(rate: f64, warm_up: f64, measure: f64, confirm: bool, left: Duration) -> Trial {
    let left = (left.as_secs_f64() - warm_up).max(SHORT.1);
    Trial {
        rate,
        warm_up: Duration::from_secs_f64(warm_up),
        measure: Duration::from_secs_f64(measure.min(left)),
        confirm,
    }
}
