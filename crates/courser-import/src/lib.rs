//! Configurations of other terminators as configurations of courser: text in, text out. What has no counterpart is
//! named; what depends on it is not written, since a service that lets in or sends on something else is worse than none.
//!
//! Each program has a module that reads its language; `document` writes ours.

mod ciphers;
mod document;
mod haproxy;
mod hitch;
mod remark;
mod service;
mod stud;
mod stunnel;

use std::io;
use std::path::{Path, PathBuf};

pub use remark::{Effect, Remark};

/// A configuration of courser.
#[derive(Debug)]
pub struct Import {
    /// The configuration, with the remarks as comments.
    pub toml: String,
    /// What is different from the original, in the order of its lines.
    pub remarks: Vec<Remark>,
}

impl Import {
    /// Whether something is unsupported.
    pub fn is_incomplete(&self) -> bool {
        self.remarks.iter().any(|remark| remark.effect == Effect::Unsupported)
    }
}

/// Where the files are that a configuration names.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    /// As of the system.
    fn read(&self, file: &Path) -> io::Result<String>;

    /// The files in a folder, by name.
    ///
    /// # Errors
    /// As of the system.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
}

/// Why nothing was imported.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Line of the file, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

/// A configuration file of hitch, the text of `hitch.conf(5)`.
///
/// # Errors
/// Text that hitch does not accept either.
pub fn hitch(text: &str, files: &dyn Files) -> Result<Import, Malformed> {
    hitch::import(text, files)
}

/// The command line of stud, and of hitch: what follows the program's name.
///
/// # Errors
/// A flag that neither has.
pub fn stud(arguments: &[String], files: &dyn Files) -> Result<Import, Malformed> {
    stud::import(arguments, files)
}

/// A configuration file of stunnel, the text of `stunnel.conf`.
///
/// # Errors
/// Text that stunnel does not accept either.
pub fn stunnel(text: &str, files: &dyn Files) -> Result<Import, Malformed> {
    stunnel::import(text, files)
}

/// A configuration file of HAProxy: its `bind … ssl` in mode tcp.
///
/// # Errors
/// Text that HAProxy does not accept either.
pub fn haproxy(text: &str, files: &dyn Files) -> Result<Import, Malformed> {
    haproxy::import(text, files)
}
