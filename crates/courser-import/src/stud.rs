//! The command line of stud, which hitch took over.

use crate::hitch::{Entry, Hitch, malformed};
use crate::service::Setting;
use crate::{Files, Import, Malformed};

/// Flags of one letter, and their long names.
const SHORT: [(char, &str); 13] = [
    ('c', "ciphers"),
    ('e', "ssl-engine"),
    ('O', "prefer-server-ciphers"),
    ('b', "backend"),
    ('f', "frontend"),
    ('n', "workers"),
    ('B', "backlog"),
    ('C', "session-cache"),
    ('k', "keepalive"),
    ('r', "chroot"),
    ('u', "user"),
    ('g', "group"),
    ('R', "backend-refresh"),
];

const SHORT_SWITCHES: [(char, &str); 2] = [('q', "quiet"), ('s', "syslog")];

const SWITCHES: [&str; 15] = [
    "tls",
    "ssl",
    "client",
    "daemon",
    "quiet",
    "syslog",
    "write-ip",
    "write-proxy",
    "write-proxy-v1",
    "write-proxy-v2",
    "proxy-proxy",
    "prefer-server-ciphers",
    "sni-nomatch-abort",
    "enable-tcp-fastopen",
    "ocsp-verify-staple",
];

pub(crate) fn import(arguments: &[String], files: &dyn Files) -> Result<Import, Malformed> {
    let mut entries = Vec::new();
    let mut rest = arguments.iter();
    // Its arguments are one line.
    while let Some(argument) = rest.next() {
        let setting = if let Some(long) = argument.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let is_switch = SWITCHES.contains(&name);
            let value = match value {
                Some(value) => value.to_owned(),
                None if is_switch => "on".to_owned(),
                None => next(&mut rest, argument)?,
            };
            (name.to_owned(), value)
        } else if let Some(short) = argument.strip_prefix('-') {
            self::short(short, argument, &mut rest)?
        } else {
            ("pem-file".to_owned(), argument.clone())
        };
        entries.push(Entry::Setting(Setting::new(1, &setting.0, &setting.1)));
    }
    Ok(Hitch::read(entries, files)?.import("stud"))
}

fn short<'a>(
    flag: &str,
    argument: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<(String, String), Malformed> {
    let letter = flag.chars().next().unwrap_or('-');
    let name = |list: &[(char, &'static str)]| list.iter().find(|(known, _)| *known == letter).map(|it| it.1);
    if let Some(name) = name(&SHORT_SWITCHES) {
        return Ok((name.to_owned(), "on".to_owned()));
    }
    let Some(name) = name(&SHORT) else { return Err(malformed(1, format!("stud has no flag `{argument}`"))) };
    let value = &flag[letter.len_utf8()..];
    let value = if value.is_empty() { next(rest, argument)? } else { value.to_owned() };
    Ok((name.to_owned(), value))
}

fn next<'a>(rest: &mut impl Iterator<Item = &'a String>, flag: &str) -> Result<String, Malformed> {
    rest.next().cloned().ok_or_else(|| malformed(1, format!("`{flag}` has no value")))
}
