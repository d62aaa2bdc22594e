//! Sections, lines and words.

use crate::Malformed;
use crate::hitch::malformed;

/// A part of the file.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) line: usize,
    pub(super) kind: String,
    pub(super) name: String,
    /// The defaults that it names (`from`).
    pub(super) from: Option<String>,
    pub(super) lines: Vec<Line>,
}

/// A line with at least one word.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) words: Vec<String>,
}

impl Line {
    pub(super) fn text(&self) -> String {
        self.words.join(" ")
    }
}

const SECTIONS: [&str; 15] = [
    "global",
    "defaults",
    "frontend",
    "listen",
    "backend",
    "peers",
    "resolvers",
    "mailers",
    "userlist",
    "program",
    "cache",
    "ring",
    "crt-store",
    "http-errors",
    "fcgi-app",
];

pub(super) fn sections(text: &str) -> Result<Vec<Section>, Malformed> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let words = words(line).map_err(|message| malformed(number, message))?;
        let Some(first) = words.first() else { continue };
        if SECTIONS.contains(&first.as_str()) {
            let (kind, name) = (first.clone(), words.get(1).cloned().unwrap_or_default());
            let from = words.iter().position(|word| word == "from").and_then(|at| words.get(at + 1)).cloned();
            sections.push(Section { line: number, kind, name, from, lines: Vec::new() });
            continue;
        }
        let section =
            sections.last_mut().ok_or_else(|| malformed(number, format!("`{first}` is in no section")))?;
        section.lines.push(Line { number, words });
    }
    Ok(sections)
}

/// The lines of the defaults that hold for a section: those that it names, or the last ones before it.
pub(super) fn defaults_of<'a>(section: &Section, sections: &'a [Section]) -> &'a [Line] {
    let is_its = |defaults: &&Section| {
        defaults.kind == "defaults"
            && match &section.from {
                Some(name) => defaults.name == *name,
                None => defaults.line < section.line,
            }
    };
    sections.iter().rev().find(is_its).map_or(&[], |defaults| &defaults.lines)
}

/// Words of a line: quotes and backslashes as in a shell, `#` begins a comment (HAProxy's manual, section 2.2).
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) => break,
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote has no end".to_owned());
    }
    words.extend(word);
    Ok(words)
}
