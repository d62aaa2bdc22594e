//! Who is ahead in a case, and how sure that is.

use std::collections::{BTreeMap, BTreeSet};

use courser_record::Lab;
use courser_record::lab::{Block, Case, Cell, Measure};
use courser_stats::number::length;
use courser_stats::{Contrast, RoundValue, TwoWay};

use super::basis::{Basis, basis, is_cost, is_response};
use super::block_value::BlockValue;
use super::blocks;
use super::estimate::Estimate;
use super::share;
use super::{CellValue, FigureSpec, cell_value, cells, clients, distinct, is_yardstick};

/// The order of the targets of a preset in a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// [`Case::id`].
    pub case: String,
    /// The kind of client; `None` where all are alike.
    pub client: Option<String>,
    /// Stock or tuned; empty where targets have no presets.
    pub preset: String,
    /// What it goes by.
    pub basis: Basis,
    /// Those that have a figure, the best first.
    pub places: Vec<RankedTarget>,
    /// Every two of them, the better ones first.
    pub pairs: Vec<Pair>,
    /// Those that were measured, and whose figure says nothing about them; and why.
    pub inconclusive: Vec<(String, String)>,
}

impl Ranking {
    /// What was found between two, whichever is ahead.
    pub fn pair(&self, one: &str, other: &str) -> Option<&Pair> {
        let is_it = |pair: &&Pair| {
            (pair.ahead == one && pair.behind == other) || (pair.ahead == other && pair.behind == one)
        };
        self.pairs.iter().find(is_it)
    }

    /// The pair of the first and the one that is closest to it: by the factors of the comparison, which the medians need not
    /// agree with. One that is not known to differ is closer than any that is.
    pub fn closest(&self) -> Option<&Pair> {
        let mut rivals = self.places.iter().filter(|place| !is_yardstick(&place.target));
        let first = rivals.next()?;
        let apart = |place: &RankedTarget, pair: &Pair| match pair.outcome {
            Outcome::Ahead { factor, .. } if pair.ahead == first.target => factor,
            Outcome::Ahead { factor, .. } => 1.0 / factor,
            Outcome::NotSeen { .. } => 1.0,
            Outcome::TooFew { .. } | Outcome::NotCompared(_) => {
                let (one, other) = (first.estimate.value, place.estimate.value);
                if one > other { one / other } else { other / one }
            }
        };
        let pairs = rivals.filter_map(|place| Some((place, self.pair(&first.target, &place.target)?)));
        let closest =
            pairs.map(|(place, pair)| (apart(place, pair), pair)).min_by(|a, b| a.0.total_cmp(&b.0));
        closest.map(|(_, pair)| pair)
    }

    /// Whether one of those that were measured could be anywhere in the order: how long clients wait, no other figure says.
    pub fn is_open(&self) -> bool {
        is_response(self.basis.value) && !self.inconclusive.is_empty()
    }
}

/// A target and its figure.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedTarget {
    /// [`courser_record::lab::TargetNotes::name`].
    pub target: String,
    /// The figure.
    pub estimate: Estimate,
}

/// Two targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The one that is ahead, or looks like it.
    pub ahead: String,
    /// The other.
    pub behind: String,
    /// What the rounds support, all pairs of the ranking together.
    pub outcome: Outcome,
    /// The relative difference that rounds like these show in nine of ten cases: 0.04 is 4 %; `None` of too few.
    pub min_detectable: Option<f64>,
}

/// What the rounds support.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// They differ: the first is better by this factor, above 1.
    Ahead {
        /// Best estimate.
        factor: f64,
        /// Lower end of its interval.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// No difference was seen, which is not the same as there being none.
    NotSeen {
        /// The relative difference that rounds like these show in nine of ten cases: 0.04 is 4 %.
        min_detectable: f64,
    },
    /// Too few rounds have both.
    TooFew {
        /// How many have.
        rounds: usize,
    },
    /// There is nothing to compare.
    NotCompared(NotCompared),
}

/// Why nothing is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCompared {
    /// Each target serves practically all who come: what was offered is no merit.
    AllServed,
    /// The values are the same in each round, so that nothing says how far they may be off.
    NoSpread,
}

/// All rankings: case by case those of each preset, of different clients one for each. What a figure is in itself (results
/// without a network, cases of a single target) is not ranked.
pub fn rankings(lab: &Lab) -> Vec<Ranking> {
    let of = |case: &Case| {
        let clients = match case.measure {
            Measure::Clients => clients(lab, &case.id).into_iter().map(Some).collect(),
            _ => vec![None],
        };
        let each = |client: Option<String>| {
            presets(lab).into_iter().map(move |preset| (client.clone(), preset)).collect::<Vec<_>>()
        };
        let all = clients.into_iter().flat_map(each);
        all.filter_map(|(client, preset)| ranking(lab, case, client, &preset)).collect::<Vec<_>>()
    };
    lab.cases.iter().filter(|case| case.measure != Measure::InProcess).flat_map(of).collect()
}

/// The ranking of a case in a preset, for a kind of client; `None` where there are not two to compare.
pub fn ranking(lab: &Lab, case: &Case, client: Option<String>, preset: &str) -> Option<Ranking> {
    let cells = comparable(lab, case, preset);
    if cells.len() < 2 {
        return None;
    }
    let basis = basis(lab, case, client.as_deref(), &cells);
    let spec = basis.spec(client.clone());
    let (mut places, mut inconclusive) = (Vec::new(), Vec::new());
    for cell in &cells {
        match cell_value(lab, cell, &spec) {
            CellValue::Value(estimate) => places.push((*cell, estimate)),
            CellValue::Inconclusive { reason, .. } => inconclusive.push((cell.target.clone(), reason)),
            _ => {}
        }
    }
    let better = |a: f64, b: f64| if is_cost(basis.value) { a.total_cmp(&b) } else { b.total_cmp(&a) };
    places.sort_by(|a, b| better(a.1.value, b.1.value));
    let ordered: Vec<&Cell> = places.iter().map(|(cell, _)| *cell).collect();
    let mut pairs = pairs(lab, &ordered, &spec);
    if share::is_asked(case) && share::all_served(&cells) {
        pairs.iter_mut().for_each(|pair| {
            (pair.outcome, pair.min_detectable) = (Outcome::NotCompared(NotCompared::AllServed), None);
        });
    }
    let place = |(cell, estimate): (&Cell, Estimate)| RankedTarget { target: cell.target.clone(), estimate };
    let places = places.into_iter().map(place).collect();
    Some(Ranking {
        case: case.id.clone(),
        client,
        preset: preset.to_owned(),
        basis,
        places,
        pairs,
        inconclusive,
    })
}

/// The presets of a suite; one without a name where no target has one.
pub(super) fn presets(lab: &Lab) -> Vec<String> {
    let mut presets =
        distinct(lab.targets.iter().map(|target| &target.preset).filter(|preset| !preset.is_empty()));
    // What is meant to be fast leads.
    presets.sort_by_key(|preset| preset == "stock");
    if presets.is_empty() { vec![String::new()] } else { presets }
}

/// Those of a preset, in the order of a report; one that is not ours to start has none and is in all. The way without a
/// terminator is a yardstick where the others speak TLS, and no competitor.
pub(super) fn comparable<'a>(lab: &'a Lab, case: &Case, preset: &str) -> Vec<&'a Cell> {
    let preset_of = |name: &str| {
        lab.targets.iter().find(|target| target.name == name).map_or("", |target| &target.preset)
    };
    let in_preset = |cell: &&Cell| matches!(preset_of(&cell.target), own if own.is_empty() || own == preset);
    let cells: Vec<&Cell> = cells(lab, &case.id).into_iter().filter(in_preset).collect();
    let is_clear = |cell: &Cell| cell.verified.as_ref().is_some_and(|seen| seen.version == "clear");
    let is_tls = |cell: &Cell| cell.verified.as_ref().is_some_and(|seen| seen.version != "clear");
    let mixed = cells.iter().any(|cell| is_clear(cell)) && cells.iter().any(|cell| is_tls(cell));
    // One that is not ours to start has all of its cores, and is no match for those that have a share of theirs.
    let held = cells.iter().any(|cell| cell.server_share.is_some());
    let is_match = |cell: &&Cell| !(mixed && is_clear(cell) || held && cell.server_share.is_none());
    cells.into_iter().filter(is_match).collect()
}

/// Every two: the first of them is the better one, by the medians.
fn pairs(lab: &Lab, cells: &[&Cell], spec: &FigureSpec) -> Vec<Pair> {
    let values: Vec<RoundValue> =
        cells.iter().enumerate().flat_map(|(index, cell)| values(lab, cell, spec, index)).collect();
    let fitted = TwoWay::fit(&values, cells.len());
    let ends = (0..cells.len()).flat_map(|first| (first + 1..cells.len()).map(move |second| (first, second)));
    let pair = |(first, second): (usize, usize)| {
        // Of two, by how much the first is better.
        let [from, to] = if is_cost(spec.value) { [first, second] } else { [second, first] };
        let contrast = fitted.as_ref().and_then(|fitted| fitted.contrast(from, to));
        let outcome = match contrast {
            Some(seen) => outcome(&seen),
            None => Outcome::TooFew { rounds: shared(&values, first, second) },
        };
        let turned = contrast.is_some_and(|seen| seen.is_different() && seen.ratio < 1.0);
        let [ahead, behind] = if turned { [second, first] } else { [first, second] };
        let is_compared = !matches!(outcome, Outcome::NotCompared(_));
        let min_detectable = contrast.filter(|_| is_compared).map(|seen| seen.min_detectable);
        Pair {
            ahead: cells[ahead].target.clone(),
            behind: cells[behind].target.clone(),
            outcome,
            min_detectable,
        }
    };
    ends.map(pair).collect()
}

fn outcome(seen: &Contrast) -> Outcome {
    let (low, high) = (seen.interval.low, seen.interval.high);
    match seen.is_different() {
        _ if seen.min_detectable < f64::EPSILON.sqrt() => Outcome::NotCompared(NotCompared::NoSpread),
        false => Outcome::NotSeen { min_detectable: seen.min_detectable },
        true if seen.ratio >= 1.0 => Outcome::Ahead { factor: seen.ratio, low, high },
        true => Outcome::Ahead { factor: 1.0 / seen.ratio, low: 1.0 / high, high: 1.0 / low },
    }
}

/// The blocks of a cell that have a figure, as those of target `index`.
pub(super) fn values(lab: &Lab, cell: &Cell, spec: &FigureSpec, index: usize) -> Vec<RoundValue> {
    let known = |block: &Block| {
        let (value, _) = blocks::read(lab, cell, block, spec).known()?;
        let edge = blocks::edge(lab, cell, block, spec);
        Some(RoundValue { round: block.round, target: index, value, speed: block.host_noise.speed, edge })
    };
    cell.blocks.iter().filter_map(known).collect()
}

/// How many rounds have both.
fn shared(values: &[RoundValue], first: usize, second: usize) -> usize {
    let rounds = |target: usize| {
        values.iter().filter(|one| one.target == target).map(|one| one.round).collect::<BTreeSet<_>>()
    };
    rounds(first).intersection(&rounds(second)).count()
}

/// The value of each round: the geometric mean where a round has several blocks.
pub fn by_round(lab: &Lab, cell: &Cell, spec: &FigureSpec) -> BTreeMap<u32, f64> {
    let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for block in &cell.blocks {
        if let BlockValue::Value { value, .. } = blocks::read(lab, cell, block, spec)
            && value > 0.0
        {
            logs.entry(block.round).or_default().push(value.ln());
        }
    }
    let mean = |logs: Vec<f64>| (logs.iter().sum::<f64>() / length(logs.len())).exp();
    logs.into_iter().map(|(round, logs)| (round, mean(logs))).collect()
}
