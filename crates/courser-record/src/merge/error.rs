//! Why records are not merged.

use std::fmt;

use crate::experiment::Share;

/// Why records do not belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// So many records are nothing to merge.
    TooFew(usize),
    /// The record of this machine was merged already: what it overlaps with is no longer known.
    MergedAlready(String),
    /// The record of this machine is of a generator that ran alone.
    NoShare(String),
    /// A share outside of its whole.
    NoSuchShare(Share),
    /// Two records are of the same share: the same file twice, or two generators that made the same load.
    SameShare(Share),
    /// Two records are of different experiments.
    Differs {
        /// The field that differs, as a path.
        field: String,
        /// One label and what its record says.
        left: (String, String),
        /// The other's.
        right: (String, String),
    },
    /// One generator never came to its steady window.
    NoWindow {
        /// The label of the run.
        run: String,
        /// The generator's label.
        label: String,
    },
    /// One generator had ended before another one began.
    NotTogether {
        /// The label of the run.
        run: String,
        /// Whose steady window ended first.
        ended: String,
        /// Whose began after that.
        began: String,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew(count) => write!(f, "{count} records are nothing to merge: name two or more"),
            Self::MergedAlready(name) => {
                write!(
                    f,
                    "the record of {name} is a merged one: merge the generators' own records, all at once"
                )
            }
            Self::NoShare(name) => write!(
                f,
                "the generator on {name} made the whole load by itself: start each with its part, --share 1/2 and so on"
            ),
            Self::NoSuchShare(share) => write!(f, "there is no share {share}"),
            Self::SameShare(share) => write!(
                f,
                "two records of share {share}: the same file twice, or two generators that made the same part of the load"
            ),
            Self::Differs { field, left, right } => write!(
                f,
                "not the same experiment: {field} is {} on {}, and {} on {}",
                left.1, left.0, right.1, right.0
            ),
            Self::NoWindow { run, label } => {
                write!(f, "run {run}: {label} has measured nothing, it was cut before its steady window")
            }
            Self::NotTogether { run, ended, began } => write!(
                f,
                "run {run}: {ended} had ended before {began} began; start them together with --start-at, and set the \
                 machines' clocks (NTP)"
            ),
        }
    }
}

impl std::error::Error for MergeError {}
