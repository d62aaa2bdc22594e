//! Where processor time goes: user and kernel, classes where it was sampled, and how far it is from the physical limit.

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
        classes(cell),
    ])
}

fn classes(cell: &Cell) -> String {
    let Some(profile) = &cell.profile else { return "not sampled".to_owned() };
    let mut classes: Vec<(&String, &u64)> = profile.classes.iter().collect();
    classes.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let all = profile.classes.values().sum();
    let share =
        |(class, count): (&String, &u64)| format!("{class} {}", figure::percent(figure::share(*count, all)));
    classes.into_iter().map(share).collect::<Vec<_>>().join(", ")
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
