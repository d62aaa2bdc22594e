//! Where the two logs go: to the files that the settings name, or to the standard streams. Files are opened anew on request,
//! for programs that rename them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use courser_config::{Located, Problem, Process};
use courser_net::account::Account;
use courser_telemetry::{LogFile, Output, Reopening, Sink, event};
use rustix::fs::OFlags;

use crate::exit::Failure;
use crate::privileges;

type LogOutput = Box<dyn Output + Send>;

/// Both logs before anything is written to them.
pub(crate) struct LogOutputs {
    pub(crate) connections: LogOutput,
    pub(crate) events: LogOutput,
    pub(crate) files: LogFiles,
}

/// Asks for the files to be opened anew. Does nothing where there are none.
#[derive(Clone, Default)]
pub(crate) struct LogFiles(Vec<Reopening>);

impl LogOutputs {
    /// The files belong to `successor`, who opens them again later.
    pub(crate) fn open(settings: &Process, successor: Option<&Account>) -> Result<Self, Failure> {
        let mut files = LogFiles::default();
        let mut output = |file: Option<&Located<PathBuf>>, stream: &dyn AsFd| -> Result<LogOutput, Failure> {
            let Some(file) = file else { return Ok(Box::new(unbuffered(stream)?)) };
            let asked = Reopening::default();
            let open = || LogFile::open(file.value.clone(), append, asked.clone());
            let opened = successor.map_or_else(|| Ok(open()), |user| privileges::as_account(user, open))?;
            files.0.push(asked.clone());
            opened.map(|file| Box::new(file) as _).map_err(|error| {
                let message = format!("cannot write the log {}: {error}", file.value.display());
                Problem::at(&file.origin, message, None).into()
            })
        };
        let connections = output(settings.log_file.as_ref(), &io::stdout())?;
        let events = output(settings.events_file.as_ref(), &io::stderr())?;
        Ok(Self { connections, events, files })
    }
}

impl LogFiles {
    /// The next line of each goes to the file that has the name then.
    pub(crate) fn reopen(&self) {
        self.0.iter().for_each(Reopening::ask);
    }

    /// Has a log without lines do it as well: until then it holds the file that was renamed. Called once a second.
    pub(crate) fn tick(&self, sink: &Sink) {
        if self.0.iter().any(Reopening::is_due) {
            sink.wake();
            event::wake();
        }
    }
}

/// Opens a log, and makes it, for its user and group to read. A FIFO would block, and what a device makes of lines is not known.
fn append(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("flags of open(2) are an int");
    let file = OpenOptions::new().append(true).create(true).mode(0o640).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// A standard stream as a file: a write is done, or fails, at once, and holds no lock that the end of the process needs.
fn unbuffered(stream: &dyn AsFd) -> Result<File, Failure> {
    let file = stream.as_fd().try_clone_to_owned();
    file.map(File::from).map_err(|error| Failure::runtime("cannot write logs", error))
}
