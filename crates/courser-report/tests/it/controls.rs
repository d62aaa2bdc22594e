//! Control blocks and the limit: what a page says of them, and what it says of records that have neither.

use courser_record::Lab;
use courser_report::text::Style;
use courser_report::{csv, html, lab_text, labels, markdown};

use crate::labs::capacity;

/// A record as they were before control blocks, and before the kernel's floor was part of the limit.
fn earlier() -> Lab {
    let mut lab = capacity();
    for case in &mut lab.cases {
        case.control = None;
        if let Some(limit) = &mut case.limit {
            limit.floor.clear();
        }
    }
    lab
}

#[test]
fn a_client_that_makes_a_difference_is_named_at_the_top() {
    let lab = capacity();
    let caution = labels::control_caution(&lab).unwrap();
    assert!(caution.contains("TLS 1.3, RSA-2048 (1.31 at 64 % of the rate)"), "{caution}");
    assert!(!caution.contains("1.02"), "{caution}");
    let rows = [
        ["TLS 1.3, ECDSA P-256", "1.02", "0.97 to 1.09, 3 targets"],
        ["TLS 1.3, RSA-2048", "1.31 at 64 % of the rate", "1.25 to 1.40, 3 targets"],
    ];
    assert_eq!(labels::control_rows(&lab), rows.map(|row| row.map(str::to_owned).to_vec()));
    let labs = [lab];
    for text in [html::render(&labs), markdown::render(&labs), lab_text::render(&labs, Style::default())] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("real / lean client") && flat.contains("0.97 to 1.09, 3 targets"), "{text}");
        assert!(flat.contains("With a client that does all the work and verifies"), "{text}");
    }
}

#[test]
fn a_client_that_makes_none_stands_with_the_method() {
    let mut lab = capacity();
    lab.cases.iter_mut().filter_map(|case| case.control.as_mut()).for_each(|control| control.ratio = 1.04);
    assert_eq!(labels::control_caution(&lab), None);
    let page = html::render(&[lab]);
    let method = page.find("How it was measured, and how sure it is").unwrap();
    assert!(page.find("real / lean client").unwrap() > method, "it is no answer");
}

/// The figures of a record are the same with control blocks and without.
#[test]
fn control_blocks_count_in_no_figure() {
    let mut lab = capacity();
    let before = csv::render(std::slice::from_ref(&lab));
    for cell in &mut lab.cells {
        cell.control = cell.blocks.first().cloned().map(|mut block| {
            block.windows.iter_mut().for_each(|window| window.user_us = Some(u64::from(u32::MAX)));
            block
        });
    }
    assert_eq!(before, csv::render(&[lab]));
}

#[test]
fn earlier_records_have_cryptography_alone_and_say_so() {
    let (page, earlier) = (html::render(&[capacity()]), html::render(&[earlier()]));
    assert!(page.contains("31 us, of it 19 us reads and writes") && page.contains("the kernel's floor"));
    assert!(earlier.contains("Bare cryptography: what the signatures"), "{earlier}");
    assert!(!earlier.contains("reads and writes (") && !earlier.contains("real / lean client"));
}
