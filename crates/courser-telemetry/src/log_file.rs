//! A log in a file that others rename, as logrotate(8) does: on request it is opened anew by its name. May not make anyone
//! wait but the log's writer.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::{Level, log};
use crate::writer::Output;

/// A log's file, as its writer has it.
pub struct LogFile {
    path: PathBuf,
    file: File,
    open: fn(&Path) -> io::Result<File>,
    asked: Reopening,
}

/// The request to open a log's file anew.
#[derive(Clone, Debug, Default)]
pub struct Reopening(Arc<AtomicBool>);

impl Reopening {
    /// Asks for it: the next line goes to the file that then has the name.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the writer has not done it yet.
    pub fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl LogFile {
    /// The file of this name, which `open` opens for appending, now and whenever `asked` asks for it.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(path: PathBuf, open: fn(&Path) -> io::Result<File>, asked: Reopening) -> io::Result<Self> {
        Ok(Self { file: open(&path)?, path, open, asked })
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for LogFile {
    /// Where the name cannot be opened, lines go on to the file that is open.
    fn begin_anew(&mut self) -> bool {
        if !self.asked.0.swap(false, Ordering::Relaxed) {
            return false;
        }
        match (self.open)(&self.path) {
            Ok(file) => {
                self.file = file;
                true
            }
            Err(error) => {
                let path = self.path.display();
                log(
                    Level::Error,
                    format_args!("cannot open {path}: {error}; lines go on to the file before"),
                );
                false
            }
        }
    }
}
