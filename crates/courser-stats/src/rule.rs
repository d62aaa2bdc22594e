//! What a rate has to satisfy to count as carried: `avg<100ms,loss<0.1%`.
//!
//! A rule is a list of limits, all of which must hold. It says so only of an observation that supports it: a
//! percentile needs 10/(1-p) samples, a limit on losses p needs 3/p attempts and a bound on the true share, and a rate
//! that may fall short of what was offered by p needs 3/p attempts.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::Histogram;

mod limit;
mod parse;
mod threshold;

pub use limit::{Limit, Seen};
pub use parse::RuleError;
pub use threshold::{Crossed, Threshold};

/// Limits that a rate has to keep, all at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    limits: Vec<Limit>,
}

/// What a trial at one offered rate saw.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'h> {
    /// Requests (or handshakes) whose intended start lay in the trial.
    pub attempted: u64,
    /// Those of them that were answered, and rightly.
    pub succeeded: u64,
    /// Those of them that failed; what was still under way at the end counts here if the caller has given it up.
    pub failed: u64,
    /// Attempts a second, as scheduled.
    pub offered: f64,
    /// Successes a second by when they ended: a server that is offered more than it serves achieves what it serves.
    pub achieved: f64,
    /// Response times of the successes, from the intended start.
    pub response: &'h Histogram,
}

/// What an observation says of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Every limit is kept, and the samples support that.
    Holds,
    /// A limit is not kept.
    Fails {
        /// Which one: the first of the rule's.
        limit: Limit,
        /// What was seen instead.
        seen: Seen,
    },
    /// No limit is known to be broken, and of one it is not known either that it is kept.
    Undecided {
        /// Which one: that which needs most.
        limit: Limit,
        /// How many more samples it needs, if they come out as those so far.
        more: u64,
    },
}

impl Rule {
    /// The rule of Vincent Bernat's comparison of 2011: an average under 100 ms, and losses under 0.1 %.
    pub fn bernat() -> Self {
        Self { limits: vec![Limit::Mean(Duration::from_millis(100)), Limit::Loss { percent: 0.1 }] }
    }

    /// The criteria of RFC 9411, section 7 (test results validation criteria): failures under 0.001 %, and a rate that
    /// deviates by less than 5 %.
    pub fn rfc9411() -> Self {
        Self { limits: vec![Limit::Loss { percent: 0.001 }, Limit::Rate { percent: 95.0 }] }
    }

    /// The limits, in the order in which they were written.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Judges an observation. Never [`Outcome::Holds`] on less than the limits need.
    pub fn check(&self, observation: &Observation<'_>) -> Outcome {
        let mut missing: Option<(Limit, u64)> = None;
        for limit in &self.limits {
            match limit.check(observation) {
                limit::LimitCheck::Yes => {}
                limit::LimitCheck::No(seen) => return Outcome::Fails { limit: *limit, seen },
                limit::LimitCheck::Unknown { more } => {
                    if missing.is_none_or(|(_, most)| more > most) {
                        missing = Some((*limit, more));
                    }
                }
            }
        }
        missing.map_or(Outcome::Holds, |(limit, more)| Outcome::Undecided { limit, more })
    }

    /// How strongly an observation speaks for a broken limit: 0 (kept) to 1 (broken), one half says nothing. Unlike
    /// [`Self::check`] it uses short trials too: those steer a search, they decide nothing.
    pub fn leaning(&self, observation: &Observation<'_>) -> f64 {
        1.0 - self.limits.iter().map(|limit| 1.0 - limit.leaning(observation)).product::<f64>()
    }

    /// How many attempts an observation needs before every limit can be found kept: 3/p for losses under p and for
    /// a rate that may fall short by p, 10/(1-p) for the percentile p.
    pub fn samples_to_confirm(&self) -> u64 {
        self.limits.iter().map(Limit::samples_to_confirm).max().unwrap_or(1)
    }

    /// How long an overload can stay unseen, seconds of queue: see [`Limit::hidden_queue`].
    pub(crate) fn hidden_queue(&self) -> Option<(Duration, f64)> {
        self.limits.iter().filter_map(Limit::hidden_queue).min_by_key(|(delay, _)| *delay)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    /// Reads `bernat`, `rfc9411`, or limits with commas between them: `avg<100ms`, `p99<100ms`, `p99.9<1s`, `max<3s`,
    /// `loss<0.01%`, `rate>95%`.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text.trim() {
            "bernat" => Ok(Self::bernat()),
            "rfc9411" => Ok(Self::rfc9411()),
            _ => parse::limits(text).map(|limits| Self { limits }),
        }
    }
}

impl FromStr for Threshold {
    type Err = RuleError;

    /// Reads `avg>100ms`, `p99>50ms`, `p99.9>1s`, `max>3s`, `loss>0.1%`, `rate<95%`, `rate<1000/s` or
    /// `handshakes<500/s`.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        parse::threshold(text)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, limit) in self.limits.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{limit}")?;
        }
        Ok(())
    }
}

impl Error for RuleError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::number::float;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap()
    }

    fn of(milliseconds: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        for (ms, times) in milliseconds {
            histogram.record_many(Duration::from_millis(*ms), *times);
        }
        histogram
    }

    fn observed(response: &Histogram, failed: u64) -> Observation<'_> {
        let succeeded = response.count();
        let attempted = succeeded + failed;
        Observation {
            attempted,
            succeeded,
            failed,
            offered: float(attempted),
            achieved: float(succeeded),
            response,
        }
    }

    #[test]
    fn a_broken_average_is_named_with_what_was_seen() {
        let slow = of(&[(150, 100)]);
        let outcome = rule("loss<50%,avg<100ms").check(&observed(&slow, 0));
        let Outcome::Fails { limit, seen } = outcome else { panic!("{outcome:?}") };
        assert_eq!((limit.to_string().as_str(), seen.to_string().as_str()), ("avg<100ms", "150ms"));
    }

    #[test]
    fn a_limit_on_losses_is_confirmed_only_from_three_over_p_attempts() {
        let one_in_thousand = rule("loss<0.1%");
        let outcome = one_in_thousand.check(&observed(&of(&[(1, 2990)]), 0));
        assert!(matches!(outcome, Outcome::Undecided { more: 1..=20, .. }), "{outcome:?}");
        assert_eq!(one_in_thousand.check(&observed(&of(&[(1, 3000)]), 0)), Outcome::Holds);
    }

    #[test]
    fn a_limit_on_losses_is_refuted_only_beyond_chance() {
        let limit = rule("loss<0.1%");
        // 6 of 3000 are twice the limit, and what a share of just under 0.1 % gives in one of twelve cases.
        assert!(matches!(limit.check(&observed(&of(&[(1, 2994)]), 6)), Outcome::Undecided { .. }));
        assert!(matches!(limit.check(&observed(&of(&[(1, 2985)]), 15)), Outcome::Fails { .. }));
    }

    #[test]
    fn the_samples_that_are_missing_decide_when_they_have_come() {
        let limit = rule("loss<0.1%");
        let Outcome::Undecided { more, .. } = limit.check(&observed(&of(&[(1, 3998)]), 2)) else { panic!() };
        let attempts = 4000 + more;
        let failures = 2 * attempts / 4000;
        let outcome = limit.check(&observed(&of(&[(1, attempts - failures)]), failures));
        assert_eq!(outcome, Outcome::Holds, "{more}");
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let p99 = rule("p99<100ms");
        assert!(matches!(p99.check(&observed(&of(&[(5, 900)]), 0)), Outcome::Undecided { more: 100, .. }));
        assert_eq!(p99.check(&observed(&of(&[(5, 995), (500, 5)]), 0)), Outcome::Holds);
        assert!(matches!(p99.check(&observed(&of(&[(5, 980), (500, 20)]), 0)), Outcome::Fails { .. }));
    }

    #[test]
    fn the_rate_is_what_was_achieved_of_what_was_offered() {
        let histogram = of(&[(1, 400_000)]);
        let mut seen = observed(&histogram, 0);
        assert_eq!(Rule::rfc9411().check(&seen), Outcome::Holds);
        seen.achieved = 0.9 * seen.offered;
        assert!(matches!(
            Rule::rfc9411().check(&seen),
            Outcome::Fails { limit: Limit::Rate { .. }, seen: Seen::Percent(_) }
        ));
    }

    #[test]
    fn a_rate_is_judged_from_three_over_what_may_be_missing() {
        let limit = rule("rate>95%");
        let check = |attempted: u64, served: u64| {
            let histogram = of(&[(1, attempted)]);
            limit.check(&Observation { achieved: float(served), ..observed(&histogram, 0) })
        };
        // One that ends after the window is a tenth of ten.
        assert!(matches!(check(10, 9), Outcome::Undecided { more: 50, .. }));
        assert!(matches!(check(59, 59), Outcome::Undecided { more: 1, .. }));
        assert_eq!(check(60, 59), Outcome::Holds);
        assert!(matches!(check(60, 57), Outcome::Fails { .. }));
        // Beyond chance, few are enough.
        assert!(matches!(check(20, 5), Outcome::Fails { .. }));
        assert_eq!(limit.samples_to_confirm(), 60);
        assert_eq!(rule("rate>99.9%").samples_to_confirm(), 3000);
    }

    #[test]
    fn a_server_that_never_answers_keeps_no_limit_on_time() {
        let none = Histogram::default();
        for text in ["avg<1s", "p99<1s", "max<1s"] {
            let outcome = rule(text).check(&observed(&none, 50));
            assert!(matches!(outcome, Outcome::Fails { seen: Seen::Nothing, .. }), "{outcome:?}");
            assert!(matches!(rule(text).check(&observed(&none, 0)), Outcome::Undecided { .. }));
        }
    }

    #[test]
    fn leaning_grows_with_the_losses_and_says_nothing_of_nothing() {
        let limit = rule("loss<0.1%");
        let lean = |succeeded, failed| limit.leaning(&observed(&of(&[(1, succeeded)]), failed));
        assert!((lean(1, 0) - 0.5).abs() < 0.01);
        assert!(lean(3000, 0) < 0.01 && lean(3000, 2) < lean(3000, 5) && lean(3000, 9) > 0.99);
    }

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        for text in [
            "avg<100ms,loss<0.1%",
            "p99<100ms",
            "p99.9<1500us",
            "max<3s",
            "loss<0.001%,rate>95%",
            "p50<1.5us",
        ] {
            assert_eq!(rule(text).to_string(), text);
        }
        assert_eq!(rule("bernat"), rule(" avg < 100ms , loss < 0.1% "));
        assert_eq!(rule("rfc9411").to_string(), "loss<0.001%,rate>95%");
    }

    #[test]
    fn an_error_names_the_place_and_what_is_known() {
        for (text, expected) in [
            (
                "",
                "column 1: a limit is missing; limits are such as avg<100ms, p99.9<1s, max<3s, loss<0.1%, rate>95%",
            ),
            (
                "avg<100ms,los<1%",
                "column 11: no measure is called `los`; known are avg, p50 to p99.999, max, loss, rate",
            ),
            ("avg>100ms", "column 4: `avg` needs `<` here, as in avg<100ms"),
            ("rate<95%", "column 5: `rate` needs `>` here, as in rate>95%"),
            ("avg<100", "column 8: a time needs its unit: us, ms or s"),
            ("avg<100m", "column 8: no unit of time is called `m`; known are us, ms, s"),
            ("loss<x%", "column 6: `x` is no number above zero"),
            ("loss<101%", "column 6: a share lies between 0% and 100%, both excluded"),
            ("loss<1", "column 7: a share needs `%`"),
            (
                "p100<1s",
                "column 1: no measure is called `p100`; known are avg, p50 to p99.999, max, loss, rate",
            ),
            (
                "avg<1s,",
                "column 8: a limit is missing; limits are such as avg<100ms, p99.9<1s, max<3s, loss<0.1%, rate>95%",
            ),
        ] {
            assert_eq!(text.parse::<Rule>().unwrap_err().to_string(), format!("rule, {expected}"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_what_is_read_is_written_alike(
            text in "([a-z0-9.]{0,7}[<>=]?[0-9.e]{0,6}(us|ms|s|%|µ)?[, ]?){0,4}",
        ) {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
            }
        }

        #[test]
        fn a_judgement_always_comes(succeeded in 0_u64..50_000, failed in 0_u64..500, ms in 1_u64..400) {
            let histogram = of(&[(ms, succeeded)]);
            let seen = observed(&histogram, failed);
            for text in ["bernat", "rfc9411", "p99<100ms", "max<3s,loss<1%"] {
                let outcome = rule(text).check(&seen);
                let broken = matches!(outcome, Outcome::Fails { .. });
                prop_assert!(!broken || rule(text).leaning(&seen) > 0.5, "{} {:?}", text, outcome);
            }
        }
    }
}
