//! The search for one rule's knee.

use std::time::Duration;

use super::lengths::{Lengths, total};
use super::posterior::{Kind, Posterior};
use super::{Confirmation, Finding, Scope, Trial};
use crate::number::float;
use crate::{ConfidenceInterval, Observation, Outcome, Rule};

/// While the middle 80 % are wider than this (upper over lower end), short trials do.
const WIDE: f64 = 1.3;

/// How much farther one end of the interval may be than the other.
const LOPSIDED: f64 = 2.0;

/// How much higher than the highest rate that held a trial may be, so that no server is buried.
const CLIMB: f64 = 3.0;

/// Long trials that it takes at the end, about.
const LONG_TRIALS: f64 = 8.0;

/// How sure it has to be that the knee lies outside what can be tried.
const SURE: f64 = 0.95;

/// What is known of one rule.
#[derive(Clone, Debug)]
pub(super) struct KneeSearch {
    rule: Rule,
    scope: Scope,
    lengths: Lengths,
    unseen: f64,
    posterior: Posterior,
    /// The highest rate that a trial spoke for, zero before there is one.
    held: f64,
    /// Rates that trials spoke against.
    broken: Vec<f64>,
    confirmation: Confirmation,
}

/// What the generator cannot make.
#[derive(Clone, Debug)]
pub(super) struct Ceiling {
    /// The lowest rate that it failed at.
    pub(super) refused: f64,
    /// The highest rate that is worth a trial.
    pub(super) allowed: f64,
    pub(super) reason: String,
}

impl KneeSearch {
    pub(super) fn new(rule: Rule, scope: Scope) -> Self {
        let lengths = Lengths::new(scope.budget, scope.overhead);
        let unseen = unseen(&rule, &lengths);
        let posterior = Posterior::new(scope.from, scope.to, scope.precision, unseen / 2.0);
        let (held, broken, confirmation) = (0.0, Vec::new(), Confirmation::None);
        Self { rule, unseen, scope, lengths, posterior, held, broken, confirmation }
    }

    pub(super) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Learns from a trial, whichever rule it was made for.
    pub(super) fn take(&mut self, trial: &Trial, observation: &Observation<'_>) {
        let leaning = self.rule.leaning(observation);
        let kind = if Lengths::is_long(trial.warm_up) { Kind::Long } else { Kind::Short };
        self.posterior.learn(trial.rate, leaning, kind);
        if leaning > 0.5 {
            self.broken.push(trial.rate);
        } else {
            self.held = self.held.max(trial.rate);
        }
        if kind == Kind::Long {
            self.confirm(trial, &self.rule.check(observation));
        }
    }

    /// Whether trials have nothing more to say, given what the generator cannot make.
    pub(super) fn is_settled(&self, ceiling: Option<&Ceiling>) -> bool {
        self.is_narrow() && self.is_confirmed() || self.is_outside(ceiling)
    }

    /// How far from what was asked for trials can still bring it, 1 and less being there; the rule with the most comes
    /// first.
    pub(super) fn need(&self) -> f64 {
        self.believed().either_way()
            / (self.scope.precision - self.unseen / 4.0).max(self.scope.precision / 2.0)
    }

    /// The trial that teaches most, at `highest` at most, in what is `left` of the budget.
    pub(super) fn trial(&self, highest: f64, left: Duration) -> Trial {
        if self.is_narrow() {
            return self.confirming(highest, left);
        }
        let climb = if self.held > 0.0 { self.held * CLIMB } else { self.scope.from };
        let narrow = self.posterior.quantile(0.9) < WIDE * self.posterior.quantile(0.1);
        let rate = if narrow { self.between() } else { self.posterior.quantile(0.5) };
        let rate = (rate * self.posterior.undetectable().exp()).min(climb).clamp(self.scope.from, highest);
        let length = if narrow { self.lengths.long } else { self.lengths.short };
        // A third of what a confirmation needs is the least that leans to one side.
        let length = self.lengths.steering(length, self.samples() / 3.0 / rate);
        self.lengths.trial(rate, length, false, left)
    }

    /// Where the knee is as likely above as below; but where one end of the interval is far off for want of trials
    /// beyond, as far on that side as the other end is.
    fn between(&self) -> f64 {
        let (middle, ends) = (self.posterior.quantile(0.5), self.believed());
        let (down, up) = (middle / ends.low, ends.high / middle);
        if up.ln() > LOPSIDED * down.ln() {
            return middle * down;
        }
        if down.ln() > LOPSIDED * up.ln() { middle / up } else { middle }
    }

    /// About how long it takes from here, had the other rules nothing to teach.
    pub(super) fn time_left(&self) -> Duration {
        let trials = self.narrowing();
        let narrowing = trials.min(LONG_TRIALS) * total(self.lengths.long)
            + (trials - LONG_TRIALS).max(0.0) * total(self.lengths.short);
        let confirming = total(self.lengths.confirming(self.samples() / self.posterior.quantile(0.5)));
        Duration::from_secs_f64(if self.is_confirmed() { narrowing } else { narrowing + confirming })
    }

    /// About how many trials it takes from here.
    pub(super) fn trials_left(&self) -> f64 {
        self.narrowing() + if self.is_confirmed() { 0.0 } else { 1.0 }
    }

    /// About how many trials narrow the interval: one without an error would halve it; real ones take twice as many.
    fn narrowing(&self) -> f64 {
        2.0 * self.need().max(1.0).log2()
    }

    pub(super) fn finding(&self, ceiling: Option<&Ceiling>) -> Finding {
        let interval = self.interval();
        let broken = self.broken_above(self.held);
        let bound = |ceiling: &&Ceiling| {
            interval.high > ceiling.refused && broken.is_none_or(|rate| rate >= ceiling.refused)
        };
        if let Some(ceiling) = ceiling.filter(|ceiling| self.broken.is_empty() || bound(ceiling)) {
            return Finding::GeneratorBound { above: self.held, reason: ceiling.reason.clone() };
        }
        if self.is_below() {
            return Finding::BelowRange { from: self.scope.from };
        }
        let held = Some(self.held).filter(|held| *held > 0.0);
        if held.is_some() && (self.broken.is_empty() || self.is_above()) {
            return Finding::NeverExceeded { at: self.held };
        }
        if interval.high > 2.0 * interval.low {
            return Finding::Bracket { held, broken };
        }
        let rate = f64::midpoint(interval.low, interval.high);
        let confirmation = if self.is_confirmed() { self.confirmation } else { Confirmation::None };
        Finding::Maximum { rate, interval, precise: self.is_precise(), confirmation }
    }

    /// The lowest rate above this one that a trial spoke against.
    fn broken_above(&self, rate: f64) -> Option<f64> {
        self.broken.iter().copied().filter(|broken| *broken > rate).min_by(f64::total_cmp)
    }

    /// The middle 95 %, its lower end moved by what of an unseen overload the posterior has not allowed for.
    fn interval(&self) -> ConfidenceInterval {
        let believed = self.believed();
        ConfidenceInterval { low: believed.low * (1.0 - self.unseen / 2.0), ..believed }
    }

    fn believed(&self) -> ConfidenceInterval {
        ConfidenceInterval { low: self.posterior.quantile(0.025), high: self.posterior.quantile(0.975) }
    }

    fn is_narrow(&self) -> bool {
        self.need() <= 1.0
    }

    fn is_precise(&self) -> bool {
        self.interval().either_way() <= self.scope.precision
    }

    /// Whether a rate that is not below the interval was confirmed, or could not be for want of samples.
    fn is_confirmed(&self) -> bool {
        match self.confirmation {
            Confirmation::At(rate) | Confirmation::Missing { rate, .. } => {
                rate >= self.interval().low * 0.999
            }
            Confirmation::None => false,
        }
    }

    fn is_outside(&self, ceiling: Option<&Ceiling>) -> bool {
        let bound = ceiling.is_some_and(|ceiling| self.posterior.below(ceiling.allowed) < 1.0 - SURE);
        bound || self.is_above() || self.is_below()
    }

    fn is_above(&self) -> bool {
        self.posterior.below(self.scope.to) < 1.0 - SURE
    }

    fn is_below(&self) -> bool {
        self.posterior.below(self.scope.from) > SURE
    }

    /// A long trial where the rule holds if the interval is right.
    fn confirming(&self, highest: f64, left: Duration) -> Trial {
        let rate = self.interval().low.clamp(self.scope.from, highest);
        self.lengths.trial(rate, self.lengths.confirming(1.1 * self.samples() / rate), true, left)
    }

    /// Keeps the highest rate that held with all its samples; that samples were missing only of the trial meant to
    /// have them.
    fn confirm(&mut self, trial: &Trial, outcome: &Outcome) {
        let before = if let Confirmation::At(rate) = self.confirmation { rate } else { 0.0 };
        match outcome {
            Outcome::Holds if trial.rate > before => self.confirmation = Confirmation::At(trial.rate),
            Outcome::Undecided { more, .. } if trial.confirm => {
                self.confirmation = Confirmation::Missing { rate: trial.rate, more: *more };
            }
            Outcome::Holds | Outcome::Undecided { .. } | Outcome::Fails { .. } => {}
        }
    }

    fn samples(&self) -> f64 {
        float(self.rule.samples_to_confirm())
    }
}

/// Overload that a long trial cannot see, as a share.
fn unseen(rule: &Rule, lengths: &Lengths) -> f64 {
    let (warm_up, measure) = lengths.long;
    let share = |(delay, part): (Duration, f64)| delay.as_secs_f64() / (warm_up + measure * part);
    rule.hidden_queue().map_or(0.0, share).min(0.5)
}
