//! Records and reports on disk: read, and written whole or not at all.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use courser_record::{Lab, ReadError, Record};

use crate::error::Error;

/// Reads the record of a run.
///
/// # Errors
/// When there is no such file, or no such record in it; the error names the file.
pub fn read_run(path: &Path) -> Result<Record, Error> {
    Record::from_json(read(path)?).map_err(|error| Error::input(format!("{}: {error}", path.display())))
}

/// Reads the record of a suite.
///
/// # Errors
/// As [`read_run`]; for a record of the other kind it names the verb that prints it.
pub fn read_lab(path: &Path) -> Result<Lab, Error> {
    let shown = path.display();
    Lab::from_json(read(path)?).map_err(|error| match error {
        ReadError::OtherKind { .. } => {
            Error::input(format!("{shown}: {error}; `courser-bench show {shown}` prints it"))
        }
        _ => Error::input(format!("{shown}: {error}")),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| Error::input(format!("{}: cannot be read: {error}", path.display())))
}

/// Writes a file. Whoever reads meanwhile sees the previous file or this one, and after a failure the previous one is
/// still there: the text goes into a new file beside it, to the disk, and then takes the name. What is no regular file
/// (a pipe, a terminal) is written to as it is.
///
/// # Errors
/// When it cannot be written; the error names the file and what to do.
pub fn write(path: &Path, text: &str) -> Result<(), WriteError> {
    let failed = |error| WriteError { path: path.to_owned(), error };
    // A link keeps pointing where it did.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(there) if there.is_dir() => Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(there) if !there.is_file() => pour(&target, text).map_err(failed),
        _ => replace(&target, text).map_err(failed),
    }
}

fn pour(path: &Path, text: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = beside(path)?;
    let written = fill(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // It may not exist; the first error is the one to return.
        let _ = fs::remove_file(&beside);
    }
    written?;
    // The name has to reach the disk too. Some file systems cannot be asked; the record is there all the same.
    let _ = File::open(folder(path)).and_then(|folder| folder.sync_all());
    Ok(())
}

fn fill(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A name in the same folder, since a file cannot be moved from one file system to another in one step. The process
/// is in it, so that two that write the same record do not write into one file.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
    Ok(folder(path).join(name))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Why a file is not on the disk.
#[derive(Debug)]
pub struct WriteError {
    /// Where it should be.
    pub path: PathBuf,
    /// What the system says.
    pub error: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}; {}", self.path.display(), self.error, self.advice())
    }
}

impl WriteError {
    fn advice(&self) -> &'static str {
        match self.error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                "make room or name another folder; a file that was there before is as it was"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "name a folder that you may write to"
            }
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "make its folder first",
            io::ErrorKind::IsADirectory | io::ErrorKind::InvalidFilename => "name a file",
            _ => "name another file",
        }
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        Self::System(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let message =
            |kind: io::ErrorKind| WriteError { path: "out/a.json".into(), error: kind.into() }.to_string();
        assert!(message(io::ErrorKind::StorageFull).starts_with("cannot write out/a.json: no storage space"));
        assert!(message(io::ErrorKind::StorageFull).ends_with("is as it was"));
        assert!(message(io::ErrorKind::PermissionDenied).ends_with("name a folder that you may write to"));
        assert!(message(io::ErrorKind::NotFound).ends_with("make its folder first"));
    }

    #[test]
    fn a_bare_name_is_in_this_folder() {
        assert_eq!(folder(Path::new("a.json")), Path::new("."));
        assert_eq!(folder(Path::new("b/a.json")), Path::new("b"));
    }
}
