//! The highest rate that satisfies a rule, for several rules at once: a machine that says which trial is next.
//!
//! **Method.** The rate at which a rule ceases to hold (its knee) is estimated as psychophysics estimates a threshold:
//! each trial either keeps or breaks the rule, with a probability that climbs with the rate, and that a hiccup can turn
//! round in a few of a hundred trials. What the trials say of the knee and of how steep the climb is is kept as a
//! probability of each (QUEST: Watson and Pelli, Perception and Psychophysics 33, 1983; the psi method: Kontsevich and
//! Tyler, Vision Research 39, 1999), and the next trial goes where the knee is as likely above as below: bisection,
//! which forgives a trial that lied. Each trial answers all rules, as in MLRsearch (draft-ietf-bmwg-mlrsearch). Short
//! trials find the neighbourhood, climbing from below so that no server is buried; longer ones narrow it; and a long
//! one within the interval has to hold with all the samples that the rule needs: at its lower end, if none has before.
//!
//! **Knee.** The rate at which one in five trials breaks the rule. What breaks a rule on time are rare and long
//! excursions of a queue: where the mean over all time is just at the limit, most trials of seconds still hold.
//!
//! **Confidence interval.** The middle 95 % of that probability, its lower end moved by what a trial cannot see: an overload of a
//! share e fills a queue by e seconds each second, so that a mean below T says nothing of overloads under T over half
//! the trial.
//!
//! **What to expect**, from 300 simulated servers each (a queue with exponential times, 0.5 % of noise and a hiccup in
//! one of fifty trials), of two rules at once and 3 % either way: capacities from 1,500/s take 166 s on average, 96 %
//! of the intervals are as narrow as asked for, 99 % contain the knee. From 300/s, where a queue's own chance decides
//! within seconds, 230 s, 63 % and 91 %.
//!
//! **Limits.** One knee: a rule that holds again beyond it (a server that sheds load well) is followed to one of its
//! knees. A server slower by the hour has no knee to find; the interval is that of the time of the search. Between
//! trials the caller waits until the server has worked off what the last one left.

use std::time::Duration;

use crate::number::index;
use crate::{ConfidenceInterval, Observation, Rule};

mod knee;
mod lengths;
mod posterior;
#[cfg(test)]
mod tests;

use knee::{Ceiling, KneeSearch};
use lengths::Lengths;

/// Where to search, how precisely, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scope {
    /// Lowest rate that is tried, per second.
    pub from: f64,
    /// Highest rate that is tried, per second.
    pub to: f64,
    /// Half the width of the interval, as a share: 0.03 is 3 % either way.
    pub precision: f64,
    /// Time of trials, warm-up and overhead included, after which the search ends with what is known. Lengths of trials
    /// follow from it: there are at least eight, unless fewer suffice.
    pub budget: Duration,
    /// Time that a trial may take beyond its length, for its last connections: the budget is planned with it, and charged
    /// with what [`Search::add_time`] reports.
    pub overhead: Duration,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Offer this rate, and report what was seen in `measure`.
    Trial(Trial),
    /// The search is over: [`Search::findings`].
    Done,
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// To offer, per second.
    pub rate: f64,
    /// For how long before what is seen counts.
    pub warm_up: Duration,
    /// For how long it counts.
    pub measure: Duration,
    /// Whether this one is to confirm a rate.
    pub confirm: bool,
}

impl Trial {
    /// How long it takes.
    pub fn length(&self) -> Duration {
        self.warm_up + self.measure
    }
}

/// What was found for one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The rule.
    pub rule: Rule,
    /// Its highest rate, or why there is none.
    pub finding: Finding,
}

/// The highest rate that satisfies a rule, or why that is not known. Rates are per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It was found: the rule was broken above it.
    Maximum {
        /// Best estimate.
        rate: f64,
        /// 95 % interval of the knee.
        interval: ConfidenceInterval,
        /// Whether the interval is as narrow as was asked for; when not, the budget ended first.
        precise: bool,
        /// Whether a long trial confirmed a rate of the interval.
        confirmation: Confirmation,
    },
    /// The rule held up to the highest rate that was tried: a search has to see failure above a maximum.
    NeverExceeded {
        /// The highest rate that held.
        at: f64,
    },
    /// The rule was broken at the lowest rate already.
    BelowRange {
        /// The lowest rate that may be tried.
        from: f64,
    },
    /// The generator could not offer what it would have taken to break the rule.
    GeneratorBound {
        /// The highest rate that held; zero when none did.
        above: f64,
        /// The caller's words.
        reason: String,
    },
    /// The budget ended before more was known than what became of the rates that were tried.
    Bracket {
        /// The highest rate that held; none when none did.
        held: Option<f64>,
        /// The lowest rate above it that broke the rule; none when no trial above it did.
        broken: Option<f64>,
    },
}

/// What a long trial within the interval said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Confirmation {
    /// The rule held at this rate, the highest one, with all the samples that it needs.
    At(f64),
    /// The samples did not suffice; so many more attempts are needed.
    Missing {
        /// The rate that was tried.
        rate: f64,
        /// Attempts beyond those of the trial.
        more: u64,
    },
    /// The budget ended before a trial of this kind held.
    None,
}

/// Why a search cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeError {
    /// There is no rule.
    NoRule,
    /// `from` is above zero and below `to`, and `to` is at most a million times as high.
    Range,
    /// The precision is between 0.5 % and 30 %.
    Precision,
    /// The budget is too small for eight trials of a second.
    Budget {
        /// The least that suffices.
        least: Duration,
    },
}

/// A search that is under way.
#[derive(Clone, Debug)]
pub struct Search {
    scope: Scope,
    quests: Vec<KneeSearch>,
    spent: Duration,
    trials: usize,
    /// The highest rate that the generator made.
    made: f64,
    ceiling: Option<Ceiling>,
    refused: u32,
    step: Step,
}

/// Trials after which a search ends whatever the budget: many times what any simulation took.
const MOST_TRIALS: usize = 200;

/// Trials that the generator may fail before no higher rate is asked of it than it has made.
const MOST_REFUSED: u32 = 3;

impl Scope {
    /// Between two rates, at 3 % either way, in under five minutes.
    pub fn new(from: f64, to: f64) -> Self {
        Self { from, to, precision: 0.03, budget: Duration::from_secs(290), overhead: Duration::ZERO }
    }

    fn check(&self) -> Result<(), ScopeError> {
        let range = self.from > 0.0 && self.to > self.from && self.to <= self.from * 1e6;
        if !range {
            return Err(ScopeError::Range);
        }
        if !(0.005..=0.3).contains(&self.precision) {
            return Err(ScopeError::Precision);
        }
        let least = Lengths::least_budget(self.overhead);
        if self.budget < least { Err(ScopeError::Budget { least }) } else { Ok(()) }
    }
}

impl Search {
    /// A search that has seen nothing.
    pub fn new(rules: Vec<Rule>, scope: Scope) -> Result<Self, ScopeError> {
        scope.check()?;
        if rules.is_empty() {
            return Err(ScopeError::NoRule);
        }
        let quests = rules.into_iter().map(|rule| KneeSearch::new(rule, scope)).collect();
        let step = Step::Done;
        let spent = Duration::ZERO;
        let mut search = Self { scope, quests, spent, trials: 0, made: 0.0, ceiling: None, refused: 0, step };
        search.advance();
        Ok(search)
    }

    /// What to do next; the same until something is reported.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Takes what the trial of [`Self::step`] saw.
    pub fn report(&mut self, observation: &Observation<'_>) {
        let Step::Trial(trial) = self.step else { return };
        for quest in &mut self.quests {
            quest.take(&trial, observation);
        }
        self.made = self.made.max(trial.rate);
        self.count(&trial);
    }

    /// Takes that the generator could not make the trial's rate, and why. The search goes on below; after a few such
    /// trials not above what was made before, and after twice as many it ends.
    pub fn report_invalid(&mut self, reason: impl Into<String>) {
        let Step::Trial(trial) = self.step else { return };
        self.refused += 1;
        let refused = self.ceiling.as_ref().map_or(trial.rate, |ceiling| ceiling.refused.min(trial.rate));
        let made = self.made.min(refused);
        let allowed = if self.refused < MOST_REFUSED { (made * refused).sqrt() } else { made };
        self.ceiling = Some(Ceiling { refused, allowed: allowed.min(refused * 0.95), reason: reason.into() });
        self.count(&trial);
    }

    /// Takes time that went by beyond the lengths of trials: drains, and trials that were no use. What is left of the
    /// budget, and with it the next trial, becomes shorter.
    pub fn add_time(&mut self, time: Duration) {
        self.spent += time;
        if self.step != Step::Done {
            self.advance();
        }
    }

    /// What is known, rule by rule, in the order given: at any time, for good once the step is [`Step::Done`].
    pub fn findings(&self) -> Vec<Found> {
        self.quests
            .iter()
            .map(|quest| Found { rule: quest.rule().clone(), finding: quest.finding(self.ceiling.as_ref()) })
            .collect()
    }

    /// The number of the next trial, from 1, and about how many there will be.
    pub fn trial_number(&self) -> (usize, usize) {
        let Step::Trial(next) = self.step else { return (self.trials, self.trials) };
        let left = self.scope.budget.saturating_sub(self.spent).as_secs_f64();
        let fit = left / (next.length() + self.scope.overhead).as_secs_f64();
        let needed: f64 = self.open().map(KneeSearch::trials_left).fold(1.0, f64::max);
        let number = self.trials + 1;
        (number, number + index(needed.min(fit).max(1.0).ceil()) - 1)
    }

    /// Time of trials so far, warm-up included, and what [`Self::add_time`] added.
    pub fn time_spent(&self) -> Duration {
        self.spent
    }

    /// About how much more there is to come; zero when it is over.
    pub fn time_left(&self) -> Duration {
        let Step::Trial(next) = self.step else { return Duration::ZERO };
        let open: Duration = self.open().map(KneeSearch::time_left).sum();
        open.max(next.length()).min(self.scope.budget.saturating_sub(self.spent))
    }

    fn count(&mut self, trial: &Trial) {
        self.spent += trial.length();
        self.trials += 1;
        self.advance();
    }

    fn advance(&mut self) {
        let over = self.trials >= MOST_TRIALS || self.refused >= 2 * MOST_REFUSED;
        let next = if over { None } else { self.next_trial() };
        let left = self.scope.budget.saturating_sub(self.spent);
        let fits = |trial: &Trial| trial.length() + self.scope.overhead <= left;
        self.step = next.filter(fits).map_or(Step::Done, Step::Trial);
    }

    /// The trial that the rule with the most to learn asks for.
    fn next_trial(&self) -> Option<Trial> {
        let left = self.scope.budget.saturating_sub(self.spent);
        let neediest = self.open().max_by(|one, other| one.need().total_cmp(&other.need()))?;
        let highest = self.ceiling.as_ref().map_or(self.scope.to, |ceiling| ceiling.allowed);
        (highest >= self.scope.from).then(|| neediest.trial(highest, left))
    }

    fn open(&self) -> impl Iterator<Item = &KneeSearch> {
        self.quests.iter().filter(|quest| !quest.is_settled(self.ceiling.as_ref()))
    }
}

impl std::fmt::Display for ScopeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRule => f.write_str("a search needs a rule, such as avg<100ms,loss<0.1%"),
            Self::Range => f.write_str(
                "a search goes from a rate above zero to a higher one, at most a million times as high",
            ),
            Self::Precision => f.write_str("a precision lies between 0.5 % and 30 %"),
            Self::Budget { least } => write!(
                f,
                "a search needs a budget of {} s or more: eight trials of a second with what each takes beyond it",
                least.as_secs_f64().ceil()
            ),
        }
    }
}

impl std::error::Error for ScopeError {}
