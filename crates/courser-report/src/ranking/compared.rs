//! Every two targets of every case, by one value, however the case is ranked.

use courser_record::Lab;
use courser_record::lab::{Case, Measure, Value};
use courser_stats::{Contrast, RoundValue, TwoWay};

use super::{estimate, order};

/// What the rounds support about two targets of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// [`courser_record::lab::Case::id`].
    pub case: String,
    /// The first target, [`courser_record::lab::TargetNotes::name`].
    pub first: String,
    /// The second one.
    pub second: String,
    /// The second over the first.
    pub contrast: Contrast,
}

/// All that rounds connect, of these targets by `value`. Cases without a network and of several kinds of client are left out.
pub fn compared(lab: &Lab, value: Value) -> Vec<Compared> {
    let cases =
        lab.cases.iter().filter(|case| !matches!(case.measure, Measure::InProcess | Measure::Clients));
    let of = |case: &Case| {
        order::presets(lab)
            .into_iter()
            .flat_map(|preset| of_case(lab, case, &preset, value))
            .collect::<Vec<_>>()
    };
    cases.flat_map(of).collect()
}

fn of_case(lab: &Lab, case: &Case, preset: &str, value: Value) -> Vec<Compared> {
    let cells = order::comparable(lab, case, preset);
    let all = cells.iter().enumerate();
    let values: Vec<RoundValue> =
        all.flat_map(|(index, cell)| order::values(lab, cell, &value.into(), index)).collect();
    let Some(fitted) = TwoWay::fit(&values, cells.len()) else { return Vec::new() };
    let ends = (0..cells.len()).flat_map(|first| (first + 1..cells.len()).map(move |second| (first, second)));
    let one = |(first, second): (usize, usize)| {
        let name = |index: usize| cells[index].target.clone();
        let contrast = fitted.contrast(first, second)?;
        Some(Compared { case: case.id.clone(), first: name(first), second: name(second), contrast })
    };
    ends.filter_map(one).collect()
}

/// How often targets are called different, and which difference is seen: what runs of a program against itself are judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Comparisons.
    pub count: usize,
    /// Those that are called different.
    pub different: usize,
    /// The median of the differences that are seen in nine of ten cases: 0.05 is 5 %; 0 of none.
    pub median_min_detectable: f64,
}

impl Precision {
    /// Of these comparisons.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Compared>) -> Self {
        let contrasts: Vec<Contrast> = all.into_iter().map(|one| one.contrast).collect();
        let detectable: Vec<f64> = contrasts.iter().map(|one| one.min_detectable).collect();
        Self {
            count: contrasts.len(),
            different: contrasts.iter().filter(|one| one.is_different()).count(),
            median_min_detectable: estimate::median(&detectable),
        }
    }
}
