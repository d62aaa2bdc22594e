//! The command line: a flag is another form of a setting's value, read by the same code.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::document::apply;
use crate::draft::{Draft, ListenerDraft};
use crate::problem::{Problem, Problems};
use crate::setting::{About, DefaultValue, Flag, Kind};
use crate::settings::{ADMIN, FLEET, LISTENER, PROCESS, SESSIONS, SHARED, Scope};
use crate::source::{Source, SourceSpan};
use crate::value::{Entry, Literal, Table, Value};

const CONFIG: &str = "config";

const EXAMPLES: &str = "\
Examples:
  Terminate TLS for a program on this machine, with a self-signed certificate:
    courser serve --listen '*:8443' --backend 127.0.0.1:8080

  Send the client's address to the backend:
    courser serve --cert site.pem --backend 10.0.0.3:80 --send-proxy v2

  Use a file for several listeners and hosts; flags of the process and of sessions override it:
    courser serve --config courser.toml --workers 4";

pub(crate) fn add_to(command: Command) -> Command {
    let config = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Path of the configuration file, in TOML (`courser config defaults` prints a complete one)")
        .help_heading("Configuration");
    let flags =
        Scope::ALL.iter().flat_map(|scope| scope.settings().into_iter().map(|about| argument(*scope, about)));
    command.arg(config).args(flags.flatten()).after_help(EXAMPLES)
}

fn argument(scope: Scope, about: &'static About) -> Option<Arg> {
    let name = about.flag.name()?;
    let argument = Arg::new(name)
        .long(name)
        .help(short_help(about))
        .long_help(long_help(about))
        .help_heading(heading(scope));
    Some(match about.flag {
        Flag::Switch(..) => argument.action(ArgAction::SetTrue),
        _ if about.kind.repeats() => argument.value_name(about.kind.placeholder()).action(ArgAction::Append),
        _ => argument.value_name(about.kind.placeholder()).action(ArgAction::Set),
    })
}

fn heading(scope: Scope) -> &'static str {
    match scope {
        Scope::Process => "Process",
        Scope::Sessions => "Sessions",
        Scope::Fleet => "Fleet",
        Scope::Admin => "Operators and monitoring",
        Scope::Acme | Scope::Pool | Scope::Listener | Scope::Shared | Scope::Host => {
            "Listener (without --config)"
        }
    }
}

fn short_help(about: &About) -> String {
    if let Flag::Switch(_, _, help) = about.flag {
        return help.to_owned();
    }
    let sentence = about.doc.split_once(". ").map_or(about.doc, |(first, _)| first).trim_end_matches('.');
    let choices = about.kind.choices().map(|names| format!(" [{}]", names.join(", "))).unwrap_or_default();
    let default = match about.default {
        DefaultValue::Toml(value) => value.trim_matches(['"', '[', ']']),
        // The words before the colon; the reference page has the rest.
        DefaultValue::Derived(words) => words.split(": ").next().unwrap_or(words),
    };
    match default {
        "" | "none" => format!("{sentence}{choices}"),
        default => format!("{sentence}{choices} [default: {}]", default.replace('`', "")),
    }
}

fn long_help(about: &About) -> String {
    match (about.flag, about.default) {
        (Flag::Switch(_, _, help), _) => format!("{help}.\n\nThe setting `{}`: {}", about.key, about.doc),
        (_, DefaultValue::Toml(value)) => format!("{}\n\nDefault: {}", about.doc, value.trim_matches('"')),
        (_, DefaultValue::Derived(words)) => format!("{}\n\nDefault: {words}", about.doc),
    }
}

/// The flags, over the file of `--config` where there is one.
pub(crate) fn read(matches: &ArgMatches, problems: &mut Problems) -> Draft {
    let mut draft = match matches.get_one::<PathBuf>(CONFIG) {
        Some(path) => {
            refuse_beside_file(matches, path, problems);
            read_file(path, problems)
        }
        None => Draft { listeners: vec![read_listener(matches, problems)], ..Draft::new() },
    };
    apply(PROCESS, &given(matches, Scope::Process), &mut draft.process, problems);
    apply(SESSIONS, &given(matches, Scope::Sessions), &mut draft.sessions, problems);
    apply(FLEET, &given(matches, Scope::Fleet), &mut draft.fleet, problems);
    apply(ADMIN, &given(matches, Scope::Admin), &mut draft.admin, problems);
    draft
}

/// Reads a file into a draft; a file that cannot be read is a problem too.
pub(crate) fn read_file(path: &Path, problems: &mut Problems) -> Draft {
    match std::fs::read_to_string(path) {
        Ok(text) => crate::document::read(&text, path, problems),
        Err(error) => {
            problems.push(Problem::nowhere(format!("cannot read `{}`: {error}", path.display())));
            Draft::new()
        }
    }
}

fn refuse_beside_file(matches: &ArgMatches, path: &Path, problems: &mut Problems) {
    for scope in Scope::ALL.into_iter().filter(|scope| !scope.overrides_file()) {
        for entry in given(matches, scope).entries {
            let message =
                format!("`--{}` cannot be combined with `--config`", entry.key_origin.text_of_flag());
            let help = format!("set `{}` {} of {}", entry.key, scope.place(), path.display());
            problems.push(Problem::at(&entry.key_origin, message, Some(help)));
        }
    }
}

fn read_listener(matches: &ArgMatches, problems: &mut Problems) -> ListenerDraft {
    let (errors_before, _) = problems.counts();
    let mut draft = ListenerDraft::new(None);
    apply(LISTENER, &given(matches, Scope::Listener), &mut draft, problems);
    apply(SHARED, &given(matches, Scope::Shared), &mut draft.own, problems);
    draft.incomplete = problems.counts().0 > errors_before;
    draft
}

/// The flags of a scope that were given, as the table a file would have.
fn given(matches: &ArgMatches, scope: Scope) -> Table {
    let entries = scope.settings().into_iter().filter_map(|about| entry(matches, about));
    Table { origin: flag_origin("", None), entries: entries.collect() }
}

fn entry(matches: &ArgMatches, about: &About) -> Option<Entry> {
    let name = about.flag.name()?;
    if let Flag::Switch(_, yes, _) = about.flag {
        let origin = flag_origin(name, None);
        let value = Value { origin: origin.clone(), literal: Literal::Boolean(yes) };
        return matches.get_flag(name).then(|| Entry {
            key: about.key.to_owned(),
            key_origin: origin,
            value,
        });
    }
    let mut values: Vec<Value> = matches
        .get_many::<String>(name)?
        .map(|text| value(about.kind, flag_origin(name, Some(text)), text))
        .collect();
    let origin = values.first()?.origin.clone();
    let value = match values.len() {
        1 => values.remove(0),
        _ => Value {
            origin: origin.clone(),
            literal: Literal::List(values.into_iter().flat_map(flatten).collect()),
        },
    };
    Some(Entry { key: about.key.to_owned(), key_origin: origin, value })
}

fn flatten(value: Value) -> Vec<Value> {
    match value.literal {
        Literal::List(items) => items,
        _ => vec![value],
    }
}

/// `--name value` as a text of its own, and in it the value.
fn flag_origin(name: &str, value: Option<&str>) -> SourceSpan {
    let flag = format!("--{name}");
    let (text, start) = match value {
        Some(value) => (format!("{flag} {value}"), flag.len() + 1),
        None => (flag, 0),
    };
    let end = text.len();
    SourceSpan::new(&Arc::new(Source { file: None, text }), start..end)
}

/// A flag's text as the value that a file would have.
fn value(kind: Kind, origin: SourceSpan, text: &str) -> Value {
    let literal = match kind {
        Kind::Count => text.parse().map_or_else(|_| Literal::Text(text.to_owned()), Literal::Integer),
        Kind::List(_) => Literal::List(split(&origin, text)),
        Kind::Certificates => certificate(&origin, text),
        _ => Literal::Text(text.to_owned()),
    };
    Value { origin, literal }
}

/// The parts between commas, each with its place; an empty text is an empty list.
fn split(origin: &SourceSpan, text: &str) -> Vec<Value> {
    let mut start = 0;
    let mut values = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let place = origin.part(start..start + part.len());
        values.push(Value { origin: place, literal: Literal::Text(part.trim().to_owned()) });
        start += part.len() + 1;
    }
    values
}

/// `both.pem`, or `chain.pem,key=key.pem`.
fn certificate(origin: &SourceSpan, text: &str) -> Literal {
    let Some((chain, key)) = text.split_once(",key=") else { return Literal::Text(text.to_owned()) };
    let entry = |name: &str, text: &str, start: usize| {
        let origin = origin.part(start..start + text.len());
        let value = Value { origin: origin.clone(), literal: Literal::Text(text.to_owned()) };
        Entry { key: name.to_owned(), key_origin: origin, value }
    };
    let entries = vec![entry("chain", chain, 0), entry("key", key, text.len() - key.len())];
    Literal::Table(Table { origin: origin.clone(), entries })
}
