//! Why a file cannot be read or written, and what to do about it.

use std::path::Path;
use std::{fmt, io};

use courser_config::{Problem, Problems, SourceSpan};
use courser_net::account::Account;

use crate::exposure::Exposure;

/// The longest file that is read, 1 MiB: a chain is a few kilobytes, and a wrong path (a log, a device) must not fill
/// the memory.
pub(crate) const LONGEST: u64 = 1 << 20;

/// Why a file, mostly one with a secret, cannot be read or written.
#[derive(Debug)]
pub(crate) enum FileError {
    /// Another user may read or change the file.
    Exposed(Exposure),
    /// It is not a regular file, but this.
    NoFile(&'static str),
    /// It is longer than any file of its kind that is read: so many bytes.
    TooLong(u64),
    NotText,
    System(io::Error),
}

impl FileError {
    /// Whether the file, or its folder, is not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::System(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether others may have read or changed it.
    pub(crate) fn is_exposed(&self) -> bool {
        matches!(self, Self::Exposed(_))
    }

    /// The remedy, where `reader` is to use `path`.
    pub(crate) fn help(&self, path: &Path, reader: &Account) -> Option<String> {
        match self {
            Self::Exposed(exposure) => Some(exposure.help(path, reader)),
            Self::System(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Some("a key that is in use would be lost: choose another name, or remove it first".to_owned())
            }
            _ => None,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exposed(exposure) => write!(f, "{exposure}"),
            Self::NoFile(what) => write!(f, "it is {what}, not a file"),
            Self::TooLong(most) => write!(f, "it has more than {most} bytes"),
            Self::NotText => f.write_str("it is not text"),
            Self::System(error) => write!(f, "{error}"),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// The problem of a file of certificates or of a key that cannot be read.
pub(crate) fn unusable(place: &SourceSpan, path: &Path, refusal: &FileError, reader: &Account) -> Problems {
    let message = match refusal {
        FileError::System(error) => format!("{}: the file cannot be read: {error}", path.display()),
        refusal => format!("{}: {refusal}", path.display()),
    };
    let help = || "check the path, and that the user that courser runs as may read it".to_owned();
    Problem::at(place, message, Some(refusal.help(path, reader).unwrap_or_else(help))).into()
}
