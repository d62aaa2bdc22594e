//! Values as they were written, each with its place: the common ground of file and flags.

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use crate::near::suggest;
use crate::problem::{Problem, Problems};
use crate::source::{Source, SourceSpan};

#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) origin: SourceSpan,
    pub(crate) literal: Literal,
}

/// What was written, before anyone knows what it is for.
#[derive(Debug, Clone)]
pub(crate) enum Literal {
    Text(String),
    /// Saturated: whatever does not fit is out of every setting's range.
    Integer(i128),
    Boolean(bool),
    List(Vec<Value>),
    Table(Table),
    /// Numbers with a fraction, dates: what no setting takes.
    Other,
}

/// A table in the order of its keys' names.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) origin: SourceSpan,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_origin: SourceSpan,
    pub(crate) value: Value,
}

impl Table {
    /// Reads a file's text.
    ///
    /// The parser recovers from errors to find further ones, but the tree it then yields would cause
    /// complaints about what was never written; so it is either the tree or the errors.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, Problems> {
        let source = Arc::new(Source { file: Some(path.to_owned()), text: text.to_owned() });
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let origin = SourceSpan::new(&source, table.span());
            return Ok(from_table(table.get_ref(), origin, &source));
        }
        let mut problems = Problems::default();
        for error in errors {
            let origin = SourceSpan::new(&source, error.span().unwrap_or(0..0));
            problems.push(Problem::at(&origin, error.message(), None));
        }
        Err(problems)
    }

    /// Complains of a key that is none of these.
    pub(crate) fn refuse_others(&self, keys: &[&str]) -> Result<(), Problems> {
        match self.entries.iter().find(|entry| !keys.contains(&entry.key.as_str())) {
            None => Ok(()),
            Some(Entry { key, key_origin, .. }) => {
                let help = suggest(key, keys.iter().copied());
                Err(Problem::at(key_origin, format!("unknown key `{key}`"), Some(help)).into())
            }
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }
}

impl Value {
    /// A value of our own, written in TOML.
    pub(crate) fn builtin(toml: &str) -> Self {
        let source = Arc::new(Source { file: None, text: toml.to_owned() });
        let value = DeValue::parse(toml).expect("a test reads every default and example of the table");
        from_value(&value, &source)
    }

    /// What was written, in one line and cut short, for messages.
    pub(crate) fn written(&self) -> String {
        const SHOWN: usize = 60;
        let text = &self.origin.text()[self.origin.span()];
        let line = text.lines().next().unwrap_or_default();
        if line.len() == text.len() && line.chars().count() <= SHOWN {
            return line.to_owned();
        }
        line.chars().take(SHOWN).collect::<String>() + "…"
    }
}

fn from_table(table: &DeTable<'_>, origin: SourceSpan, source: &Arc<Source>) -> Table {
    let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| Entry {
        key: key.get_ref().to_string(),
        key_origin: SourceSpan::new(source, key.span()),
        value: from_value(value, source),
    };
    Table { origin, entries: table.iter().map(entry).collect() }
}

fn from_value(value: &Spanned<DeValue<'_>>, source: &Arc<Source>) -> Value {
    let origin = SourceSpan::new(source, value.span());
    let literal = match value.get_ref() {
        DeValue::String(text) => Literal::Text(text.to_string()),
        DeValue::Integer(number) => Literal::Integer(integer(number)),
        DeValue::Boolean(yes) => Literal::Boolean(*yes),
        DeValue::Array(items) => Literal::List(items.iter().map(|item| from_value(item, source)).collect()),
        DeValue::Table(table) => Literal::Table(from_table(table, origin.clone(), source)),
        DeValue::Float(_) | DeValue::Datetime(_) => Literal::Other,
    };
    Value { origin, literal }
}

fn integer(number: &DeInteger<'_>) -> i128 {
    i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX)
}
