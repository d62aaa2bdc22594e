//! Where processor time goes: user and kernel, classes where it was sampled, and how far it is from the physical limit.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use courser_record::Lab;
use courser_record::lab::{Case, Cell, Limit, LimitPart, Value};
use maud::{Markup, html};

use super::table;
use crate::figure;
use crate::labels;
use crate::ranking::{FigureSpec, cell_value, cells};

/// A table over all cells whose processor time is known.
pub(super) fn costs(lab: &Lab) -> Markup {
    let rows: Vec<Vec<String>> = lab.cases.iter().flat_map(|case| of_case(lab, case)).collect();
    html! {
        @if !rows.is_empty() {
            @let least = if labels::has_floor(lab) { "limit" } else { "bare cryptography" };
            (table::plain(&["case, target", "CPU per connection", "user", "kernel", least, "by class"], &rows))
            @if let Some(limit) = labels::limit(lab) { p.notes { (limit) } }
            (limits(lab))
        }
    }
}

fn of_case(lab: &Lab, case: &Case) -> Vec<Vec<String>> {
    let cells = cells(lab, &case.id).into_iter();
    cells.filter_map(|cell| row(lab, case, cell)).collect()
}

fn row(lab: &Lab, case: &Case, cell: &Cell) -> Option<Vec<String>> {
    let of = |value: Value| cell_value(lab, cell, &FigureSpec::from(value)).estimate().cloned();
    let cpu = of(Value::Cpu)?;
    let kernel = of(Value::KernelShare).map(|share| share.value);
    let text =
        |value: Value| of(value).map_or(figure::UNKNOWN.to_owned(), |found| labels::estimate(value, &found));
    let least = |limit: &Limit| format!("{} ({})", labels::least(limit), text(Value::LimitShare));
    let limit = case.limit.as_ref().map_or(figure::UNKNOWN.to_owned(), least);
    Some(vec![
        format!("{}, {}", labels::case(lab, &case.id), labels::target(lab, &cell.target)),
        labels::estimate(Value::Cpu, &cpu),
        figure::percent(kernel.map(|kernel| 1.0 - kernel)),
        figure::percent(kernel),
        limit,
        classes(cell, cpu.value),
    ])
}

/// Time of each class of a profile, and of each system call.
fn classes(cell: &Cell, cpu_us: f64) -> String {
    let Some(profile) = &cell.profile else { return "not sampled".to_owned() };
    let all = profile.classes.values().sum();
    let time = |count: u64| figure::time(figure::share(count, all).map(|share| share * cpu_us));
    let class = |(class, count): (&String, u64)| {
        let share = figure::percent(figure::share(count, all));
        let within = if class == "kernel" { &profile.system_calls } else { &BTreeMap::new() };
        let calls: Vec<String> =
            by_count(within).map(|(call, count)| format!("{call} {}", time(count))).collect();
        let calls = if calls.is_empty() { String::new() } else { format!("; {}", calls.join(", ")) };
        format!("{class} {} ({share}{calls})", time(count))
    };
    by_count(&profile.classes).map(class).collect::<Vec<_>>().join(", ")
}

/// The most frequent first.
fn by_count(counts: &BTreeMap<String, u64>) -> impl Iterator<Item = (&String, u64)> {
    let mut counts: Vec<(&String, u64)> = counts.iter().map(|(name, count)| (name, *count)).collect();
    counts.sort_by_key(|&(name, count)| (Reverse(count), name));
    counts.into_iter()
}

/// What the physical limit of each case is made of.
fn limits(lab: &Lab) -> Markup {
    let part = |part: &LimitPart| {
        format!("{} × {} ({} each)", figure::number(Some(part.times)), part.name, figure::time(Some(part.us)))
    };
    html! {
        @if lab.cases.iter().any(|case| case.limit.is_some()) {
            details {
                summary { "What the physical limit is made of" }
                dl {
                    @for case in &lab.cases {
                        @if let Some(limit) = &case.limit {
                            dt { (labels::case(lab, &case.id)) }
                            dd { (labels::least(limit)) ": "
                                (limit.parts.iter().chain(&limit.floor).map(part).collect::<Vec<_>>().join(", ")) }
                        }
                    }
                }
            }
        }
    }
}
