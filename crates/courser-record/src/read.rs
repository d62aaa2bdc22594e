//! Text to records and back, and why a text is none.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use crate::aliases;
use crate::format::{FORMAT, LAB_FORMAT, LAB_VERSION, VERSION};
use crate::lab::Lab;
use crate::record::Record;

impl Record {
    /// Reads the text of a record, of this version or an earlier one.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_json(text: impl AsRef<[u8]>) -> Result<Self, ReadError> {
        parse(text.as_ref(), &RUN)
    }

    /// The text of a record: JSON for people to read as well, with a newline at its end.
    pub fn to_json(&self) -> String {
        json(self)
    }
}

impl Lab {
    /// Reads the text of a suite's record, of this version or an earlier one.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_json(text: impl AsRef<[u8]>) -> Result<Self, ReadError> {
        parse(text.as_ref(), &LAB)
    }

    /// The text of a suite's record.
    pub fn to_json(&self) -> String {
        json(self)
    }
}

fn json(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("plain fields are always JSON");
    text.push('\n');
    text
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

/// Format and version come first: a record of a newer version is reported as such, not as missing fields.
fn parse<T: DeserializeOwned>(text: &[u8], format: &'static Format) -> Result<T, ReadError> {
    let head: Head = serde_json::from_slice(text).map_err(|error| match error.classify() {
        Category::Data => ReadError::Foreign(format),
        _ => ReadError::of(&error),
    })?;
    if head.format != format.name {
        let other = [&RUN, &LAB].into_iter().find(|other| other.name == head.format);
        return Err(
            other.map_or(ReadError::Foreign(format), |found| ReadError::OtherKind { found, wanted: format })
        );
    }
    match head.version {
        version if version == format.version => serde_json::from_slice(text),
        earlier if (1..format.version).contains(&earlier) => {
            serde_json::from_slice(text).and_then(|mut document| {
                aliases::rename(&mut document, format.name, earlier, format.version);
                serde_json::from_value(document)
            })
        }
        found => return Err(ReadError::Version { found, format }),
    }
    .map_err(|error| ReadError::of(&error))
}

/// What every version has.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// Why a text is no record.
#[derive(Debug)]
pub enum ReadError {
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

impl ReadError {
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
        match self {
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

impl std::error::Error for ReadError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Record::from_json(text).expect_err("it is no record").to_string()
    }

    #[test]
    fn a_text_that_is_no_record_is_named_for_what_it_is() {
        assert!(error("").starts_with("the record ends in the middle, at line 1, column 0"));
        assert!(
            error("{\n\"format\": \"cour").starts_with("the record ends in the middle, at line 2, column 15")
        );
        assert_eq!(error("<html>"), "not JSON at line 1, column 1: expected value");
        assert!(error("[1, 2]").starts_with("not a record: "));
        assert!(error(r#"{"format": "hyperfine", "version": 1}"#).starts_with("not a record: "));
        assert!(error(r#"{"format": "courser-record"}"#).starts_with("not a record: "));
    }

    #[test]
    fn a_newer_version_is_reported_before_its_missing_fields() {
        let newer = error(r#"{"format": "courser-record", "version": 3, "something": "else"}"#);
        assert!(
            newer.starts_with("a record of version 3, and this program reads up to version 2"),
            "{newer}"
        );
    }

    #[test]
    fn the_other_kind_of_record_is_named() {
        let error = Lab::from_json(r#"{"format": "courser-record", "version": 1}"#)
            .expect_err("it is none")
            .to_string();
        assert!(error.starts_with("a courser-record (of: load,"), "{error}");
    }

    #[test]
    fn a_field_that_is_missing_is_named() {
        let error = error("{\"format\": \"courser-record\", \"version\": 2}");
        assert!(
            error.starts_with("not a record of its version at line 1, column 42: missing field `experiment`"),
            "{error}"
        );
    }

    #[test]
    fn a_field_that_a_record_of_version_1_lacks_is_named() {
        let error = error("{\"format\": \"courser-record\", \"version\": 1}");
        assert!(error.starts_with("not a record of its version: missing field `experiment`"), "{error}");
    }
}
