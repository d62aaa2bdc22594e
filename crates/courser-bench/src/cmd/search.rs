//! `search`: the highest rate that satisfies rules.

use std::time::{Duration, Instant};

use courser_lab::findings;
use courser_load::plan::{Model, Phases, Plan};
use courser_load::spec::LoadSpec;
use courser_load::tally::Tally;
use courser_record::{Finding as Note, Found, LoadKind, Run, Severity};
use courser_stats::search::{Confirmation, Finding, Scope, ScopeError, Search, Step, Trial};
use courser_stats::{Observation, Rule};

use crate::cli::SearchArgs;
use crate::deliver;
use crate::exit::{Ended, Failure};
use crate::experiment::Asked;
use crate::session::{self, Session};

pub(crate) fn search(args: &SearchArgs) -> Result<Ended, Failure> {
    let rules = args
        .rules
        .iter()
        .map(|rule| rule.parse())
        .collect::<Result<Vec<Rule>, _>>()
        .map_err(Failure::usage)?;
    let mut spec = args.spec();
    spec.phases.drain = drain(args.budget, spec.phases.drain);
    let overhead = spec.phases.drain;
    let scope = Scope { budget: args.budget, overhead, ..Scope::new(args.from, args.to) };
    let mut search = Search::new(rules, scope).map_err(|why| Failure::usage(refusal(&why)))?;
    if spec.reuse == 0 {
        return Err(Failure::usage("a search offers sessions: --reuse 1 or more"));
    }
    let plan = session::plan(&spec)?;
    let mut session = Session::open(&spec, &args.common.output, &plan)?;
    let runs = trials(&mut search, &mut session, &plan)?;
    let (kind, rules) = (LoadKind::Sessions, args.rules.clone());
    let asked = Asked { command: "search", kind, rate_to: Some(args.to), rules };
    let mut record = session.record(&plan, asked, runs);
    record.found = search.findings().iter().map(found).collect();
    let ended = deliver::deliver(&record, &args.common.output)?;
    let none = |found: &courser_stats::search::Found| {
        matches!(found.finding, Finding::BelowRange { .. } | Finding::Bracket { held: None, broken: Some(_) })
    };
    Ok(if ended == Ended::Well && search.findings().iter().any(none) { Ended::NoRate } else { ended })
}

/// The drain of a trial: a fortieth of the budget, so that eight trials do not spend it on their last connections; half a
/// second at least, and not more than was asked for.
fn drain(budget: Duration, asked: Duration) -> Duration {
    (budget / 40).max(Duration::from_millis(500)).min(asked)
}

fn refusal(why: &ScopeError) -> String {
    match why {
        ScopeError::Budget { .. } => format!("{why} (--budget)"),
        _ => why.to_string(),
    }
}

fn trials(search: &mut Search, session: &mut Session<'_>, plan: &Plan) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    let mut spoilt = Vec::new();
    while let Step::Trial(trial) = search.step() {
        let label = format!("trial {} at {:.0}/s", runs.len() + 1, trial.rate);
        session.runner.watch.trial(search.trial_number(), trial.rate, search.time_left());
        let started = Instant::now();
        let (outcome, run) = session.runner.run(&label, &of_trial(plan, &trial, session.spec))?;
        let took = started.elapsed();
        let (Some(mut run), Some(counted)) = (run.into_iter().next(), outcome.windows.first()) else { break };
        // A server that answers nothing breaks the rule.
        let spoils = |_: &String| !outcome.cut && findings::is_spoilt(&run);
        let inconclusive = run.verdict.inconclusive.clone().filter(spoils);
        // A neighbour on the machine spoils a trial now and then; the same trial again tells that from a limit.
        if let Some(reason) = inconclusive.clone().filter(|_| spoilt.len() < AGAIN) {
            spoilt.push(reason);
            search.add_time(took);
            continue;
        }
        run.findings.extend(spoilt.drain(..).map(tried_again));
        match inconclusive {
            _ if outcome.cut => {}
            None => search.report(&observation(&run, &counted.tally)),
            Some(reason) => search.report_invalid(reason),
        }
        runs.push(run);
        if outcome.cut {
            break;
        }
        search.add_time(took.saturating_sub(trial.length()));
    }
    Ok(runs)
}

fn tried_again(reason: String) -> Note {
    let advice =
        "the trial before this one was not used; one that fails three times ends the search above its rate";
    Note::new("tried-again", Severity::Note, reason, advice)
}

/// How often a trial that the generator could not make is tried again.
const AGAIN: usize = 2;

/// The plan of a trial: the rate climbs over the warm-up, and what is seen after it counts.
fn of_trial(plan: &Plan, trial: &Trial, spec: &LoadSpec) -> Plan {
    let phases = Phases { warm_up: Duration::ZERO, ramp: trial.warm_up, ..plan.phases };
    Plan { model: Model::Sessions(spec.steady(trial.rate, trial.measure)), phases, ..plan.clone() }
}

fn observation<'c>(run: &Run, tally: &'c Tally) -> Observation<'c> {
    let per_second = |count| run.totals.per_second(count).unwrap_or(0.0);
    Observation {
        attempted: tally.attempted,
        succeeded: tally.succeeded,
        failed: tally.failed(),
        offered: per_second(tally.attempted),
        // What ended within the window: of what was to start in it, all may succeed while a queue is worked off after it.
        achieved: per_second(tally.completed.transactions),
        response: &tally.response_intended,
    }
}

fn found(found: &courser_stats::search::Found) -> Found {
    let mut found_rate =
        Found { rule: found.rule.to_string(), rate: None, rate_low: None, rate_high: None, note: None };
    match &found.finding {
        Finding::Maximum { rate, interval, precise, confirmation } => {
            found_rate.rate = Some(*rate);
            (found_rate.rate_low, found_rate.rate_high) = (Some(interval.low), Some(interval.high));
            let width =
                if *precise { "" } else { "the time was up before the interval was as narrow as asked; " };
            found_rate.note = Some(format!("{width}{}", confirmed(confirmation)));
        }
        Finding::NeverExceeded { at } => {
            found_rate.rate_low = Some(*at);
            found_rate.note = Some(format!(
                "never exceeded: it holds at {at:.0}/s; a search has to see failure above (more --budget, or a higher --to)"
            ));
        }
        Finding::BelowRange { from } => {
            found_rate.rate_high = Some(*from);
            found_rate.note = Some(format!("broken at {from:.0}/s already (--from)"));
        }
        Finding::GeneratorBound { above, reason } => {
            found_rate.rate_low = Some(*above).filter(|above| *above > 0.0);
            let limit =
                found_rate.rate_low.map_or("at every rate".to_owned(), |low| format!("above {low:.0}/s"));
            found_rate.note = Some(format!("the generator was the limit {limit}: {reason}"));
        }
        Finding::Bracket { held, broken } => {
            (found_rate.rate_low, found_rate.rate_high) = (*held, *broken);
            found_rate.note = Some(bracket(*held, *broken));
        }
    }
    found_rate
}

/// What became of the rates around an answer for which there was no time.
fn bracket(held: Option<f64>, broken: Option<f64>) -> String {
    let known = match (held, broken) {
        (Some(held), Some(broken)) => format!("kept at {held:.0}/s, broken at {broken:.0}/s"),
        (Some(held), None) => format!("kept at {held:.0}/s, though broken at a lower rate"),
        (None, Some(broken)) => format!("broken at {broken:.0}/s, kept at no rate"),
        (None, None) => "no trial was completed".to_owned(),
    };
    format!("{known}; the time was up before more was known (--budget)")
}

fn confirmed(confirmation: &Confirmation) -> String {
    match confirmation {
        Confirmation::At(rate) => format!("confirmed at {rate:.0}/s"),
        Confirmation::Missing { rate, more } => {
            format!("at {rate:.0}/s {more} more samples would confirm it")
        }
        Confirmation::None => "not confirmed by a long trial".into(),
    }
}

#[cfg(test)]
mod tests {
    use courser_record::{Completions, RunTimes, Totals, Verdict};
    use courser_stats::rule::Outcome;

    use super::*;

    /// A server that serves 90 a second, is offered 400, and is waited for until it has served all of them.
    #[test]
    fn the_rule_of_rfc_9411_sees_an_overload_that_loses_nothing() {
        let completed = Completions { transactions: 180, connections: 180, ..Completions::default() };
        let tally = Tally { attempted: 800, succeeded: 800, completed, ..Tally::default() };
        let run = Run {
            label: String::new(),
            offered_rate: Some(400.0),
            window: RunTimes::default(),
            totals: Totals { window_us: 2_000_000, ..Totals::default() },
            seconds: Vec::new(),
            server: None,
            generators: Vec::new(),
            wire: None,
            findings: Vec::new(),
            verdict: Verdict::valid(),
        };
        let rule: Rule = "rate>95%".parse().unwrap();
        let outcome = rule.check(&observation(&run, &tally));
        let Outcome::Fails { seen, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(seen.to_string(), "22.5%");
    }
}
