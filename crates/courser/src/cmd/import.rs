//! `courser import`: another terminator's configuration as one of courser.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fmt, fs};

use clap::ArgMatches;
use courser_config::Problem;
use courser_import::{Effect, Files, Import, Malformed, Remark};
use courser_telemetry::event;

use crate::exit::Failure;

/// Prints the configuration on standard output, and on standard error what is different there. Exit code 2 where
/// something is unsupported.
pub(crate) fn import(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let (program, flags) = flags.subcommand().expect("clap demands a program");
    let (source, import) = match flags.try_get_one::<PathBuf>("file") {
        Ok(Some(path)) => (path.display().to_string(), from_file(program, path)?),
        _ => ("arguments".to_owned(), from_arguments(flags)?),
    };
    let Import { toml, remarks } = import;
    let write = io::stdout().write_all(toml.as_bytes());
    if let Err(error) = write.or_else(|error| if is_broken_pipe(&error) { Ok(()) } else { Err(error) }) {
        return Err(Failure::runtime("cannot write to standard output", error));
    }
    report(&source, &remarks);
    let is_complete = remarks.iter().all(|remark| remark.effect != Effect::Unsupported);
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// A reader that closes early (`| head`) is no failure.
fn is_broken_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

fn from_file(program: &str, path: &Path) -> Result<Import, Failure> {
    let import = match program {
        "hitch" => courser_import::hitch,
        "stunnel" => courser_import::stunnel,
        _ => courser_import::haproxy,
    };
    let text = fs::read_to_string(path)
        .map_err(|error| Problem::nowhere(format!("{}: the file cannot be read: {error}", path.display())))?;
    import(&text, &Disk).map_err(|malformed| refused(&path.display(), program, &malformed))
}

fn from_arguments(flags: &ArgMatches) -> Result<Import, Failure> {
    let arguments: Vec<String> = flags.get_many("arguments").into_iter().flatten().cloned().collect();
    courser_import::stud(&arguments, &Disk).map_err(|malformed| refused(&"arguments", "stud", &malformed))
}

fn refused(source: &dyn fmt::Display, program: &str, malformed: &Malformed) -> Failure {
    let Malformed { line, message } = malformed;
    Problem::nowhere(format!("{source}:{line}: {message}; {program} would not take it")).into()
}

fn report(source: &str, remarks: &[Remark]) {
    for remark in remarks.iter().filter(|remark| remark.effect != Effect::NotNeeded) {
        event::print(format!("{source}: {remark}\n"));
    }
    let unsupported = remarks.iter().filter(|remark| remark.effect == Effect::Unsupported).count();
    if unsupported > 0 {
        event::print(format!("unsupported: {unsupported}; the configuration is incomplete\n"));
    }
}

/// Files of this machine; relative paths start at the current folder, as for those programs.
struct Disk;

impl Files for Disk {
    fn read(&self, file: &Path) -> io::Result<String> {
        fs::read_to_string(file)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let entries: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        let mut files: Vec<PathBuf> = entries.into_iter().filter(|path| path.is_file()).collect();
        files.sort();
        Ok(files)
    }
}
