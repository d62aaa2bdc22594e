//! `merge` and `show`: records that are already there.

use courser_lab::record_file::read_run;
use courser_report::text;

use crate::cli::{MergeArgs, OutputArgs, ShowArgs};
use crate::deliver;
use crate::exit::{Ended, Failure};

/// Merges the records of generators that ran together.
pub(crate) fn merge(args: &MergeArgs) -> Result<Ended, Failure> {
    let records = args.files.iter().map(|path| read_run(path)).collect::<Result<Vec<_>, _>>()?;
    let merged = courser_record::merge(records).map_err(Failure::usage)?;
    let output = OutputArgs {
        record: args.record.clone(),
        prometheus_text: None,
        json: args.json,
        ndjson: false,
        quiet: false,
    };
    deliver::deliver(&merged, &output)
}

/// Prints a record.
pub(crate) fn show(args: &ShowArgs) -> Result<Ended, Failure> {
    deliver::print(&text::render(&read_run(&args.file)?, deliver::style()));
    Ok(Ended::Well)
}
