//! Pages of suites: what is in them, whatever the records hold.

use std::process::Command;

use courser_record::Lab;
use courser_report::labels;
use courser_report::text::Style;
use courser_report::{chart, csv, html, lab_text, markdown};
use courser_testkit::{Folder, require};

use crate::hold;
use crate::labs::{capacity, large, primitives};

#[test]
fn the_page_of_two_suites() {
    hold("lab.html", &html::render(&[capacity(), primitives()]));
}

/// Kept so that the program's own tests have a record to read.
#[test]
fn a_small_record_is_kept() {
    hold("primitives.json", &primitives().to_json());
}

#[test]
fn the_same_in_text_markdown_and_lines() {
    let labs = [capacity(), primitives()];
    hold("lab.txt", &lab_text::render(&labs, Style::default()));
    hold("lab.md", &markdown::render(&labs));
    hold("lab.csv", &csv::render(&labs));
}

/// The figures are those that the program printed that wrote the record; only heads and words have changed since.
#[test]
fn a_record_of_version_1_has_the_figures_that_it_had() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../courser-record/tests/fixtures/lab-v1.json");
    hold("lab-v1.csv", &csv::render(&[Lab::from_json(std::fs::read(path).unwrap()).unwrap()]));
}

#[test]
fn all_forms_say_the_same_verdict() {
    let lab = [capacity()];
    let verdict = labels::verdict(&lab[0]).sentences.concat();
    assert!(verdict.contains("no difference seen") || verdict.contains("courser is first"), "{verdict}");
    let wide = Style { colour: false, width: 2000 };
    for (form, text) in [
        ("page", html::render(&lab)),
        ("text", lab_text::render(&lab, wide)),
        ("Markdown", markdown::render(&lab)),
    ] {
        for sentence in labels::verdict(&lab[0]).sentences {
            assert!(text.contains(&sentence), "{form}: {sentence}");
        }
    }
}

#[test]
fn records_of_different_machines_are_told() {
    let mut other = capacity();
    other.envelope.machine.name = "bench-2".to_owned();
    let labs = [capacity(), other];
    for text in [html::render(&labs), markdown::render(&labs), lab_text::render(&labs, Style::default())] {
        assert!(text.contains("different machines (bench-1 and bench-2)"), "{text}");
    }
}

#[test]
fn a_page_is_drawn_again_byte_for_byte_from_its_records() {
    let read = |lab: &Lab| Lab::from_json(lab.to_json()).unwrap();
    let labs = [capacity(), primitives()];
    assert_eq!(html::render(&labs), html::render(&labs.each_ref().map(read)));
}

#[test]
fn what_servers_say_never_becomes_markup() {
    let page = html::render(&[capacity()]);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "it is shown");
    assert!(!page.contains("<script") && !page.contains("<b>&") && !page.contains('\u{1b}'));
}

#[test]
fn a_page_stays_small_and_says_what_it_leaves_out() {
    let page = html::render(&[large(), primitives()]);
    assert!(page.len() < html::LIMIT, "{}", page.len());
    assert!(page.contains("more, for which a page of this size has no room"));
}

#[test]
fn plots_are_files_of_their_own_that_follow_light_and_dark() {
    let lab = capacity();
    let drawings: Vec<_> = lab.suite.charts.iter().flat_map(|chart| chart::drawings(&lab, chart)).collect();
    for drawing in &drawings {
        let file = drawing.file();
        assert!(file.starts_with("<svg xmlns=") && file.contains("prefers-color-scheme:dark"), "{file}");
        assert!(file.contains("<title>") && !drawing.description.is_empty(), "{file}");
    }
    let kinds = lab.suite.charts.len();
    assert!(drawings.len() > kinds, "{} plots of {kinds} charts", drawings.len());
    let flames = chart::flames(&lab);
    assert_eq!(flames.len(), 4, "one for each cell that was sampled");
    assert!(flames[0].1.contains("bn_mul_mont") && !flames[0].1.contains("<script"), "{}", flames[0].1);
}

#[test]
fn plots_are_well_formed() {
    let Some(python) = require("python3") else { return };
    let (lab, folder) = (capacity(), Folder::new());
    let drawings = lab.suite.charts.iter().flat_map(|chart| chart::drawings(&lab, chart));
    let files =
        drawings.map(|drawing| drawing.file()).chain(chart::flames(&lab).into_iter().map(|(_, svg)| svg));
    for (index, file) in files.enumerate() {
        folder.write(&format!("{index}.svg"), file);
    }
    let check = "import glob, sys, xml.dom.minidom\nfor file in glob.glob(sys.argv[1] + '/*.svg'): xml.dom.minidom.parse(file)";
    let out = Command::new(python).args(["-c", check]).arg(folder.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
