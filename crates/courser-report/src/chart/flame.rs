//! Flame graphs of sampled processor time.

use std::io::BufWriter;

use courser_record::Lab;
use courser_record::lab::Cell;
use inferno::flamegraph::{self, Options};

use crate::labels;
use crate::layout::harmless;

/// Frames narrower than this share of all samples, in percent, are not drawn.
const NARROWEST: f64 = 0.4;

/// The flame graph of a cell as an SVG file; `None` without a profile, or with one that cannot be drawn.
pub fn flame(lab: &Lab, cell: &Cell) -> Option<String> {
    let folded = harmless_lines(&cell.profile.as_ref()?.folded);
    if folded.is_empty() {
        return None;
    }
    let mut options = Options::default();
    options.title = harmless(&labels::cell(lab, cell));
    (options.no_javascript, options.deterministic, options.min_width) = (true, true, NARROWEST);
    options.image_width = Some(1000);
    options.font_type = "sans-serif".to_owned();
    let mut svg = BufWriter::new(Vec::new());
    flamegraph::from_lines(&mut options, folded.iter().map(String::as_str), &mut svg).ok()?;
    String::from_utf8(svg.into_inner().ok()?).ok().map(|svg| without_script(&svg))
}

/// Without what is left of the script that the library was told to leave out: the values that it would have had.
fn without_script(svg: &str) -> String {
    let mut still = svg.replace(" onload=\"init(evt)\"", "");
    while let Some((start, length)) = still.find("<script").and_then(|start| {
        let end = still[start..].find("</script>")?;
        Some((start, end + "</script>".len()))
    }) {
        still.replace_range(start..start + length, "");
    }
    still
}

/// Every cell that has one: the heading and the file.
pub fn flames(lab: &Lab) -> Vec<(String, String)> {
    lab.cells.iter().filter_map(|cell| Some((labels::cell(lab, cell), flame(lab, cell)?))).collect()
}

/// Stacks that are stacks: frames, a space, a count.
fn harmless_lines(folded: &str) -> Vec<String> {
    let is_stack = |line: &&str| {
        line.rsplit_once(' ')
            .is_some_and(|(frames, count)| !frames.is_empty() && count.parse::<u32>().is_ok())
    };
    folded.lines().filter(is_stack).map(harmless).collect()
}
