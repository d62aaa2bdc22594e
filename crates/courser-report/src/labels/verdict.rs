//! The headline of a suite: who, by how much, how sure, and what is inconclusive.

use std::collections::BTreeMap;

use courser_record::Lab;
use courser_record::lab::{CellState, Era, Measure};

use super::order;
use crate::labels;
use crate::ranking::{Outcome, Ranking, rankings};

/// A suite in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Who is ahead, by how much, how sure, in sentences of at most 25 words: of each era and preset, those of today first.
    pub sentences: Vec<String>,
    /// Cautions for a reader.
    pub cautions: Vec<String>,
}

/// The verdict of a suite.
pub fn verdict(lab: &Lab) -> Verdict {
    let rankings = rankings(lab);
    let mut sentences: Vec<String> =
        groups(lab, &rankings).iter().flat_map(|group| group.sentences(lab)).collect();
    if sentences.is_empty() {
        sentences.push(nothing(lab));
    }
    Verdict { sentences, cautions: cautions(lab, &rankings) }
}

fn nothing(lab: &Lab) -> String {
    let measured = lab.cells.iter().filter(|cell| cell.state == CellState::Done).count();
    let in_process = lab.cases.iter().all(|case| case.measure == Measure::InProcess);
    match measured {
        0 => "Nothing was measured.".to_owned(),
        _ if in_process => {
            "Figures of libraries without a network: the tables show what each takes.".to_owned()
        }
        _ => "There are not two targets to compare; the tables show what was measured.".to_owned(),
    }
}

/// The rankings of an era of cases and a preset of targets.
struct Group<'a> {
    cases: Era,
    targets: String,
    rankings: Vec<&'a Ranking>,
}

fn groups<'a>(lab: &Lab, rankings: &'a [Ranking]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for ranking in rankings {
        let cases = lab.case(&ranking.case).map_or(Era::Modern, |case| case.era);
        match groups.iter_mut().find(|group| group.cases == cases && group.targets == ranking.preset) {
            Some(group) => group.rankings.push(ranking),
            None => groups.push(Group { cases, targets: ranking.preset.clone(), rankings: vec![ranking] }),
        }
    }
    groups.sort_by_key(|group| (group.cases, group.targets == "stock"));
    groups
}

impl Group<'_> {
    /// Each of at most 25 words; case by case it stands below.
    fn sentences(&self, lab: &Lab) -> Vec<String> {
        let label = match self.targets.as_str() {
            "" => format!("{} cases", capital(labels::era(self.cases))),
            preset => format!("{} cases, {preset} settings", capital(labels::era(self.cases))),
        };
        let mut first = BTreeMap::<&str, Vec<Outcome>>::new();
        let (mut level, mut not_compared, mut open, mut unknown) = (Vec::new(), 0, 0, 0);
        for ranking in &self.rankings {
            match leader(ranking) {
                Leader::Ahead(target, outcome) => first.entry(target).or_default().push(outcome),
                Leader::Level(smallest) => level.push(smallest),
                Leader::NotCompared => not_compared += 1,
                Leader::Open => open += 1,
                Leader::Unknown => unknown += 1,
            }
        }
        let mut first: Vec<_> = first.into_iter().collect();
        first.sort_by_key(|(_, won)| std::cmp::Reverse(won.len()));
        let all = self.rankings.len();
        let mut parts: Vec<String> =
            first.iter().map(|(target, won)| ahead(labels::short_target(lab, target), won, all)).collect();
        parts.extend(levelled(&level, all));
        let others = [
            (not_compared, "not compared", "each target serves practically all, or no value varies"),
            (open, "no verdict", "a target's figures are inconclusive"),
            (unknown, "no verdict", "too few rounds, or a single target with figures"),
        ];
        let counted = others.iter().filter(|(count, ..)| *count > 0);
        parts.extend(counted.map(|(count, what, why)| format!("{what} in {count} of {all}: {why}")));
        parts.into_iter().map(|part| format!("{label}: {part}.")).collect()
    }
}

enum Leader<'a> {
    Ahead(&'a str, Outcome),
    /// The first two did not differ detectably; this is the minimum detectable difference.
    Level(f64),
    NotCompared,
    /// One whose figures are inconclusive may be the first.
    Open,
    Unknown,
}

fn leader(ranking: &Ranking) -> Leader<'_> {
    match ranking.closest() {
        _ if ranking.is_open() => Leader::Open,
        Some(pair) => match pair.outcome {
            Outcome::Ahead { .. } => Leader::Ahead(&pair.ahead, pair.outcome),
            Outcome::NotSeen { min_detectable } => Leader::Level(min_detectable),
            Outcome::NotCompared(_) => Leader::NotCompared,
            Outcome::TooFew { .. } => Leader::Unknown,
        },
        None => Leader::Unknown,
    }
}

fn ahead(target: &str, won: &[Outcome], all: usize) -> String {
    let factors: Vec<f64> = won
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Ahead { factor, .. } => Some(*factor),
            _ => None,
        })
        .collect();
    let (low, high) = ends(&factors);
    match won {
        [one] => format!("{target} is first in 1 of {all}, ahead of the next {}", order::by(*one)),
        _ => format!(
            "{target} is first in {} of {all}, ahead of the next by a factor of {}",
            won.len(),
            order::factor_range(low, high)
        ),
    }
}

fn levelled(level: &[f64], all: usize) -> Option<String> {
    let (_, worst) = ends(level);
    (!level.is_empty()).then(|| {
        format!(
            "no difference seen between the first two in {} of {all}; {} would have been",
            level.len(),
            order::detectable(worst)
        )
    })
}

fn ends(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn cautions(lab: &Lab, rankings: &[Ranking]) -> Vec<String> {
    let mut cautions = Vec::new();
    if lab.quick {
        cautions.push(
            "The quick variant: fewer and shorter blocks, so small differences stay unseen.".to_owned(),
        );
    }
    let mut windows = lab.cells.iter().flat_map(|cell| &cell.blocks).flat_map(|block| &block.windows);
    if windows.any(|window| window.completed.is_none() && window.attempted > 0) {
        cautions.push(labels::WITHOUT_COMPLETIONS.to_owned());
    }
    let inconclusive = rankings.iter().filter(|ranking| ranking.basis.instead_of_rate.is_some()).count();
    if inconclusive > 0 {
        let all = labels::counted(rankings.len(), "comparison");
        cautions.push(format!(
            "Rates are inconclusive in {inconclusive} of {all}: those go by processor time per connection."
        ));
    }
    let cells = |state| lab.cells.iter().filter(|cell| cell.state == state).count();
    let counts = [
        (CellState::Cannot, "cannot be done by its target"),
        (CellState::Failed, "failed"),
        (CellState::Pending, "not measured to its end"),
    ];
    let counted: Vec<String> = counts
        .iter()
        .map(|(state, what)| (cells(*state), what))
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !counted.is_empty() {
        cautions.push(format!("Of {}: {}.", labels::counted(lab.cells.len(), "cell"), counted.join(", ")));
    }
    cautions
}
