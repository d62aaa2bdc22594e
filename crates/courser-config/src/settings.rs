//! The one definition of every setting: the file, the flags, the reference page and the commented defaults
//! all come from the tables below this module.
//!
//! A setting is added here by one entry in the table of its scope, and in the draft it is stored in.

mod acme;
mod admin;
mod fleet;
mod host;
mod listener;
mod pool;
mod process;
mod sessions;

use crate::setting::About;

pub(crate) use acme::ACME;
pub(crate) use admin::ADMIN;
pub(crate) use fleet::FLEET;
pub(crate) use host::{HOST_ONLY, SHARED};
pub(crate) use listener::LISTENER;
pub(crate) use pool::POOL;
pub(crate) use process::PROCESS;
pub(crate) use sessions::SESSIONS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Process,
    Sessions,
    Fleet,
    Admin,
    Acme,
    Pool,
    Listener,
    Shared,
    Host,
}

impl Scope {
    pub(crate) const ALL: [Self; 9] = [
        Self::Process,
        Self::Sessions,
        Self::Fleet,
        Self::Admin,
        Self::Acme,
        Self::Pool,
        Self::Listener,
        Self::Shared,
        Self::Host,
    ];

    /// Its settings, in the order in which they are shown and applied.
    pub(crate) fn settings(self) -> Vec<&'static About> {
        match self {
            Self::Process => PROCESS.iter().map(|setting| &setting.about).collect(),
            Self::Sessions => SESSIONS.iter().map(|setting| &setting.about).collect(),
            Self::Fleet => FLEET.iter().map(|setting| &setting.about).collect(),
            Self::Admin => ADMIN.iter().map(|setting| &setting.about).collect(),
            Self::Acme => ACME.iter().map(|setting| &setting.about).collect(),
            Self::Pool => POOL.iter().map(|setting| &setting.about).collect(),
            Self::Listener => LISTENER.iter().map(|setting| &setting.about).collect(),
            Self::Shared => SHARED.iter().map(|setting| &setting.about).collect(),
            Self::Host => HOST_ONLY.iter().map(|setting| &setting.about).collect(),
        }
    }

    /// Where its settings are written in the file.
    pub(crate) fn place(self) -> &'static str {
        match self {
            Self::Process => "at the top of the file, before the first `[table]`",
            Self::Sessions => "in `[sessions]`",
            Self::Fleet => "in `[fleet]`",
            Self::Admin => "in `[admin]`",
            Self::Acme => "in `[acme]`",
            Self::Pool => "in a `[pool.NAME]`",
            Self::Listener => "in a `[[listener]]`",
            Self::Shared => "in a `[[listener]]`, or in a `[[listener.host]]` for that host alone",
            Self::Host => "in a `[[listener.host]]`",
        }
    }

    /// Whether its flags go over a configuration file; the others describe the one listener of a start without.
    pub(crate) fn overrides_file(self) -> bool {
        matches!(self, Self::Process | Self::Sessions | Self::Fleet | Self::Admin | Self::Acme)
    }
}

#[cfg(test)]
mod tests;
