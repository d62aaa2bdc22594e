//! What is wrong with a configuration, and how it is shown: all of it at once, each with its place.

use std::fmt;
use std::path::Path;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};

use crate::source::SourceSpan;

/// Whether the program can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but something will not be as it was probably meant.
    Warning,
}

/// One thing that is wrong, where it stands, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Whether the program can start.
    pub severity: Severity,
    /// Lower case, no full stop.
    pub message: String,
    /// Where it was written, where there is such a place.
    pub origin: Option<SourceSpan>,
    /// What to do about it.
    pub help: Option<String>,
    /// Another place that matters, and what stands there.
    pub(crate) related: Option<(SourceSpan, String)>,
}

impl Problem {
    /// An error at a place: also for what the program finds later, such as a certificate file that is none.
    pub fn at(origin: &SourceSpan, message: impl Into<String>, help: Option<String>) -> Self {
        Self { origin: Some(origin.clone()), help, ..Self::nowhere(message) }
    }

    /// An error without a place.
    pub fn nowhere(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into(), origin: None, help: None, related: None }
    }

    /// The same, as a warning.
    #[must_use]
    pub fn as_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    pub(crate) fn related(self, origin: &SourceSpan, label: impl Into<String>) -> Self {
        Self { related: Some((origin.clone(), label.into())), ..self }
    }

    fn render(&self, renderer: &Renderer) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        // The message quotes what was written, which may hold anything, a terminal's escape sequences too.
        let mut group = Group::with_title(level.primary_title(normalize_untrusted_str(&self.message)));
        group = group.elements(self.snippets());
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
        }
        renderer.render(&[group])
    }

    /// One snippet per text: places in the same text are shown together.
    fn snippets(&self) -> Vec<Snippet<'_, annotate_snippets::Annotation<'_>>> {
        let Some(origin) = &self.origin else { return Vec::new() };
        let first = snippet(origin).annotation(AnnotationKind::Primary.span(origin.span()));
        let Some((other, label)) = &self.related else { return vec![first] };
        let note = AnnotationKind::Context.span(other.span()).label(label);
        if other.same_text(origin) {
            vec![first.annotation(note)]
        } else {
            vec![first, snippet(other).annotation(note)]
        }
    }
}

fn snippet(origin: &SourceSpan) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    match origin.file() {
        Some(file) => Snippet::source(origin.text()).path(file.to_string_lossy()),
        None => Snippet::source(origin.text()).path("command line"),
    }
}

/// Everything found wrong in one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        self.list.push(problem);
    }

    /// In the order of the file; those of the command line and without a place come first.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// Whether there is no problem.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many errors, and how many warnings.
    pub fn counts(&self) -> (usize, usize) {
        let errors = self.list.iter().filter(|problem| problem.severity == Severity::Error).count();
        (errors, self.list.len() - errors)
    }

    /// Whether the program cannot start.
    pub fn has_errors(&self) -> bool {
        self.counts().0 > 0
    }

    /// For people, in the form of rustc's messages, one after another with an empty line between; ends with a
    /// newline unless empty. With `colour`, ANSI escape sequences are added.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let shown: Vec<_> = self.list.iter().map(|problem| problem.render(&renderer) + "\n").collect();
        shown.join("\n")
    }

    pub(crate) fn sort(&mut self) {
        self.list.sort_by_key(|problem| {
            let file = problem.origin.as_ref().and_then(SourceSpan::file);
            let place =
                |file: &Path| (file.to_owned(), problem.origin.as_ref().map(|origin| origin.span().start));
            file.map(place)
        });
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problems {}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { list: vec![problem] }
    }
}

impl Extend<Problem> for Problems {
    fn extend<I: IntoIterator<Item = Problem>>(&mut self, problems: I) {
        self.list.extend(problems);
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
