//! Text to records, and why not.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::aliases;
use crate::lab::{LAB_FORMAT, LAB_VERSION, Lab};
use crate::record::{FORMAT, Record, VERSION};

impl Record {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When there is no such file, or nothing in it that this program understands; the error names the file.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        read(path, &RUN)
    }

    /// Reads the text of a record, of this version or an older one.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_json(text: impl AsRef<[u8]>) -> Result<Self, ReadError> {
        parse(text.as_ref(), &RUN).map_err(|problem| ReadError { path: None, problem })
    }
}

impl Lab {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When there is no such file, or no record of a suite in it; the error names the file.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        read(path, &LAB)
    }

    /// Reads the text of a suite's record.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_json(text: impl AsRef<[u8]>) -> Result<Self, ReadError> {
        parse(text.as_ref(), &LAB).map_err(|problem| ReadError { path: None, problem })
    }
}

/// A format that is read.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    name: &'static str,
    version: u32,
    /// What makes and reads it.
    verbs: &'static str,
}

const RUN: Format = Format { name: FORMAT, version: VERSION, verbs: "load, search, ramp, show, merge" };
const LAB: Format = Format { name: LAB_FORMAT, version: LAB_VERSION, verbs: "run, report, compare" };

fn read<T: DeserializeOwned>(path: &Path, format: &'static Format) -> Result<T, ReadError> {
    let named = |problem| ReadError { path: Some(path.to_owned()), problem };
    let text = fs::read(path).map_err(|error| named(Problem::Io(error)))?;
    parse(&text, format).map_err(named)
}

/// Format and version come first: a record of a newer version is told as that, not as fields that are missing.
fn parse<T: DeserializeOwned>(text: &[u8], format: &'static Format) -> Result<T, Problem> {
    let head: Head = serde_json::from_slice(text).map_err(|error| match error.classify() {
        Category::Data => Problem::Foreign(format),
        _ => Problem::of(&error),
    })?;
    if head.format != format.name {
        let other = [&RUN, &LAB].into_iter().find(|other| other.name == head.format);
        return Err(
            other.map_or(Problem::Foreign(format), |found| Problem::OtherKind { found, wanted: format })
        );
    }
    match head.version {
        version if version == format.version => serde_json::from_slice(text),
        1 => serde_json::from_slice(text).and_then(|mut document| {
            aliases::rename(&mut document, format.name, format.version);
            serde_json::from_value(document)
        }),
        found => return Err(Problem::Version { found, format }),
    }
    .map_err(|error| Problem::of(&error))
}

/// What every version has.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// Why there is no record.
#[derive(Debug)]
pub struct ReadError {
    /// The file, where it was one.
    pub path: Option<PathBuf>,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a text or file that should be a record.
#[derive(Debug)]
pub enum Problem {
    /// The file could not be read.
    Io(io::Error),
    /// It ends too early, after this line and column (from 1).
    Truncated {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// It is no JSON.
    NotJson {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// It is JSON, but of something else.
    Foreign(&'static Format),
    /// It is a record, but of the other kind.
    OtherKind {
        /// What it is.
        found: &'static Format,
        /// What it should be.
        wanted: &'static Format,
    },
    /// It is a record of a version that this program does not know.
    Version {
        /// Its version.
        found: u32,
        /// Its format.
        format: &'static Format,
    },
    /// It says it is a record of this version, and is not.
    Malformed {
        /// Line and column, from 1; `None` in a record of an earlier version, whose names were changed before.
        place: Option<(usize, usize)>,
        /// What is wrong there.
        reason: String,
    },
}

impl Problem {
    fn of(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => Self::Truncated { line, column },
            Category::Data => {
                Self::Malformed { place: (line > 0).then_some((line, column)), reason: reason(error) }
            }
            Category::Syntax | Category::Io => Self::NotJson { line, column, reason: reason(error) },
        }
    }
}

/// The library's words without the place, which we say ourselves.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Truncated { line, column } => write!(
                f,
                "the record ends in the middle, at line {line}, column {column}: copy it again from where it was written"
            ),
            Self::NotJson { line, column, reason } => {
                write!(f, "not JSON at line {line}, column {column}: {reason}")
            }
            Self::Foreign(format) => {
                write!(f, "not a record: it does not say \"format\": \"{}\" and its version", format.name)
            }
            Self::OtherKind { found, wanted } => write!(
                f,
                "a {} (of: {}), and not a {}, which is what this reads (of: {})",
                found.name, found.verbs, wanted.name, wanted.verbs
            ),
            Self::Version { found, format } => write!(
                f,
                "a record of version {found}, and this program reads up to version {}: use the courser-bench that wrote \
                 it, or a newer one",
                format.version
            ),
            Self::Malformed { place, reason } => {
                let place =
                    place.map_or(String::new(), |(line, column)| format!(" at line {line}, column {column}"));
                write!(f, "not a record of its version{place}: {reason}; was it edited by hand?")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        Record::from_json(text).expect_err("it is no record").to_string()
    }

    #[test]
    fn what_is_no_record_is_told_as_what_it_is() {
        assert!(told("").starts_with("the record ends in the middle, at line 1, column 0"));
        assert!(
            told("{\n\"format\": \"cour").starts_with("the record ends in the middle, at line 2, column 15")
        );
        assert_eq!(told("<html>"), "not JSON at line 1, column 1: expected value");
        assert!(told("[1, 2]").starts_with("not a record: "));
        assert!(told(r#"{"format": "hyperfine", "version": 1}"#).starts_with("not a record: "));
        assert!(told(r#"{"format": "courser-record"}"#).starts_with("not a record: "));
    }

    #[test]
    fn a_newer_version_is_told_before_its_fields_are_missed() {
        let newer = told(r#"{"format": "courser-record", "version": 3, "something": "else"}"#);
        assert!(
            newer.starts_with("a record of version 3, and this program reads up to version 2"),
            "{newer}"
        );
    }

    #[test]
    fn the_other_kind_of_record_is_named() {
        let told = Lab::from_json(r#"{"format": "courser-record", "version": 1}"#)
            .expect_err("it is none")
            .to_string();
        assert!(told.starts_with("a courser-record (of: load,"), "{told}");
    }

    #[test]
    fn a_field_that_is_missing_is_named() {
        let told = told("{\"format\": \"courser-record\", \"version\": 2}");
        assert!(
            told.starts_with("not a record of its version at line 1, column 42: missing field `tool`"),
            "{told}"
        );
    }

    #[test]
    fn a_field_that_a_record_of_version_1_lacks_is_named() {
        let error = told("{\"format\": \"courser-record\", \"version\": 1}");
        assert!(error.starts_with("not a record of its version: missing field `tool`"), "{error}");
    }
}
