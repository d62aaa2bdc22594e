//! The end of a verb that measured: the record is kept, then printed, and its verdict becomes the exit code.

use std::io::{IsTerminal, Write};
use std::path::Path;

use courser_lab::record_file;
use courser_lab::to_record;
use courser_record::{Experiment, Record, Run};
use courser_report::text::{self, Style};

use crate::cli::OutputArgs;
use crate::exit::{Ended, Failure, colour};
use crate::prometheus;

/// Columns of a table when nobody says how wide the terminal is.
const WIDTH: usize = 110;

/// A record of these runs. `cut`: what ended it before its time.
pub(crate) fn record(experiment: Experiment, runs: Vec<Run>, cut: bool) -> Record {
    Record { runs, ..Record::new(to_record::envelope(cut.then_some("Ctrl-C")), experiment) }
}

/// Keeps and prints; what cannot be kept is printed all the same.
pub(crate) fn deliver(record: &Record, output: &OutputArgs) -> Result<Ended, Failure> {
    let kept = output.record.as_deref().map(|path| write(record, path).map(|()| path)).transpose();
    let scraped = output.prometheus_text.as_deref();
    let scraped = scraped.map(|path| record_file::write(path, &prometheus::text(record))).transpose();
    if output.json {
        print(&format!("{}\n", record.to_json().trim_end()));
    } else if !output.ndjson {
        print(&text::render(record, style()));
    }
    if let Some(path) = kept? {
        notice!("record: {}", path.display());
    }
    scraped?;
    Ok(match (&record.envelope.cut, record.is_valid()) {
        (Some(_), _) => Ended::Cut,
        (None, true) => Ended::Well,
        (None, false) => Ended::Inconclusive,
    })
}

/// Writes a record where nothing of an earlier one is lost if that fails.
pub(crate) fn write(record: &Record, path: &Path) -> Result<(), Failure> {
    Ok(record_file::write(path, &record.to_json())?)
}

/// Prints to standard output; whoever has closed it wants no more.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

pub(crate) fn style() -> Style {
    let stdout = std::io::stdout();
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = columns.filter(|_| stdout.is_terminal()).unwrap_or(WIDTH);
    Style { colour: colour(&stdout), width }
}
