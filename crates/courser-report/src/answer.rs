//! The answer to a suite's question in figures, and in three sentences: what the first screen of a page shows.
//!
//! All of it is derived: from the record, and from the published figures in the repository. What a record has no figure for
//! is left out.

mod latency;
mod lead;
mod overload;
mod sentences;
mod since;

use courser_record::Lab;
use courser_record::lab::{Case, Cell, CellState, Measure, Value};

use crate::chart::{self, Drawing};
use crate::ranking::{self, CellValue, FigureSpec, Outcome, Ranking, Spread, is_yardstick, value_of};
use crate::{figure, labels};
use lead::{Lead, lead};

pub use since::{Published, Since, published};

/// Libraries have many cases: the ones that a terminator needs most, else the first five.
const OF_LIBRARIES: [&str; 5] =
    ["rsa-2048", "ecdsa-p-256", "exchange-x25519", "aes-128-gcm", "chacha20-poly1305"];

/// What the first screen shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What the table is of.
    pub title: String,
    /// Heads of the columns after the first.
    pub heads: Vec<String>,
    /// Rows: whom, and the figures.
    pub rows: Vec<Row>,
    /// What the table's marks mean; empty for nothing.
    pub notes: Vec<String>,
    /// The plot.
    pub plot: Option<Drawing>,
    /// What changed since, where the time goes, what to choose.
    pub sentences: Vec<String>,
    /// The published figure and ours.
    pub since: Option<Since>,
    /// Who is ahead, in a few words.
    pub first: Option<String>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Whose.
    pub name: String,
    /// A figure, and how far it may be off, for each column.
    pub cells: Vec<(String, Option<String>)>,
}

/// The answer of a suite; `None` where nothing was measured.
pub fn answer(lab: &Lab) -> Option<Answer> {
    let in_process = lab.cases.iter().all(|case| case.measure == Measure::InProcess);
    if in_process {
        return of_libraries(lab);
    }
    let lead = lead(lab)?;
    match lead.ranking.basis.value {
        _ if ranking::is_asked(lead.case) => overload::answer(lab, &lead),
        value if ranking::is_response(value) => latency::answer(lab, &lead),
        _ => of_terminators(lab, &lead),
    }
}

fn of_terminators(lab: &Lab, lead: &Lead<'_>) -> Option<Answer> {
    let (case, ranking) = (lead.case, &lead.ranking);
    let places: Vec<&str> = rivals(ranking);
    places.first()?;
    let stairs = staircase(lab, case);
    let has_hosts = case.dimensions.contains_key("hosts");
    let mut heads =
        vec![format!("{}/s per core", noun(case)), format!("processor time per {}", unit_of_cost(case))];
    heads.extend(stairs.map(|_| "before clients wait".to_owned()));
    heads.extend(has_hosts.then(|| "resumed".to_owned()));
    heads.push("behind the first".to_owned());
    let mut notes = Vec::new();
    let since = since::since(lab, Some(case));
    let row = |target: &&str| {
        let name = labels::long_target(lab, target);
        let client = ranking.client.clone();
        let mut cells = vec![rate_cell(lab, case, target, client.clone())];
        let mut cost = figure_cell(lab, &case.id, target, Value::Cpu, client);
        if let Some(failed) = lab.cell(&case.id, target).and_then(labels::mostly_failed) {
            if !cost.0.contains('†') {
                cost.0.push_str(" †");
            }
            notes.push(format!("† {name}: {failed}."));
        }
        cells.push(cost);
        cells.extend(stairs.map(|stairs| before_waiting(lab, stairs, target)));
        cells.extend(has_hosts.then(|| figure_cell(lab, &case.id, target, Value::Resumed, None)));
        cells.push(behind(ranking, places[0], target));
        Row { name, cells }
    };
    let mut rows: Vec<Row> = places.iter().map(row).collect();
    if let Some(share) = places.iter().find_map(|target| ranking::share(lab, &case.id, target)) {
        notes.push(format!(
            "Targets were held to {share} of a core; rates are for a whole one, in proportion."
        ));
    }
    rows.extend(absent(lab, case, ranking, heads.len()));
    notes.extend(inconclusive(lab, ranking));
    Some(Answer {
        title: titled(lab, lead),
        heads,
        rows,
        notes,
        plot: chart::costs(
            &plotted(lab, lead, Value::Cpu),
            &format!("processor time per {}", unit_of_cost(case)),
        ),
        sentences: sentences::of_terminators(lab, lead, since.as_ref()),
        since,
        first: sentences::first(lab, ranking),
    })
}

fn titled(lab: &Lab, lead: &Lead<'_>) -> String {
    let title = &lab.case(&lead.case.id).map_or(lead.case.title.clone(), |case| case.title.clone());
    match lead.ranking.client.as_deref() {
        Some(client) if !client.is_empty() => format!("{title}, {client}"),
        _ => title.clone(),
    }
}

/// For each target a time in each of the columns.
fn plotted(lab: &Lab, lead: &Lead<'_>, value: Value) -> Vec<chart::Costs> {
    let of = |target: &&str| {
        let found = |(ranking, name): &(Ranking, String)| {
            let spec = FigureSpec { client: ranking.client.clone(), ..value.into() };
            (name.clone(), value_of(lab, &ranking.case, target, &spec).estimate().cloned())
        };
        chart::Costs {
            name: labels::short_target(lab, target).to_owned(),
            values: lead.columns.iter().map(found).collect(),
        }
    };
    rivals(&lead.ranking).iter().map(of).collect()
}

fn rivals(ranking: &Ranking) -> Vec<&str> {
    ranking.places.iter().map(|place| place.target.as_str()).filter(|target| !is_yardstick(target)).collect()
}

/// Targets of the preset without a figure, and the word for why.
fn absent(lab: &Lab, case: &Case, ranking: &Ranking, columns: usize) -> Vec<Row> {
    let preset = |target: &str| {
        lab.targets.iter().find(|notes| notes.name == target).map_or("", |notes| notes.preset.as_str())
    };
    let is_absent = |cell: &&Cell| {
        let is_same = preset(&cell.target).is_empty() || preset(&cell.target) == ranking.preset;
        is_same
            && !is_yardstick(&cell.target)
            && !ranking.places.iter().any(|place| place.target == cell.target)
    };
    let row = |cell: &Cell| {
        let word = match cell.state {
            CellState::Cannot => "cannot",
            CellState::Failed => "failed",
            _ if ranking.inconclusive.iter().any(|(target, _)| *target == cell.target) => "inconclusive",
            _ => "not measured",
        };
        let cells = std::iter::once(word.to_owned()).chain(std::iter::repeat(String::new())).take(columns);
        Row { name: labels::long_target(lab, &cell.target), cells: cells.map(|text| (text, None)).collect() }
    };
    ranking::cells(lab, &case.id).into_iter().filter(is_absent).map(row).collect()
}

/// Why figures say nothing about their targets.
fn inconclusive(lab: &Lab, ranking: &Ranking) -> Vec<String> {
    let one = |(target, reason): &(String, String)| {
        let reason = reason.split("; ").next().unwrap_or_default();
        format!("Inconclusive of {}: {reason}.", labels::short_target(lab, target))
    };
    ranking.inconclusive.iter().map(one).collect()
}

/// The staircase of the same requirements.
fn staircase<'a>(lab: &'a Lab, case: &Case) -> Option<&'a Case> {
    lab.cases.iter().find(|other| other.measure == Measure::Staircase && other.dimensions == case.dimensions)
}

fn figure_cell(
    lab: &Lab,
    case: &str,
    target: &str,
    value: Value,
    client: Option<String>,
) -> (String, Option<String>) {
    let found = value_of(lab, case, target, &FigureSpec { client, ..value.into() });
    let text = labels::cell_text(value, &found);
    let spread = found.estimate().and_then(|estimate| labels::spread(value, estimate));
    // The unit stands above it.
    let unit = text.rsplit_once(' ').map_or("", |(_, unit)| unit);
    let has_other_units = |text: &str| {
        text.replace("range ", "")
            .replace(" to ", "")
            .contains(|char: char| !char.is_ascii_digit() && !" .,".contains(char))
    };
    let once = |spread: String| match spread.strip_suffix(unit) {
        Some(short) if !unit.is_empty() && !has_other_units(short) => short.trim_end().to_owned(),
        _ => spread,
    };
    let spread = spread.map(once);
    (text, spread)
}

/// The highest rate that kept the rule, for whole cores in proportion where the target had a share.
fn before_waiting(lab: &Lab, case: &Case, target: &str) -> (String, Option<String>) {
    let value = Value::MaxTpsRule;
    let (text, spread) = figure_cell(lab, &case.id, target, value, None);
    let found = value_of(lab, &case.id, target, &value.into());
    let share = ranking::share(lab, &case.id, target);
    let Some((share, estimate)) = share.zip(found.estimate()) else { return (text, spread) };
    let bound = if text.starts_with('≥') { "≥ " } else { "" };
    let whole = figure::number(Some((estimate.value / share).round()));
    // Ends of an interval are for the share.
    (format!("{bound}{whole}"), spread.filter(|_| estimate.spread.is_none()))
}

fn rate_cell(lab: &Lab, case: &Case, target: &str, client: Option<String>) -> (String, Option<String>) {
    match rate(lab, case, target, client) {
        Some((value, is_computed)) => {
            (format!("{}{}", if is_computed { "≈ " } else { "" }, figure::number(Some(value.round()))), None)
        }
        None => (figure::UNKNOWN.to_owned(), None),
    }
}

/// Transactions a second per core, and whether they are computed from processor time. Of a target that was held to a share
/// of its cores, for whole ones in proportion.
pub(crate) fn rate(lab: &Lab, case: &Case, target: &str, client: Option<String>) -> Option<(f64, bool)> {
    let cores: f64 = case.dimensions.get("cores").and_then(|cores| cores.parse().ok()).unwrap_or(1.0);
    let share = ranking::share(lab, &case.id, target).unwrap_or(1.0);
    match value_of(lab, &case.id, target, &FigureSpec { client, ..Value::Tps.into() }) {
        CellValue::Value(found) => Some((found.value / cores / share, false)),
        CellValue::Inconclusive { computed: Some(found), .. } => Some((found.value / cores, true)),
        _ => None,
    }
}

/// How far a target is behind the first, and how sure that is.
fn behind(ranking: &Ranking, first: &str, target: &str) -> (String, Option<String>) {
    if target == first {
        return ("first".to_owned(), None);
    }
    let is_nothing = |place: &ranking::RankedTarget| place.target == target && place.estimate.value <= 0.0;
    if ranking.places.iter().any(is_nothing) {
        return ("serves none".to_owned(), None);
    }
    match ranking.pair(first, target).map(|pair| pair.outcome) {
        Some(Outcome::Ahead { factor, low, high }) => {
            (format!("×\u{a0}{}", labels::factor(factor)), Some(labels::factor_range(low, high)))
        }
        Some(Outcome::NotSeen { min_detectable }) => {
            ("not seen".to_owned(), Some(format!("{} would be", labels::detectable(min_detectable))))
        }
        Some(Outcome::TooFew { rounds }) => ("not known".to_owned(), Some(labels::counted(rounds, "round"))),
        Some(Outcome::NotCompared(_)) => ("not compared".to_owned(), None),
        None => (figure::UNKNOWN.to_owned(), None),
    }
}

/// What is counted in a case.
pub(crate) fn noun(case: &Case) -> &'static str {
    match case.measure {
        Measure::KeepAlive => "requests",
        _ if !case.dimensions.contains_key("object") => "handshakes",
        _ => "transactions",
    }
}

/// What processor time is spent on.
pub(crate) fn unit_of_cost(case: &Case) -> &'static str {
    match case.measure {
        Measure::KeepAlive => "request",
        _ => "connection",
    }
}

/// Libraries side by side, operation by operation.
fn of_libraries(lab: &Lab) -> Option<Answer> {
    let is_modern = |case: &&Case| case.era == courser_record::lab::Era::Modern;
    let known: Vec<&Case> = OF_LIBRARIES.iter().filter_map(|id| lab.case(id)).collect();
    let cases = if known.is_empty() { lab.cases.iter().filter(is_modern).take(5).collect() } else { known };
    let has_some = |target: &&str| cases.iter().any(|case| lab.cell(&case.id, target).is_some());
    let targets: Vec<&str> = ranking::targets(lab).into_iter().filter(has_some).collect();
    let mut heads: Vec<String> =
        targets.iter().map(|target| labels::target(lab, target).to_owned()).collect();
    let compared = targets.len() == 2;
    heads.extend(compared.then(|| format!("{} is as fast", heads[0])));
    let mut ratios = Vec::new();
    let row = |case: &Case| {
        let figures = ranking::figures(lab, &case.id);
        // Of block sizes the largest is the one that a long answer has.
        let is_throughput = case.dimensions.get("kind").is_some_and(|kind| kind == "throughput");
        let figure = if is_throughput { figures.last() } else { figures.first() }?;
        let spec = FigureSpec { figure: Some(figure.clone()), ..Value::Figure.into() };
        let (unit, scale) = match labels::unit(lab, &spec) {
            unit if unit == "s per 1000 connections" => ("s".to_owned(), 1e-3),
            unit => (unit, 1.0),
        };
        let of = |target: &&str| scaled(value_of(lab, &case.id, target, &spec), scale);
        let found: Vec<CellValue> = targets.iter().map(of).collect();
        let mut cells: Vec<_> = found
            .iter()
            .map(|value| (labels::figure_text(&unit, value), labels::figure_spread(&unit, value)))
            .collect();
        if let (true, [Some(one), Some(other)]) = (compared, [found[0].estimate(), found[1].estimate()]) {
            let ratio = if unit.starts_with('s') { other.value / one.value } else { one.value / other.value };
            cells.push((format!("×\u{a0}{}", labels::factor(ratio)), None));
            ratios.push((case.title.clone(), ratio));
        }
        cells.resize(heads.len(), (figure::UNKNOWN.to_owned(), None));
        Some(Row { name: format!("{}, {}", case.title, labels::figure_name(figure, &unit)), cells })
    };
    let rows: Vec<Row> = cases.into_iter().filter_map(row).collect();
    rows.first()?;
    let since = since::since(lab, None);
    Some(Answer {
        title: "The operations that a terminator needs most".to_owned(),
        plot: chart::ratios(&ratios, &heads),
        sentences: sentences::of_libraries(lab, &ratios, since.as_ref()),
        notes: labels::repeats(lab).into_iter().collect(),
        first: None,
        heads,
        rows,
        since,
    })
}

/// A figure in another unit.
fn scaled(value: CellValue, scale: f64) -> CellValue {
    match value {
        CellValue::Value(mut found) => {
            found.value *= scale;
            found.spread = found.spread.map(|spread| Spread {
                low: spread.low * scale,
                high: spread.high * scale,
                ..spread
            });
            CellValue::Value(found)
        }
        other => other,
    }
}
