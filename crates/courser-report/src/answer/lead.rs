//! Which of a suite's cases answers its question in one table, and which ones stand beside it in one plot.

use courser_record::Lab;
use courser_record::lab::{Case, Era, Measure};

use crate::ranking::{self, Ranking, rankings};

/// Cases that a plot shows at most.
const MOST: usize = 3;

/// Dimensions that a suite is about before it is about others.
const FIRST: [&str; 5] = ["new key", "hosts", "object", "backend", "key"];

/// The case that leads, and those that differ from it in one dimension alone.
pub(super) struct Lead<'a> {
    pub(super) case: &'a Case,
    pub(super) ranking: Ranking,
    /// The lead among them, in the order of the suite, at most three; each with its name.
    pub(super) columns: Vec<(Ranking, String)>,
    /// All rankings of the suite.
    pub(super) all: Vec<Ranking>,
}

/// Of loads beyond what can be served the highest; of the modern era, at saturation, TLS 1.3 (a suite that begins in clear leads in clear), the most hosts, the most targets.
pub(super) fn lead(lab: &Lab) -> Option<Lead<'_>> {
    let all = rankings(lab);
    let in_clear = all
        .first()
        .and_then(|ranking| lab.case(&ranking.case))
        .is_some_and(|case| case.dimensions.get("version").is_some_and(|version| version == "clear"));
    let wanted = if in_clear { "clear" } else { "TLS 1.3" };
    let score = |ranking: &Ranking| {
        let case = lab.case(&ranking.case)?;
        let of = |name: &str| case.dimensions.get(name).map(String::as_str);
        let at_saturation = !matches!(case.measure, Measure::Staircase | Measure::Rate);
        let hosts = of("hosts").and_then(|hosts| hosts.parse::<u32>().ok());
        let is_first_preset = ranking.preset == all.first()?.preset;
        let places = ranking.places.len();
        Some((
            is_first_preset,
            places > 1,
            ranking::offered(case).filter(|_| ranking::is_asked(case)),
            case.era == Era::Modern,
            at_saturation,
            of("version") == Some(wanted),
            hosts,
            places,
        ))
    };
    // The first of the best.
    let best = all.iter().rev().max_by_key(|ranking| score(ranking))?;
    let case = lab.case(&best.case)?;
    let columns = beside(lab, case, best, &all);
    let ranking = best.clone();
    Some(Lead { case, ranking, columns, all })
}

/// The lead and the cases, or kinds of client, beside it.
fn beside(lab: &Lab, lead: &Case, ranking: &Ranking, all: &[Ranking]) -> Vec<(Ranking, String)> {
    if ranking.client.is_some() {
        let same = all.iter().filter(|other| other.case == ranking.case && other.preset == ranking.preset);
        let named = |other: &Ranking| (other.clone(), other.client.clone().unwrap_or_default());
        return few(same.map(named).collect());
    }
    let others: Vec<(&Ranking, &str)> =
        all.iter().filter_map(|other| Some((other, only_difference(lab, lead, ranking, other)?))).collect();
    let mut names: Vec<&str> = others.iter().map(|(_, name)| *name).collect();
    names.sort_by_key(|name| {
        let count = others.iter().filter(|(_, other)| other == name).count();
        (std::cmp::Reverse(count), FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()))
    });
    let Some(dimension) = names.first() else { return vec![(ranking.clone(), String::new())] };
    let is_shown = |other: &&Ranking| {
        is_same(other, ranking)
            || others.iter().any(|(known, name)| is_same(known, other) && name == dimension)
    };
    let value = |other: &Ranking| {
        let value = lab
            .case(&other.case)
            .and_then(|case| case.dimensions.get(*dimension))
            .cloned()
            .unwrap_or_default();
        match *dimension {
            "hosts" => crate::labels::counted(value.parse().unwrap_or(0), "host"),
            "cores" => crate::labels::counted(value.parse().unwrap_or(0), "core"),
            "backend" | "cache" => format!("{dimension} {value}"),
            _ => value,
        }
    };
    let mut shown = few(all.iter().filter(is_shown).map(|other| (other.clone(), value(other))).collect());
    if let (true, Some((_, first))) = (*dimension == "new key", shown.first_mut()) {
        first.insert_str(0, "new key ");
    }
    shown
}

fn is_same(one: &Ranking, other: &Ranking) -> bool {
    (&one.case, &one.client, &one.preset) == (&other.case, &other.client, &other.preset)
}

/// The dimension in which a ranking's case differs from the lead, if it is one.
fn only_difference<'a>(lab: &'a Lab, lead: &'a Case, ranking: &Ranking, other: &Ranking) -> Option<&'a str> {
    let case = lab.case(&other.case)?;
    let is_alike = case.measure == lead.measure && case.era == lead.era && other.preset == ranking.preset;
    if !is_alike || other.places.is_empty() || case.dimensions.len() != lead.dimensions.len() {
        return None;
    }
    let mut differing =
        lead.dimensions.iter().filter(|(name, value)| case.dimensions.get(*name) != Some(*value));
    let (name, _) = differing.next()?;
    let is_only = differing.next().is_none() && case.dimensions.contains_key(name);
    is_only.then_some(name)
}

/// The first, the last and one between them.
fn few<T: Clone>(all: Vec<T>) -> Vec<T> {
    match all.len() {
        count if count <= MOST => all,
        count => [0, count / 2, count - 1].map(|index| all[index].clone()).to_vec(),
    }
}
