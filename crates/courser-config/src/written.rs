//! What a configuration file says, setting by setting, and what another one says instead: for people who reload it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::setting::TakesEffect;
use crate::settings::Scope;
use crate::value::{Entry, Literal, Table, Value};

/// The settings of a file by their place: `workers`, `sessions.lifetime`, `pool.shop.servers`, `listener web: cert`,
/// `listener web, host shop: cert`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written(BTreeMap<String, Setting>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    /// `None` where it may hold a secret.
    text: Option<String>,
    /// A hash of the whole value, for comparison alone: a list of certificates may be megabytes long.
    whole: u64,
    takes_effect: TakesEffect,
}

/// A setting that two files have differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place, as in [`Written`].
    pub setting: String,
    /// What it was; `None` where it was not set.
    pub before: Option<String>,
    /// What it is now; `None` where it is not set.
    pub after: Option<String>,
    /// Whether it takes effect only when the program starts anew.
    pub needs_restart: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, before, after, .. } = self;
        match (before, after) {
            (Some(before), Some(after)) => write!(f, "{setting}: {before} -> {after}"),
            (None, Some(after)) => write!(f, "{setting}: set to {after}"),
            (Some(before), None) => write!(f, "{setting}: was {before}, not set any more"),
            (None, None) => write!(f, "{setting}: changed"),
        }
    }
}

impl Written {
    pub(crate) fn of(top: &Table) -> Self {
        let mut written = Self::default();
        written.add_table("", Scope::Process, top);
        for (key, scope) in [("sessions", Scope::Sessions), ("fleet", Scope::Fleet), ("admin", Scope::Admin)]
        {
            written.add_tables(top, key, |_, _| (format!("{key}."), scope));
        }
        for entry in top.get("pool").into_iter().flat_map(entries) {
            if let Literal::Table(pool) = &entry.value.literal {
                written.add_table(&format!("pool.{}.", entry.key), Scope::Pool, pool);
            }
        }
        for (index, listener) in top.get("listener").into_iter().flat_map(tables).enumerate() {
            let title = format!("listener {}", title(listener, ["name", "listen"], index));
            written.add_table(&format!("{title}: "), Scope::Listener, listener);
            written.add_table(&format!("{title}: "), Scope::Shared, listener);
            for (index, host) in listener.get("host").into_iter().flat_map(tables).enumerate() {
                let title = format!("{title}, host {}: ", self::title(host, ["name", "names"], index));
                written.add_table(&title, Scope::Shared, host);
                written.add_table(&title, Scope::Host, host);
            }
        }
        written
    }

    fn add_tables(&mut self, top: &Table, key: &str, place: impl Fn(usize, &Table) -> (String, Scope)) {
        for (index, table) in top.get(key).into_iter().flat_map(tables).enumerate() {
            let (prefix, scope) = place(index, table);
            self.add_table(&prefix, scope, table);
        }
    }

    fn add_table(&mut self, prefix: &str, scope: Scope, table: &Table) {
        for about in scope.settings() {
            let Some(value) = table.get(about.key) else { continue };
            let whole = shown(value);
            // A URL may hold a password.
            let text = (about.key != "store").then(|| cut(&whole));
            let mut hasher = DefaultHasher::new();
            whole.hash(&mut hasher);
            let setting = Setting { text, whole: hasher.finish(), takes_effect: about.takes_effect };
            self.0.insert(format!("{prefix}{}", about.key), setting);
        }
    }

    /// What is different in `next`, by place.
    pub fn changes_to(&self, next: &Self) -> Vec<Change> {
        let places: BTreeSet<&String> = self.0.keys().chain(next.0.keys()).collect();
        let change = |place: &String| {
            let (before, after) = (self.0.get(place), next.0.get(place));
            if before.map(|it| it.whole) == after.map(|it| it.whole) {
                return None;
            }
            let needs_restart = before.or(after).is_some_and(|it| it.takes_effect == TakesEffect::AtRestart);
            let text = |setting: Option<&Setting>| setting.and_then(|setting| setting.text.clone());
            Some(Change { setting: place.clone(), before: text(before), after: text(after), needs_restart })
        };
        places.into_iter().filter_map(change).collect()
    }
}

fn entries(value: &Value) -> &[Entry] {
    match &value.literal {
        Literal::Table(table) => &table.entries,
        _ => &[],
    }
}

/// The table, or the tables of a list.
fn tables(value: &Value) -> Vec<&Table> {
    match &value.literal {
        Literal::Table(table) => vec![table],
        Literal::List(items) => items.iter().flat_map(tables).collect(),
        _ => Vec::new(),
    }
}

/// What a listener or host is called: by the first of these settings, or by its position.
fn title(table: &Table, keys: [&str; 2], index: usize) -> String {
    let text = |value: &Value| match &value.literal {
        Literal::Text(text) => Some(text.clone()),
        Literal::List(items) => items.first().and_then(|item| match &item.literal {
            Literal::Text(text) => Some(text.clone()),
            _ => None,
        }),
        _ => None,
    };
    keys.iter().find_map(|key| table.get(key).and_then(text)).unwrap_or_else(|| (index + 1).to_string())
}

/// The value in TOML, without the writer's white space and comments.
fn shown(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match &value.literal {
        Literal::Text(text) => format!("{text:?}"),
        Literal::Integer(number) => number.to_string(),
        Literal::Boolean(yes) => yes.to_string(),
        Literal::List(items) => format!("[{}]", list(items.iter().map(shown).collect())),
        Literal::Table(table) => {
            let entry = |entry: &Entry| format!("{} = {}", entry.key, shown(&entry.value));
            format!("{{ {} }}", list(table.entries.iter().map(entry).collect()))
        }
        Literal::Other => value.written(),
    }
}

/// As much as fits in a line.
fn cut(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
