//! Two records against each other: what is called worse than allowed.

use courser_record::Lab;
use courser_report::diff::{self, Line};

use crate::labs::capacity;

/// The record with other processor times of a target in a case, by round.
fn changed(lab: &Lab, case: &str, target: &str, factor: impl Fn(u32) -> f64) -> Lab {
    let mut lab = lab.clone();
    let cells = lab.cells.iter_mut().filter(|cell| cell.case == case && cell.target == target);
    for block in cells.flat_map(|cell| &mut cell.blocks) {
        for window in &mut block.windows {
            let scaled = |us: u64| us * scale(factor(block.round)) / 10_000;
            window.user_us = window.user_us.map(scaled);
            window.system_us = window.system_us.map(scaled);
        }
    }
    lab
}

fn scale(factor: f64) -> u64 {
    courser_stats::number::whole(factor * 10_000.0)
}

fn names(lines: &[&Line]) -> Vec<String> {
    lines.iter().map(|line| format!("{} of {}", line.case, line.target)).collect()
}

#[test]
fn what_is_worse_by_more_than_the_limit_is_named_alone() {
    let before = capacity();
    let after = changed(&before, "tls13-ecdsa", "nginx", |_| 1.06);
    let diff = diff::compare(&before, &after);
    assert_eq!(names(&diff.worse_than(0.03)), ["tls13-ecdsa of nginx"]);
    assert!(diff.worse_than(0.07).is_empty() && diff::compare(&after, &before).worse_than(0.03).is_empty());
    let line = diff.worse_than(0.03)[0];
    assert!(
        line.change().contains("6.0 % worse (") && line.change().contains(", detectable from "),
        "{}",
        line.change()
    );
}

#[test]
fn a_change_that_is_seen_and_may_well_be_within_the_limit_is_not_beyond_it() {
    let before = capacity();
    let noisy = |round: u32| 1.04 * if round.is_multiple_of(2) { 1.02 } else { 0.98 };
    let diff = diff::compare(&before, &changed(&before, "tls13-ecdsa", "nginx", noisy));
    let line = diff.lines.iter().find(|line| line.case == "tls13-ecdsa" && line.target == "nginx").unwrap();
    assert!(line.worse() > 0.03 && line.compared.unwrap().is_different(), "{}", line.change());
    assert!(diff.worse_than(0.03).is_empty(), "{}", line.change());
}

#[test]
fn one_of_many_lines_needs_more_evidence_than_one_alone() {
    let before = capacity();
    let noisy = |round: u32| 1.05 * if round.is_multiple_of(2) { 1.014 } else { 0.986 };
    let mut diff = diff::compare(&before, &changed(&before, "tls13-ecdsa", "nginx", noisy));
    assert!(diff.lines.len() > 10 && diff.worse_than(0.03).is_empty());
    diff.lines.retain(|line| line.case == "tls13-ecdsa" && line.target == "nginx");
    assert_eq!(diff.worse_than(0.03).len(), 1);
}
