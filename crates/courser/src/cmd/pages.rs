//! Pages that are generated from the definitions of commands and settings.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::ArgMatches;
use clap_complete::Shell;

use crate::cli;
use crate::exit::Failure;

pub(crate) fn defaults() -> Result<ExitCode, Failure> {
    print(courser_config::defaults_toml().as_bytes())
}

/// `courser man`: the program, then each command.
pub(crate) fn man() -> Result<ExitCode, Failure> {
    let mut page = Vec::new();
    write_man(&mut page).map_err(|error| Failure::runtime("cannot write the manual page", error))?;
    print(&page)
}

/// Everything is on this page; the generator's own list of commands would name a page for each.
fn write_man(page: &mut Vec<u8>) -> io::Result<()> {
    let program = clap_mangen::Man::new(cli::command());
    program.render_title(page)?;
    program.render_name_section(page)?;
    program.render_synopsis_section(page)?;
    program.render_description_section(page)?;
    program.render_options_section(page)?;
    for command in cli::command().get_subcommands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        write!(page, ".SH COMMAND courser {}\n{about}\n", command.get_name())?;
        clap_mangen::Man::new(command.clone()).render_options_section(page)?;
    }
    program.render_extra_section(page)?;
    program.render_version_section(page)
}

pub(crate) fn completions(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let shell = *flags.get_one::<Shell>("shell").expect("clap demands it");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "courser", &mut script);
    print(&script)
}

/// A reader that closes early (`| head`) is no failure.
pub(crate) fn print(page: &[u8]) -> Result<ExitCode, Failure> {
    match io::stdout().write_all(page) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::runtime("cannot write to standard output", error))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
