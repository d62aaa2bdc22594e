//! Checks of a pool's servers: reading an entry of `check`.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::{CheckConfig, CheckKind};
use crate::near::suggest;
use crate::problem::{Problem, Problems};
use crate::read::{self, Located, located, wrong_kind};
use crate::value::{Literal, Table, Value};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tcp,
    Tls,
    Http,
    Agent,
}

const KINDS: [(&str, Kind); 4] =
    [("tcp", Kind::Tcp), ("tls", Kind::Tls), ("http", Kind::Http), ("agent", Kind::Agent)];

/// Keys of a table for each kind, and those of some kinds alone.
const KEYS: [&str; 10] =
    ["kind", "interval", "timeout", "up", "down", "port", "send_proxy", "path", "host", "status"];
const OF_HTTP: [&str; 3] = ["path", "host", "status"];
const NOT_OF_AGENT: [&str; 3] = ["up", "down", "send_proxy"];

/// What servers of HTTP answer with when they are well.
const GOOD: RangeInclusive<u16> = 200..=399;

/// Reads a check: its kind, or a table with it.
pub(crate) fn check(value: &Value) -> Result<Located<CheckConfig>, Problems> {
    let nothing = Table { origin: value.origin.clone(), entries: Vec::new() };
    match &value.literal {
        Literal::Text(_) => {
            let kind = kind(value)?;
            located(value, |value| from_table(value, kind, &nothing))
        }
        Literal::Table(table) => {
            refuse_unknown(table)?;
            let Some(kind) = table.get("kind").map(kind).transpose()? else {
                let help = "`kind = \"tcp\"`, `\"tls\"`, `\"http\"` or `\"agent\"`";
                return Err(Problem::at(&value.origin, "the check has no `kind`", None).help(help).into());
            };
            located(value, |value| from_table(value, kind, table))
        }
        _ => Err(wrong_kind(value, "a kind of check or `{ kind = \"…\", interval = \"…\" }`")),
    }
}

fn kind(value: &Value) -> Result<Kind, Problems> {
    let text = read::text(value, "a kind of check")?;
    let known = KINDS.iter().find(|(name, _)| *name == text);
    known.map(|(_, kind)| *kind).ok_or_else(|| {
        let help = suggest(text, KINDS.map(|(name, _)| name));
        Problem::at(&value.origin, format!("unknown kind of check `{text}`"), Some(help)).into()
    })
}

fn refuse_unknown(table: &Table) -> Result<(), Problems> {
    let Some(entry) = table.entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str())) else {
        return Ok(());
    };
    let help = match entry.key.as_str() {
        "rise" => "it is called `up` here".to_owned(),
        "fall" => "it is called `down` here".to_owned(),
        "inter" => "it is called `interval` here".to_owned(),
        key => suggest(key, KEYS),
    };
    Err(Problem::at(&entry.key_origin, format!("unknown key `{}`", entry.key), Some(help)).into())
}

fn from_table(value: &Value, kind: Kind, table: &Table) -> Result<CheckConfig, Problems> {
    let misplaced = |keys: &[&str], help: &str| {
        let entry = table.entries.iter().find(|entry| keys.contains(&entry.key.as_str()))?;
        let message = format!("`{}` means nothing here", entry.key);
        Some(Problem::at(&entry.key_origin, message, Some(help.to_owned())))
    };
    let of_http = misplaced(&OF_HTTP, "it is for checks of the kind `http`").filter(|_| kind != Kind::Http);
    let not_of_agent = misplaced(&NOT_OF_AGENT, "an agent is obeyed at once, and gets no header");
    if let Some(problem) = of_http.or(not_of_agent.filter(|_| kind == Kind::Agent)) {
        return Err(problem.into());
    }
    let interval = table.get("interval").map(|value| read::duration(value, "1h")).transpose()?;
    let interval = interval.unwrap_or(Duration::from_secs(2));
    let results = |key: &str, default: u32| match table.get(key) {
        Some(value) => read::count(value, 1..=100),
        None => Ok(default),
    };
    let port = table.get("port").map(|value| read::count(value, 1..=65_535)).transpose()?;
    if kind == Kind::Agent && port.is_none() {
        let help = "`port = 8181`, or wherever the agent listens";
        return Err(Problem::at(&value.origin, "a check by an agent has no `port`", None).help(help).into());
    }
    Ok(CheckConfig {
        kind: match kind {
            Kind::Tcp => CheckKind::Tcp,
            Kind::Tls => CheckKind::Tls,
            Kind::Agent => CheckKind::Agent,
            Kind::Http => http(table)?,
        },
        interval,
        timeout: table.get("timeout").map_or(Ok(interval), |value| read::duration(value, "10m"))?,
        up: results("up", 2)?,
        down: results("down", 3)?,
        port: port.and_then(|port| u16::try_from(port).ok()),
        send_proxy: table.get("send_proxy").map(|value| read::named(value, "version")).transpose()?,
    })
}

fn http(table: &Table) -> Result<CheckKind, Problems> {
    let path = match table.get("path") {
        Some(value) => {
            let help = "it begins with `/`, and has no space";
            word(value, |text| text.starts_with('/'), "a path", help)?
        }
        None => "/".to_owned(),
    };
    let host =
        |value| word(value, |text| !text.is_empty(), "a value of `Host`", "for example `shop.internal`");
    Ok(CheckKind::Http {
        path,
        host: table.get("host").map(host).transpose()?,
        status: table.get("status").map_or(Ok(vec![GOOD]), |value| read::some(value, status))?,
    })
}

/// What can stand in a line of HTTP between two spaces.
fn word(value: &Value, fits: fn(&str) -> bool, what: &str, help: &str) -> Result<String, Problems> {
    let text = read::text(value, what)?;
    if fits(text) && text.len() <= 1024 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    let message = format!("`{}` is not {what}", text.escape_debug());
    Err(Problem::at(&value.origin, message, None).help(help).into())
}

/// A status code, or a range of them: `204`, `"200-399"`.
fn status(value: &Value) -> Result<RangeInclusive<u16>, Problems> {
    let wrong = || {
        let message = format!("`{}` is not a status code", value.written().trim_matches(['"', '\'']));
        let help = "100 to 999, or a range of them: `\"200-399\"`";
        Problems::from(Problem::at(&value.origin, message, None).help(help))
    };
    let code = |text: &str| text.trim().parse().ok().filter(|code| (100..=999).contains(code));
    let (first, last) = match &value.literal {
        Literal::Integer(number) => (number.to_string(), number.to_string()),
        Literal::Text(text) => match text.split_once('-') {
            Some((first, last)) => (first.to_owned(), last.to_owned()),
            None => (text.clone(), text.clone()),
        },
        _ => return Err(wrong()),
    };
    match (code(&first), code(&last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(wrong()),
    }
}
