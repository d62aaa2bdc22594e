//! `man` and `completions`: pages that are generated from the definition of the command line.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};
use crate::deliver;
use crate::exit::{Ended, Failure};

/// Prints the manual page: the program, then each verb.
pub(crate) fn man() -> Result<Ended, Failure> {
    let mut page = Vec::new();
    let written = write_man(&mut page);
    written.map_err(|error| Failure::System(format!("cannot write the manual page: {error}")))?;
    deliver::print(&String::from_utf8_lossy(&page));
    Ok(Ended::Well)
}

/// Everything is on this page; the generator's own list of verbs would name a page for each.
fn write_man(page: &mut Vec<u8>) -> io::Result<()> {
    let program = clap_mangen::Man::new(Cli::command());
    program.render_title(page)?;
    program.render_name_section(page)?;
    program.render_synopsis_section(page)?;
    program.render_description_section(page)?;
    program.render_options_section(page)?;
    for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        write!(page, ".SH COMMAND courser-bench {}\n{about}\n", verb.get_name())?;
        clap_mangen::Man::new(verb.clone()).render_options_section(page)?;
    }
    program.render_extra_section(page)?;
    program.render_version_section(page)
}

/// Prints the completion script of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Ended, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "courser-bench", &mut script);
    deliver::print(&String::from_utf8_lossy(&script));
    Ok(Ended::Well)
}
