//! `run`: a suite on several targets, and a page of it.

use courser_lab::{record_file, run};
use courser_report::{html, lab_text};

use crate::cli::RunSuiteArgs;
use crate::deliver;
use crate::exit::{self, Ended, Failure};
use crate::progress::SuiteProgress;

pub(crate) fn run(args: &RunSuiteArgs) -> Result<Ended, Failure> {
    let (state, ended) = run::run(&args.options(), &exit::interrupt()?, &mut SuiteProgress::new(args.quiet))?;
    let labs = std::slice::from_ref(&state.lab);
    let page = args.page_path(state.path());
    let written = record_file::write(&page, &html::render(labs));
    deliver::print(&if args.json { state.lab.to_json() } else { lab_text::render(labs, deliver::style()) });
    state.kept()?;
    notice!("record: {}", state.path().display());
    written?;
    notice!("page: {}", page.display());
    Ok(ended.into())
}
