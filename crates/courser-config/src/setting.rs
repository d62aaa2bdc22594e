//! One row of the table of settings: what people read about a setting, and how its value is stored.

use crate::problem::Problems;
use crate::value::Value;

/// A setting that is stored in a `T`.
pub(crate) struct Setting<T: 'static> {
    pub(crate) about: About,
    /// Reads the value and stores it; stores nothing if it is wrong.
    pub(crate) store: fn(&mut T, &Value) -> Result<(), Problems>,
}

#[derive(Debug)]
pub(crate) struct About {
    pub(crate) key: &'static str,
    pub(crate) takes_effect: TakesEffect,
    pub(crate) flag: Flag,
    pub(crate) kind: Kind,
    pub(crate) default: DefaultValue,
    /// One paragraph in Markdown; its first sentence is the flag's short help.
    pub(crate) doc: &'static str,
    /// A value in TOML.
    pub(crate) example: &'static str,
    pub(crate) danger: Option<&'static str>,
    /// Its names in other programs, for the hint at an unknown key; never accepted.
    pub(crate) elsewhere: &'static [&'static str],
}

/// A table of settings, in the order in which they are applied. The second name after the colon says when a change takes
/// effect, except for rows that have their own `takes_effect`.
macro_rules! settings {
    ($(#[$attribute:meta])* $table:ident: $target:ty, $takes_effect:ident; $($key:literal {
        $(takes_effect: $exception:ident,)?
        flag: $flag:expr,
        kind: $kind:expr,
        default: $default:expr,
        doc: $doc:literal,
        example: $example:literal,
        $(danger: $danger:literal,)?
        $(elsewhere: $elsewhere:expr,)?
        store: $store:expr,
    })*) => {
        $(#[$attribute])*
        pub(crate) static $table: &[$crate::setting::Setting<$target>] = &[$($crate::setting::Setting {
            about: $crate::setting::About {
                key: $key,
                takes_effect: [
                    $($crate::setting::TakesEffect::$exception,)? $crate::setting::TakesEffect::$takes_effect
                ][0],
                flag: $flag,
                kind: $kind,
                default: $default,
                doc: $doc,
                example: $example,
                danger: [$(Some($danger),)? None][0],
                elsewhere: [$($elsewhere as &[_],)? &[]][0],
            },
            store: $store,
        }),*];
    };
}
pub(crate) use settings;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakesEffect {
    /// The process is made with it.
    AtRestart,
    /// A generation of listeners is made with it, which can be replaced while the process runs.
    WithGeneration,
}

/// How a setting is given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    None,
    /// `--name VALUE`.
    Takes(&'static str),
    /// `--name`, which stands for this value, and what it does.
    Switch(&'static str, bool, &'static str),
}

impl Flag {
    /// Without the dashes.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Takes(name) | Self::Switch(name, ..) => Some(name),
        }
    }
}

/// The value of a setting that is not set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    /// This value, in TOML.
    Toml(&'static str),
    /// Something that depends on other things, in words.
    Derived(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Switch,
    Count,
    Size,
    Duration,
    Text,
    File,
    Folder,
    Address,
    Url,
    /// One of these names.
    Choice(fn() -> Vec<&'static str>),
    /// Several; flags take them with commas between or one at a time.
    List(Item),
    /// Several PEM files, or pairs of them.
    Certificates,
    /// Several addresses, or tables of one and what goes with it.
    Servers,
    /// Several kinds of checks, or tables of one and what goes with it.
    Checks,
    /// A table of networks.
    Sources,
    /// Several tables of conditions and what becomes of who meets them.
    Rules,
    /// Something short, or a table, in words.
    Table(&'static str),
}

/// What `tls` of a pool takes.
pub(crate) const TLS_WITH_BACKENDS: &str =
    "`true`, `false`, or a table `{ verify = …, server_name = \"…\", cert = \"…\", crl = … }`";

/// What `client_crl` takes.
pub(crate) const REVOCATION_LISTS: &str = "a list of paths, from the folder of the configuration file, or a table \
     `{ files = […], depth = \"…\", unknown = \"…\", expired = \"…\" }`";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Item {
    Address,
    File,
    Network,
    Prefix,
    Text,
    Choice(fn() -> Vec<&'static str>),
}

impl Kind {
    /// Whether the flag may be given several times.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Self::List(_) | Self::Certificates | Self::Servers | Self::Checks)
    }

    /// The names of which one must be given.
    pub(crate) fn choices(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Choice(names) => Some(names()),
            _ => None,
        }
    }

    pub(crate) fn placeholder(self) -> &'static str {
        match self {
            Self::Switch => "",
            Self::Count => "N",
            Self::Size => "SIZE",
            Self::Duration => "DURATION",
            Self::Text => "NAME",
            Self::Url => "URL",
            Self::File | Self::List(Item::File) => "FILE",
            Self::Folder => "DIR",
            Self::Choice(_) => "CHOICE",
            Self::Address | Self::List(Item::Address) => "ADDRESS",
            Self::List(Item::Network) => "NETWORK",
            Self::List(Item::Prefix) => "PREFIX",
            Self::List(_) | Self::Servers | Self::Checks | Self::Rules | Self::Sources => "LIST",
            Self::Certificates => "FILE",
            Self::Table(_) => "TABLE",
        }
    }

    /// What to write, for the reference page.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Switch => "`true` or `false`".to_owned(),
            Self::Count => "a whole number".to_owned(),
            Self::Size => {
                "a size: a whole number with `B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB` or `TiB`"
                    .to_owned()
            }
            Self::Duration => "a duration: a whole number with `ms`, `s`, `m`, `h` or `d`".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Url => "a URL".to_owned(),
            Self::Address => "an address".to_owned(),
            Self::File | Self::Folder => "a path, from the folder of the configuration file".to_owned(),
            Self::Choice(names) => format!("one of {}", crate::near::list(names())),
            Self::List(Item::Address) => "a list of addresses".to_owned(),
            Self::List(Item::File) => "a list of paths, from the folder of the configuration file".to_owned(),
            Self::List(Item::Network) => "a list of networks, `ADDRESS/PREFIX`".to_owned(),
            Self::List(Item::Prefix) => "a list of lengths of prefixes, `ipv4/LENGTH` or `ipv6/LENGTH`".to_owned(),
            Self::List(Item::Text) => "a list of strings".to_owned(),
            Self::List(Item::Choice(names)) => format!("a list of {}", crate::near::list(names())),
            Self::Servers => {
                "a list of addresses, or of tables `{ address = \"…\", weight = …, max_connections = …, backup = … }`"
                    .to_owned()
            }
            Self::Checks => {
                "one of `tcp`, `http`, `agent`, or a table `{ kind = \"…\", interval = \"…\", … }`, or a list of these"
                    .to_owned()
            }
            Self::Sources => "a table `{ from = [\"NETWORK\", …] }`; `unix` is a network too".to_owned(),
            Self::Rules => {
                "a list of tables `{ when = { … }, relay = \"…\" }`, or with `terminate = \"…\"` or \
                            `refuse = true`"
                    .to_owned()
            }
            Self::Table(what) => what.to_owned(),
            Self::Certificates => {
                "a list of PEM files, or of tables `{ chain = \"…\", key = \"…\" }`".to_owned()
            }
        }
    }
}
