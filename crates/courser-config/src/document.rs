//! The configuration file: tables to drafts, each key by its setting, unknown keys refused.

use std::path::Path;

use crate::draft::{Draft, ListenerDraft, PoolDraft};
use crate::near::nearest;
use crate::problem::{Problem, Problems};
use crate::read::Located;
use crate::setting::{About, Flag, Setting};
use crate::settings::{ACME, ADMIN, FLEET, HOST_ONLY, LISTENER, POOL, PROCESS, SESSIONS, SHARED, Scope};
use crate::value::{Entry, Literal, Table, Value};
use crate::written::Written;

/// Reads a file's text into a draft as far as it can be read.
pub(crate) fn read(text: &str, path: &Path, problems: &mut Problems) -> Draft {
    let mut draft = Draft::new();
    match Table::parse(text, path) {
        Ok(top) => {
            draft.written = Written::of(&top);
            read_top(&top, &mut draft, problems);
        }
        Err(errors) => problems.extend(errors),
    }
    draft
}

fn read_top(top: &Table, draft: &mut Draft, problems: &mut Problems) {
    apply(PROCESS, top, &mut draft.process, problems);
    refuse_unknown(
        top,
        &[Scope::Process],
        &["sessions", "fleet", "admin", "acme", "pool", "listener"],
        problems,
    );
    let sessions = top.get("sessions").and_then(|value| table(value, "[sessions]", problems));
    if let Some(sessions) = sessions {
        apply(SESSIONS, sessions, &mut draft.sessions, problems);
        refuse_unknown(sessions, &[Scope::Sessions], &[], problems);
    }
    let fleet = top.get("fleet").and_then(|value| table(value, "[fleet]", problems));
    if let Some(fleet) = fleet {
        apply(FLEET, fleet, &mut draft.fleet, problems);
        refuse_unknown(fleet, &[Scope::Fleet], &[], problems);
    }
    let admin = top.get("admin").and_then(|value| table(value, "[admin]", problems));
    if let Some(admin) = admin {
        apply(ADMIN, admin, &mut draft.admin, problems);
        refuse_unknown(admin, &[Scope::Admin], &[], problems);
    }
    let acme = top.get("acme").and_then(|value| table(value, "[acme]", problems));
    if let Some(acme) = acme {
        apply(ACME, acme, &mut draft.acme, problems);
        refuse_unknown(acme, &[Scope::Acme], &[], problems);
    }
    let pools = top.get("pool").and_then(|value| table(value, "[pool.NAME]", problems));
    for entry in pools.iter().flat_map(|pools| &pools.entries) {
        draft.pools.extend(read_pool(entry, problems));
    }
    match top.get("listener") {
        Some(value) => draft.listeners = read_listeners(value, problems),
        None => problems.extend(no_listener(top)),
    }
}

fn read_pool(entry: &Entry, problems: &mut Problems) -> Option<PoolDraft> {
    let settings = table(&entry.value, &format!("[pool.{}]", entry.key), problems)?;
    let (errors_before, _) = problems.counts();
    let mut draft = PoolDraft::new(Located { value: entry.key.clone(), origin: entry.key_origin.clone() });
    apply(POOL, settings, &mut draft, problems);
    refuse_unknown(settings, &[Scope::Pool], &[], problems);
    draft.incomplete = problems.counts().0 > errors_before;
    Some(draft)
}

/// Nothing where it is only misspelt, which is reported at the key.
fn no_listener(top: &Table) -> Option<Problem> {
    if top.entries.iter().any(|entry| nearest(&entry.key, ["listener"]).is_some()) {
        return None;
    }
    let help =
        "add `[[listener]]` with `listen` and `backend`; `courser config defaults` prints a whole file";
    Some(Problem::at(&top.origin.part(0..0), "there is no listener", None).help(help))
}

fn read_listeners(value: &Value, problems: &mut Problems) -> Vec<ListenerDraft> {
    tables(value, "listener", problems).into_iter().map(|table| read_listener(table, problems)).collect()
}

fn read_listener(listener: &Table, problems: &mut Problems) -> ListenerDraft {
    let (errors_before, _) = problems.counts();
    let mut draft = ListenerDraft::new(Some(listener.origin.clone()));
    apply(LISTENER, listener, &mut draft, problems);
    apply(SHARED, listener, &mut draft.own, problems);
    refuse_unknown(listener, &[Scope::Listener, Scope::Shared], &["host"], problems);
    refuse_both(listener, problems);
    if let Some(value) = listener.get("host") {
        for host in tables(value, "listener.host", problems) {
            let mut own = draft.own.inherit(host.origin.clone(), host.get("cert").is_some());
            apply(SHARED, host, &mut own, problems);
            apply(HOST_ONLY, host, &mut own, problems);
            refuse_unknown(host, &[Scope::Shared, Scope::Host], &[], problems);
            refuse_both(host, problems);
            draft.hosts.push(own);
        }
    }
    draft.incomplete = problems.counts().0 > errors_before;
    draft
}

/// Stores what the table has of these settings, in the settings' order.
pub(crate) fn apply<T>(settings: &[Setting<T>], table: &Table, target: &mut T, problems: &mut Problems) {
    for setting in settings {
        if let Some(value) = table.get(setting.about.key) {
            problems.extend((setting.store)(target, value).err().into_iter().flatten());
        }
    }
}

fn table<'a>(value: &'a Value, written: &str, problems: &mut Problems) -> Option<&'a Table> {
    if let Literal::Table(table) = &value.literal {
        return Some(table);
    }
    let message = format!("expected a table, found `{}`", value.written());
    problems.push(Problem::at(&value.origin, message, Some(format!("write it as `{written}`"))));
    None
}

/// The tables of `[[name]]`.
fn tables<'a>(value: &'a Value, name: &str, problems: &mut Problems) -> Vec<&'a Table> {
    match &value.literal {
        Literal::List(items) => {
            let heading = format!("[[{name}]]");
            items.iter().filter_map(|item| table(item, &heading, problems)).collect()
        }
        _ => {
            let message = format!("`{name}` is a list of tables");
            let help = format!("write the heading with two brackets: `[[{name}]]`");
            problems.push(Problem::at(&value.origin, message, Some(help)));
            Vec::new()
        }
    }
}

/// Complains of every key that is neither a setting of these scopes nor one of `tables`.
fn refuse_unknown(table: &Table, scopes: &[Scope], tables: &[&str], problems: &mut Problems) {
    let settings: Vec<&About> = scopes.iter().flat_map(|scope| scope.settings()).collect();
    let known = |key: &str| tables.contains(&key) || settings.iter().any(|about| about.key == key);
    for entry in table.entries.iter().filter(|entry| !known(&entry.key)) {
        let help = hint(entry, &settings, tables);
        problems.push(Problem::at(&entry.key_origin, format!("unknown key `{}`", entry.key), help));
    }
}

/// Complains where plaintext would have two ways to go.
fn refuse_both(table: &Table, problems: &mut Problems) {
    let Some(backend) = table.entries.iter().find(|entry| entry.key == "backend") else { return };
    if let Some(pool) = table.entries.iter().find(|entry| entry.key == "pool") {
        let problem = Problem::at(&pool.key_origin, "there is a `pool` and a `backend`", None);
        let help = "leave one of them out; a pool has its servers in `[pool.NAME]`";
        problems.push(problem.related(&backend.key_origin, "the other one").help(help));
    }
}

/// What was probably meant: a setting from elsewhere, another program's word, or a slip of the pen.
fn hint(entry: &Entry, here: &[&About], tables: &[&str]) -> Option<String> {
    let key = entry.key.as_str();
    let elsewhere = Scope::ALL.iter().find(|scope| scope.settings().iter().any(|about| about.key == key));
    if let Some(scope) = elsewhere {
        return Some(format!("`{key}` stands {}", scope.place()));
    }
    let plain = key.to_ascii_lowercase().replace('-', "_");
    if let Some(about) = here.iter().find(|about| about.elsewhere.contains(&plain.as_str())) {
        return Some(format!("it is called `{}` here", about.key));
    }
    let keys = here.iter().map(|about| about.key).chain(tables.iter().copied());
    if let Some(near) = nearest(key, keys) {
        return Some(format!("did you mean `{near}`?"));
    }
    far_hint(&plain)
}

/// As [`hint`], over all scopes and the flags' names.
fn far_hint(key: &str) -> Option<String> {
    let all = || {
        Scope::ALL.into_iter().flat_map(|scope| scope.settings().into_iter().map(move |about| (scope, about)))
    };
    let flag = |about: &About| {
        about.flag != Flag::None
            && about.flag.name().map(|name| name.replace('-', "_")).as_deref() == Some(key)
    };
    let named = all().find(|(_, about)| flag(about) || about.elsewhere.contains(&key));
    let near = || {
        nearest(key, all().map(|(_, about)| about.key))
            .and_then(|near| all().find(|(_, about)| about.key == near))
    };
    let (scope, about) = named.or_else(near)?;
    Some(format!("did you mean `{}`? it stands {}", about.key, scope.place()))
}
