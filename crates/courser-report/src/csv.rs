//! One line for each cell and figure, for spreadsheets and scripts (RFC 4180).

use courser_record::Lab;
use courser_record::lab::{Case, Cell};

use crate::labels;
use crate::ranking::{self, CellValue, FigureSpec, Kind, cell_value};

/// Heads of the columns. `low` and `high` are the ends of a 95 % interval, or with `interval` no of what the blocks range
/// over; `server_share` is the share of its cores that the target was held to, if it was; `inconclusive` is yes where `estimate` is computed from processor time in place of a rate that says nothing.
const COLUMNS: &str = "suite,case,target,era,dimensions,value,unit,estimate,low,high,interval,kind,blocks,inconclusive,state,reason,server_share";

/// All figures of these records, those that are missing included, with the reason.
pub fn render(labs: &[Lab]) -> String {
    let mut text = format!("{COLUMNS}\r\n");
    for lab in labs {
        for cell in &lab.cells {
            if let Some(case) = lab.case(&cell.case) {
                text.extend(figure_specs(lab, case).iter().map(|spec| line(lab, case, cell, spec)));
            }
        }
    }
    text
}

/// Of a case whose figures have names, and of which none was measured, one line says why.
fn figure_specs(lab: &Lab, case: &Case) -> Vec<FigureSpec> {
    let specs = ranking::figure_specs(lab, &case.id);
    if specs.is_empty() {
        ranking::values(case.measure).iter().copied().map(FigureSpec::from).collect()
    } else {
        specs
    }
}

fn line(lab: &Lab, case: &Case, cell: &Cell, spec: &FigureSpec) -> String {
    let value = cell_value(lab, cell, spec);
    let found = value.estimate();
    let number = |value: Option<f64>| value.map_or(String::new(), digits);
    let spread = found.and_then(|found| found.spread);
    let is_bound = found.is_some_and(|found| found.kind == Kind::AtLeast);
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let dimensions: Vec<String> =
        case.dimensions.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let fields = [
        lab.suite.name.clone(),
        cell.case.clone(),
        cell.target.clone(),
        labels::era(case.era).to_owned(),
        dimensions.join("; "),
        labels::name(spec),
        labels::unit(lab, spec),
        number(found.map(|found| found.value)),
        number(spread.map(|spread| spread.low)),
        number(spread.filter(|_| !is_bound).map(|spread| spread.high)),
        spread.map_or(String::new(), |spread| yes(spread.is_interval)),
        found.map_or(String::new(), |found| labels::kind(found.kind).to_owned()),
        found.map_or(String::new(), |found| found.blocks.to_string()),
        yes(matches!(value, CellValue::Inconclusive { .. })),
        value.word().to_owned(),
        value.reason().unwrap_or_default().to_owned(),
        cell.server_share.map_or(String::new(), |held| digits(held.share)),
    ];
    fields.iter().map(|text| field(text)).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Seven digits, which is more than any measurement has.
fn digits(value: f64) -> String {
    format!("{value:.6e}").parse::<f64>().unwrap_or(value).to_string()
}

/// Quoted where it has to be. What a spreadsheet would take for a formula gets an apostrophe in front: parts of a record
/// were chosen by servers.
fn field(text: &str) -> String {
    let clean: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let is_number = clean.parse::<f64>().is_ok();
    let clean =
        if !is_number && clean.starts_with(['=', '+', '-', '@']) { format!("'{clean}") } else { clean };
    if clean.contains([',', '"']) { format!("\"{}\"", clean.replace('"', "\"\"")) } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_neither_a_formula_nor_two_fields() {
        let fields = ["plain", "a, b", "say \"no\"", "=1+1", "-3.5", "a\r\nb"].map(field);
        assert_eq!(fields, ["plain", "\"a, b\"", "\"say \"\"no\"\"\"", "'=1+1", "-3.5", "a  b"]);
    }
}
