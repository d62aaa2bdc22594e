//! The reference page and the commented defaults, made from the table of settings.

use std::fmt::Write as _;

use crate::named::Named;
use crate::setting::{About, DefaultValue, Flag, TakesEffect};
use crate::settings::Scope;
use crate::tls::{Group, Suite};

/// Width of the comments in the defaults, as that of this project's sources.
const WIDTH: usize = 110;

const INTRODUCTION: &str = include_str!("reference/introduction.md");

/// The reference page of all settings, in Markdown: `docs/configuration.md`.
pub fn reference_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for scope in Scope::ALL {
        let _ = write!(page, "\n## {}\n\n{}\n", title(scope), overview(scope));
        for about in scope.settings() {
            page += &section(about);
        }
    }
    page + &suites() + &groups()
}

/// A complete configuration file, every setting at its default and explained, those without a fixed default as
/// a comment: what `courser config defaults` prints. It can be loaded as it is.
pub fn defaults_toml() -> String {
    let mut file =
        "# Every setting of courser and its default. `courser check --config FILE` checks a file;\n\
         # docs/configuration.md describes each setting.\n"
            .to_owned();
    for scope in Scope::ALL {
        file += heading(scope);
        for about in scope.settings() {
            let _ = write!(file, "\n{}{}\n", comment(about), assignment(scope, about));
        }
    }
    file
}

fn title(scope: Scope) -> &'static str {
    match scope {
        Scope::Process => "The process",
        Scope::Sessions => "Sessions: `[sessions]`",
        Scope::Fleet => "Fleet: `[fleet]`",
        Scope::Admin => "Operators and monitoring: `[admin]`",
        Scope::Acme => "Certificates that are ordered: `[acme]`",
        Scope::Pool => "Pools of servers: `[pool.NAME]`",
        Scope::Listener => "Listeners: `[[listener]]`",
        Scope::Shared => "Listeners and hosts",
        Scope::Host => "Hosts: `[[listener.host]]`",
    }
}

fn overview(scope: Scope) -> String {
    let flags = match scope {
        Scope::Process | Scope::Sessions | Scope::Fleet | Scope::Admin => "Flags override the file.",
        Scope::Listener | Scope::Shared => "Without a file, flags describe the one listener.",
        Scope::Acme => "Ordered certificates need a configuration file.",
        Scope::Pool => "Pools need a configuration file; hosts and listeners name them as `pool`.",
        Scope::Host => "Hosts need a configuration file.",
    };
    let link = |about: &&About| format!("[`{}`](#{})", about.key, anchor(scope, about.key));
    let keys: Vec<_> = scope.settings().iter().map(link).collect();
    format!("Place: {}. {flags}\n\n{}", scope.place(), keys.join(" · "))
}

/// Where the page has a heading twice, Markdown numbers the second.
fn anchor(scope: Scope, key: &str) -> String {
    let earlier = Scope::ALL.into_iter().take_while(|other| *other != scope);
    match earlier.flat_map(Scope::settings).filter(|about| about.key == key).count() {
        0 => key.to_owned(),
        number => format!("{key}-{number}"),
    }
}

fn section(about: &About) -> String {
    let mut text = format!("\n### `{}`\n\n{}\n\n", about.key, about.doc);
    let default = match about.default {
        DefaultValue::Toml(toml) => format!("`{toml}`"),
        DefaultValue::Derived(words) => words.to_owned(),
    };
    let _ = writeln!(text, "* Value: {}", about.kind.describe());
    let _ = writeln!(text, "* Default: {default}");
    if let Some(flag) = flag(about) {
        let _ = writeln!(text, "* Flag: {flag}");
    }
    let _ = writeln!(text, "* Example: `{} = {}`", about.key, about.example);
    if about.takes_effect == TakesEffect::AtRestart {
        text += "* Fixed at the start\n";
    }
    if let Some(danger) = about.danger {
        let _ = write!(text, "\n> **Caution:** {danger}\n");
    }
    text
}

fn flag(about: &About) -> Option<String> {
    let value = about.kind.placeholder();
    match about.flag {
        Flag::None => None,
        Flag::Switch(name, yes, _) => Some(format!("`--{name}`, which sets `{yes}`")),
        Flag::Takes(name) if about.kind.repeats() => Some(format!("`--{name} {value}`, as often as needed")),
        Flag::Takes(name) => Some(format!("`--{name} {value}`")),
    }
}

fn suites() -> String {
    let mut text = "\n## Names of cipher suites\n\n\
         In the default order of preference. AES-128-GCM stands first: the \
         suites with SHA-384 cost some 25 us more per handshake.\n\n\
         | IANA | OpenSSL | code point | version |\n|---|---|---|---|\n"
        .to_owned();
    for suite in Suite::ALL {
        let openssl = suite.aliases().first().copied().unwrap_or(suite.name());
        let _ = writeln!(text, "| `{suite}` | `{openssl}` | 0x{:04x} | {} |", suite.code(), suite.version());
    }
    text
}

fn groups() -> String {
    let mut text =
        "\n## Names of key exchange groups\n\n| name | also | code point |\n|---|---|---|\n".to_owned();
    for group in Group::ALL {
        let also = crate::near::list(group.aliases().iter().copied());
        let _ = writeln!(text, "| `{group}` | {also} | 0x{:04x} |", group.code());
    }
    text
}

fn heading(scope: Scope) -> &'static str {
    match scope {
        Scope::Process => "",
        Scope::Sessions => "\n[sessions]\n",
        Scope::Fleet => "\n[fleet]\n",
        Scope::Admin => "\n[admin]\n",
        Scope::Acme => "\n[acme]\n",
        Scope::Pool => "\n# Any number of pools, which listeners and hosts name as `pool`.\n# [pool.shop]\n",
        Scope::Listener => "\n[[listener]]\n",
        Scope::Shared => {
            "\n# The settings below can also be set in a [[listener.host]], for that host alone.\n"
        }
        Scope::Host => {
            "\n# A listener can have any number of hosts; a host inherits its listener's settings.\n\
             # [[listener.host]]\n"
        }
    }
}

/// Live where there is a fixed default, and for `backend`, without which no listener is right. There is no pool by default.
fn assignment(scope: Scope, about: &About) -> String {
    match about.default {
        DefaultValue::Toml(toml) if scope == Scope::Pool => format!("# {} = {toml}", about.key),
        DefaultValue::Toml(toml) => format!("{} = {toml}", about.key),
        DefaultValue::Derived(_) if scope == Scope::Shared && about.key == "backend" => {
            format!("{} = [\"127.0.0.1:8080\"]", about.key)
        }
        DefaultValue::Derived(_) => format!("# {} = {}", about.key, about.example),
    }
}

fn comment(about: &About) -> String {
    let default = match about.default {
        DefaultValue::Toml(_) => String::new(),
        DefaultValue::Derived(words) => format!(" Default: {words}."),
    };
    wrap(&format!("{}{default}", about.doc.replace('`', "")))
}

fn wrap(text: &str) -> String {
    let mut lines = String::new();
    let mut line = "#".to_owned();
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            lines += &line;
            lines.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line += word;
    }
    lines + &line + "\n"
}
