//! Where something was written: a range of bytes in a file or on the command line.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A text that settings were read from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The file, or `None` for one flag of the command line with its value.
    pub(crate) file: Option<PathBuf>,
    pub(crate) text: String,
}

/// Where a setting was written: file, line and column, or the flag.
///
/// Cheap to clone; owns the text it points into, so that a problem found much later can still show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceSpan {
    source: Arc<Source>,
    span: Range<usize>,
}

impl SourceSpan {
    /// `span` is moved to the nearest character boundaries within the text.
    pub(crate) fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        let boundary =
            |at: usize| (0..=at.min(source.text.len())).rev().find(|&at| source.text.is_char_boundary(at));
        let start = boundary(span.start).unwrap_or(0);
        let end = boundary(span.end).unwrap_or(0).max(start);
        Self { source: Arc::clone(source), span: start..end }
    }

    /// The file, or `None` where it was a flag.
    pub fn file(&self) -> Option<&Path> {
        self.source.file.as_deref()
    }

    /// Line and column, both counted from 1, the column in characters.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = &self.source.text[..self.span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }

    pub(crate) fn text(&self) -> &str {
        &self.source.text
    }

    pub(crate) fn same_text(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source)
    }

    /// The name of the flag it points into, without dashes.
    pub(crate) fn text_of_flag(&self) -> &str {
        self.text().trim_start_matches('-').split(' ').next().unwrap_or_default()
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// A part of it, in bytes from its start.
    pub(crate) fn part(&self, part: Range<usize>) -> Self {
        let clamp = |offset: usize| (self.span.start + offset).min(self.span.end);
        Self::new(&self.source, clamp(part.start)..clamp(part.end))
    }

    /// A path written here, as the program has to open it: relative to the file it stands in.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        match self.file().and_then(Path::parent) {
            Some(folder) => folder.join(path),
            None => PathBuf::from(path),
        }
    }
}

/// Without the text, which is the whole file.
impl fmt::Debug for SourceSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({self})")
    }
}

/// `courser.toml:12:3`, or the flag with its value.
impl fmt::Display for SourceSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file() {
            Some(file) => {
                let (line, column) = self.line_and_column();
                write!(f, "{}:{line}:{column}", file.display())
            }
            None => f.write_str(&self.source.text),
        }
    }
}
