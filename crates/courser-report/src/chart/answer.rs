//! The plot of the first screen: thin bars side by side for each target, so that six targets fit a phone.

use super::Drawing;
use super::canvas::{self, AxisSide, Canvas, Point, fitted, rounded, sheet_width};
use super::theme::{FAINT, INK, LINE, MARK, series};
use crate::figure;
use crate::labels;
use crate::ranking::Estimate;

/// Height of a bar, and of the room between two targets.
const BAR: i32 = 9;
const GAP: i32 = 9;
/// Where bars begin: names stand to the left of it.
const LEFT: i32 = 136;
/// The same for operations, whose names are longer.
const WIDE: i32 = 204;
/// Room for a figure to the right of the longest bar.
const RIGHT: i32 = 64;

/// A target, and its processor time in each case.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Whose.
    pub name: String,
    /// Names of the cases and what was measured; the names are the same for all.
    pub values: Vec<(String, Option<Estimate>)>,
}

/// Processor time of each target, a bar for each case; `None` of nothing.
pub fn costs(rows: &[Costs], what: &str) -> Option<Drawing> {
    let names: Vec<&String> = rows.first()?.values.iter().map(|(name, _)| name).collect();
    let found = rows.iter().flat_map(|row| &row.values).filter_map(|(_, found)| found.as_ref());
    let most = found.map(|found| found.spread.map_or(found.value, |spread| spread.high)).fold(0.0, f64::max);
    let bars = |row: &Costs| row.values.iter().map(|(_, found)| found.clone()).collect::<Vec<_>>();
    let bars: Vec<(String, Vec<Option<Estimate>>)> =
        rows.iter().map(|row| (row.name.clone(), bars(row))).collect();
    let describe = |row: &Costs| {
        let cases = row.values.iter().map(|(name, found)| {
            let time = figure::time(found.as_ref().map(|found| found.value));
            format!("{name} {time}").trim().to_owned()
        });
        format!("{}: {}", row.name, cases.collect::<Vec<_>>().join(", "))
    };
    let caption = format!("{what}, less is better; whiskers: 95 % interval, or the range of few blocks");
    Some(Drawing {
        title: capital(what),
        description: rows.iter().map(describe).collect::<Vec<_>>().join("; "),
        caption,
        ..plot(LEFT, &names, &bars, most, &|value| figure::time(Some(value)))
    })
}

/// How many times as fast the first of two is, operation by operation.
pub fn ratios(ratios: &[(String, f64)], heads: &[String]) -> Option<Drawing> {
    let most = ratios.iter().map(|(_, ratio)| *ratio).fold(1.0, f64::max);
    let estimate = |ratio: f64| Estimate {
        value: ratio,
        spread: None,
        blocks: 1,
        of: 1,
        kind: crate::ranking::Kind::Measured,
    };
    let bars: Vec<_> =
        ratios.iter().map(|(name, ratio)| (name.clone(), vec![Some(estimate(*ratio))])).collect();
    let [first, second, ..] = heads else { return None };
    (!bars.is_empty()).then(|| Drawing {
        title: format!("{first} against {second}"),
        description: ratios
            .iter()
            .map(|(name, ratio)| format!("{name}: {}", labels::factor(*ratio)))
            .collect::<Vec<_>>()
            .join("; "),
        caption: format!("how many times as fast {first} is as {second}: 1 is as fast"),
        ..plot(WIDE, &[&String::new()], &bars, most, &|ratio| format!("×\u{a0}{}", labels::factor(ratio)))
    })
}

/// Ours beside what was published, on a logarithmic scale: a line from then to now.
pub fn then_and_now(rows: &[(String, f64)]) -> Option<Drawing> {
    let most = rows.iter().map(|(_, factor)| factor.max(1.0 / factor).log10()).fold(0.1, f64::max);
    let has_less = rows.iter().any(|(_, factor)| *factor < 1.0);
    let (left, right) = (LEFT, sheet_width() - RIGHT);
    let low = if has_less { -most / 3.0 } else { 0.0 };
    let x = move |log: f64| left + rounded(f64::from(right - left) * (log.max(low) - low) / (most - low));
    let height = u32::try_from(rows.len()).ok()? * 26 + 8;
    let inside = canvas::draw(height, |canvas| {
        canvas.line(vec![(x(0.0), 2), (x(0.0), i32::try_from(height).unwrap_or(0) - 4)], MARK, 2);
        for (index, (name, factor)) in rows.iter().enumerate() {
            let y = 16 + i32::try_from(index).unwrap_or(0) * 26;
            canvas.text((4, y), AxisSide::Left, INK, &fitted(name, left - 18));
            let (from, to) = (x(0.0), x(factor.log10()));
            canvas.bar((from.min(to), y - 6), (from.max(to), y + 6), series(0), 1.0);
            canvas.text(
                (from.max(to) + 6, y),
                AxisSide::Left,
                INK,
                &format!("×\u{a0}{}", labels::factor(*factor)),
            );
        }
    });
    let description = rows
        .iter()
        .map(|(name, factor)| format!("{name}: {}", labels::factor(*factor)))
        .collect::<Vec<_>>()
        .join("; ");
    (!rows.is_empty()).then(|| Drawing {
        title: "Then and now".to_owned(),
        description,
        caption: "today's figure over the published one, per core; logarithmic".to_owned(),
        height,
        inside,
    })
}

fn plot(
    left: i32,
    names: &[&String],
    rows: &[(String, Vec<Option<Estimate>>)],
    most: f64,
    text: &dyn Fn(f64) -> String,
) -> Drawing {
    let count = i32::try_from(names.len()).unwrap_or(1);
    let row_height = (count * (BAR + 3) + GAP).max(22);
    let legend = if count > 1 { 24 } else { 2 };
    let height = legend + row_height * i32::try_from(rows.len()).unwrap_or(0) + 4;
    let inside = canvas::draw(height.unsigned_abs(), |canvas| {
        if count > 1 {
            heads(canvas, names);
        }
        for (index, (name, values)) in rows.iter().enumerate() {
            let top = legend + row_height * i32::try_from(index).unwrap_or(0);
            canvas.line(vec![(4, top), (sheet_width() - 4, top)], LINE, 1);
            canvas.text((4, top + row_height / 2), AxisSide::Left, INK, &shortened(name, left - 18));
            let first = top + (row_height - count * (BAR + 3)) / 2 + 1;
            for (number, found) in values.iter().enumerate() {
                let y = first + i32::try_from(number).unwrap_or(0) * (BAR + 3);
                bar(canvas, (left, y), number, found.as_ref(), most, (count == 1).then_some(text));
            }
        }
    });
    Drawing {
        title: String::new(),
        description: String::new(),
        caption: String::new(),
        height: height.unsigned_abs(),
        inside,
    }
}

fn heads(canvas: &Canvas<'_>, names: &[&String]) {
    let each = (sheet_width() - 8) / i32::try_from(names.len()).unwrap_or(1);
    for (index, name) in names.iter().enumerate() {
        let x = 4 + each * i32::try_from(index).unwrap_or(0);
        canvas.bar((x, 5), (x + 12, 17), series(index), 1.0);
        canvas.text((x + 17, 11), AxisSide::Left, INK, &fitted(name, each - 18));
    }
}

fn bar(
    canvas: &Canvas<'_>,
    (left, y): Point,
    number: usize,
    found: Option<&Estimate>,
    most: f64,
    text: Option<&dyn Fn(f64) -> String>,
) {
    let right = sheet_width() - if text.is_some() { RIGHT } else { 12 };
    let x = |value: f64| left + rounded(f64::from(right - left) * value / most.max(f64::MIN_POSITIVE));
    let Some(found) = found else {
        canvas.text((left + 4, y + BAR / 2), AxisSide::Left, FAINT, figure::UNKNOWN);
        return;
    };
    canvas.bar((left, y), (x(found.value), y + BAR), series(number), 1.0);
    let middle = y + BAR / 2;
    let mut end = x(found.value);
    if let Some(spread) = found.spread {
        let (low, high) = (x(spread.low), x(spread.high));
        canvas.line(vec![(low, middle), (high, middle)], INK, 1);
        for x in [low, high] {
            canvas.line(vec![(x, y + 1), (x, y + BAR - 1)], INK, 1);
        }
        end = end.max(high);
    }
    if let Some(text) = text {
        canvas.text((end + 6, middle), AxisSide::Left, INK, &text(found.value));
    }
}

/// A name that fits: what differs is often at its end, so it is the middle that is left out.
fn shortened(name: &str, room: i32) -> String {
    let chars: Vec<char> = name.chars().collect();
    let most = fitted(name, room).chars().count();
    if most >= chars.len() {
        return name.to_owned();
    }
    let tail = most.saturating_sub(1) / 2;
    let head = most.saturating_sub(1 + tail);
    chars[..head].iter().chain(&['…']).chain(&chars[chars.len() - tail..]).collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
