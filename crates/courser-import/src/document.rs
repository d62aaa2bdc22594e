//! A configuration of courser, written as TOML.

use std::fmt::{self, Display, Write};

use crate::Import;
use crate::remark::Remarks;

/// The whole configuration.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) process: Table,
    pub(crate) sessions: Table,
    pub(crate) pools: Vec<(String, Table)>,
    pub(crate) listeners: Vec<Listener>,
}

/// A listener with its hosts.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    pub(crate) settings: Table,
    pub(crate) hosts: Vec<Table>,
}

/// Settings in the order in which they were set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Vec<(&'static str, Value)>);

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Number(u64),
    Bool(bool),
    List(Vec<Self>),
    Table(Vec<(&'static str, Self)>),
}

impl Table {
    /// Sets a value, in place of an earlier one.
    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key, value)),
        }
    }

    /// Sets what another table has.
    pub(crate) fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|(key, value)| self.set(key, value.clone()));
    }

    /// Forgets a setting.
    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(known, _)| *known != key);
    }

    /// Sets what there is a value for.
    pub(crate) fn set_some(&mut self, key: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets a list that is not empty.
    pub(crate) fn set_list(&mut self, key: &'static str, list: Vec<Value>) {
        if !list.is_empty() {
            self.set(key, Value::List(list));
        }
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

/// A list of texts.
pub(crate) fn texts<T: Into<Value>>(list: impl IntoIterator<Item = T>) -> Vec<Value> {
    list.into_iter().map(Into::into).collect()
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write_text(text, f),
            Self::Number(number) => write!(f, "{number}"),
            Self::Bool(bool) => write!(f, "{bool}"),
            Self::List(list) => {
                f.write_str("[")?;
                for (index, value) in list.iter().enumerate() {
                    write!(f, "{}{value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Table(entries) => {
                f.write_str("{ ")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key} = {value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str(" }")
            }
        }
    }
}

/// A basic string (TOML 1.0, "String").
fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(key, value)| writeln!(f, "{key} = {value}"))
    }
}

impl Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, sessions, pools, listeners } = self;
        write!(f, "{process}")?;
        if !sessions.0.is_empty() {
            write!(f, "\n[sessions]\n{sessions}")?;
        }
        for (name, pool) in pools {
            write!(f, "\n[pool.{}]\n{pool}", Value::Text(name.clone()))?;
        }
        for Listener { settings, hosts } in listeners {
            write!(f, "\n[[listener]]\n{settings}")?;
            hosts.iter().try_for_each(|host| write!(f, "\n[[listener.host]]\n{host}"))?;
        }
        Ok(())
    }
}

impl Document {
    /// The configuration of `program`, with its remarks as comments above it.
    pub(crate) fn import(&self, program: &str, remarks: Remarks) -> Import {
        let remarks = remarks.into_sorted();
        let mut toml = format!("# Imported from a configuration of {program}.\n");
        for remark in &remarks {
            let _ = writeln!(toml, "# {remark}");
        }
        let _ = write!(toml, "\n{self}");
        Import { toml, remarks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_where_toml_asks_for_it() {
        assert_eq!(Value::from("a\"b\\c\nd").to_string(), r#""a\"b\\c\u000Ad""#);
    }

    #[test]
    fn tables_follow_each_other_as_toml_wants_them() {
        let mut document = Document::default();
        document.process.set("workers", 2);
        document.sessions.set("tickets", false);
        let mut listener = Listener::default();
        listener.settings.set("listen", Value::List(texts(["*:443"])));
        let mut host = Table::default();
        host.set("cert", Value::Table(vec![("chain", "a".into()), ("key", "b".into())]));
        listener.hosts.push(host);
        document.listeners.push(listener);
        let expected = "workers = 2\n\n[sessions]\ntickets = false\n\n[[listener]]\nlisten = [\"*:443\"]\n\n\
                        [[listener.host]]\ncert = { chain = \"a\", key = \"b\" }\n";
        assert_eq!(document.to_string(), expected);
    }
}
