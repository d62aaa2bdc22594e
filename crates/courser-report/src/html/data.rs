//! The raw data inside the page: each record, compressed, behind a link that saves it.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use courser_record::Lab;
use courser_record::lab::WindowResult;
use courser_stats::number::float;
use flate2::{Compression, GzBuilder};
use maud::{Markup, html};

/// Takes something out of a record.
type LeaveOut = fn(&mut Lab);

/// How much of a record is left out, and the note about it: the first that fits.
const STEPS: [(LeaveOut, &str); 4] = [
    (|_| {}, "complete"),
    (without_histograms, "without histograms"),
    (without_seconds, "without histograms, seconds and stacks"),
    (without_files, "without histograms, seconds, stacks and configuration files"),
];

/// A link for each record, of at most `room` bytes together.
pub(super) fn links(labs: &[Lab], room: usize) -> Markup {
    let each = room / labs.len().max(1);
    html! {
        p { "What this page was drawn from: gzip, JSON inside, for jq and for " code { "courser-bench report" } "." }
        ul { @for lab in labs { li { (link(lab, each)) } } }
    }
}

fn link(lab: &Lab, room: usize) -> Markup {
    let name = file_name(lab);
    let fitting = STEPS.iter().find_map(|(leave_out, note)| {
        let mut copy = lab.clone();
        leave_out(&mut copy);
        let text = STANDARD.encode(gzip(copy.to_json().as_bytes()));
        (text.len() + 300 < room).then_some((text, *note))
    });
    html! {
        @match fitting {
            Some((text, note)) => {
                a.button download=(name) href=(format!("data:application/gzip;base64,{text}")) { (name) }
                (note) ", " (crate::figure::bytes(Some(float(text.len() as u64 * 3 / 4))))
            }
            None => { (name) ": too large for this page; it is the record that the page was drawn from" }
        }
    }
}

/// Made of what is harmless in a file name.
fn file_name(lab: &Lab) -> String {
    let harmless = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
    let text: String = format!("{}-{}", lab.suite.name, lab.envelope.created).chars().map(harmless).collect();
    format!("{text}.json.gz")
}

/// The same bytes for the same text: no name, no time.
fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
    packed.write_all(text).and_then(|()| packed.finish()).expect("memory takes what is written to it")
}

fn each_window(lab: &mut Lab, change: fn(&mut WindowResult)) {
    let blocks = lab.cells.iter_mut().flat_map(|cell| &mut cell.blocks);
    blocks.flat_map(|block| &mut block.windows).for_each(change);
}

fn without_histograms(lab: &mut Lab) {
    each_window(lab, |window| window.response = Default::default());
}

fn without_seconds(lab: &mut Lab) {
    without_histograms(lab);
    each_window(lab, |window| window.seconds.clear());
    lab.cells.iter_mut().filter_map(|cell| cell.profile.as_mut()).for_each(|profile| profile.folded.clear());
}

fn without_files(lab: &mut Lab) {
    without_seconds(lab);
    lab.cells.iter_mut().for_each(|cell| cell.files.clear());
}
