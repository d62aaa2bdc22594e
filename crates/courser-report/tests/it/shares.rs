//! Targets that were held to a share of their cores: how a page shows their rates and response times, and what it does
//! not compare.

use courser_record::Lab;
use courser_record::lab::{ServerShare, Value};
use courser_report::grid::grids;
use courser_report::ranking::rankings;
use courser_report::text::Style;
use courser_report::{csv, diff, lab_text};

use crate::labs::capacity;

const HALF: ServerShare = ServerShare { share: 0.5, quota_us: 2500, period_us: 5000 };

/// All targets of the suite on half of their cores.
fn held() -> Lab {
    let mut lab = capacity();
    lab.cells.iter_mut().for_each(|cell| cell.server_share = Some(HALF));
    lab
}

/// The figures of a kind, as tables show them.
fn shown(lab: &Lab, value: Value) -> Vec<String> {
    let rows = grids(lab).into_iter().flat_map(|grid| grid.rows);
    let slots = rows.flat_map(|row| row.cells).flatten();
    slots.filter(|slot| slot.figure.value == value).map(|slot| slot.text()).collect()
}

#[test]
fn a_rate_stands_beside_that_of_a_whole_core_and_a_response_time_has_a_mark() {
    let (whole, half) = (capacity(), held());
    let (before, after) = (shown(&whole, Value::Tps), shown(&half, Value::Tps));
    let digits = |text: &str| text.replace(',', "").parse::<f64>().ok();
    let rates: Vec<(f64, &String)> =
        before.iter().zip(&after).filter_map(|(a, b)| Some((digits(a)?, b))).collect();
    assert!(!rates.is_empty());
    for (rate, text) in rates {
        let doubled =
            text.split_once("(whole core: ").and_then(|(_, rest)| digits(rest.split_once(" by rate, ")?.0));
        let doubled = doubled.unwrap_or_else(|| panic!("no whole core: {text}"));
        assert!((doubled / rate - 2.0).abs() < 0.01 && text.ends_with(" by CPU)"), "{rate}: {text}");
    }
    let times = [Value::Mean, Value::P50, Value::P99].into_iter().flat_map(|value| shown(&half, value));
    let times: Vec<String> = times.filter(|text| text.contains("ms") || text.contains("us")).collect();
    assert!(!times.is_empty() && times.iter().all(|text| text.ends_with(" †")), "{times:?}");
    assert_eq!(shown(&whole, Value::Cpu), shown(&half, Value::Cpu), "processor time needs no such care");
    let text = lab_text::render(&[half], Style::default());
    assert!(text.contains("held to 0.5 of their cores (2.50 ms in each 5"), "{text}");
    assert!(!lab_text::render(&[whole], Style::default()).contains("whole core"));
}

#[test]
fn one_with_all_of_its_cores_is_not_ranked_among_those_with_a_share() {
    let mut lab = held();
    let places = |lab: &Lab| -> Vec<String> {
        rankings(lab).iter().flat_map(|ranking| &ranking.places).map(|place| place.target.clone()).collect()
    };
    let before = places(&lab).iter().filter(|target| *target == "courser").count();
    lab.cells.iter_mut().filter(|cell| cell.target == "courser").for_each(|cell| cell.server_share = None);
    let after = places(&lab).iter().filter(|target| *target == "courser").count();
    assert!(before > 0 && after == 0, "{before} and {after}");
}

#[test]
fn rates_of_different_shares_are_not_compared() {
    let (whole, half) = (capacity(), held());
    let diff = diff::compare(&whole, &half);
    assert!(diff.lines.iter().all(|line| line.value == Value::Cpu), "{:?}", diff.lines);
    assert!(diff.warnings.iter().any(|warning| warning.contains("--server-share")), "{:?}", diff.warnings);
    let same = diff::compare(&half, &half);
    assert!(same.lines.iter().any(|line| line.value == Value::MaxTpsAvg100ms), "{:?}", same.lines);
    assert_eq!(same.warnings, Vec::<String>::new());
}

#[test]
fn a_spreadsheet_has_the_share_in_a_column_of_its_own() {
    let share = |lab: Lab| -> Vec<String> {
        let text = csv::render(&[lab]);
        text.lines().map(|line| line.rsplit(',').next().unwrap_or_default().to_owned()).collect()
    };
    let (whole, half) = (share(capacity()), share(held()));
    assert_eq!((whole[0].as_str(), whole[1].as_str(), half[1].as_str()), ("server_share", "", "0.5"));
}
