//! Drafts in which every setting has its default from the tables.

use std::time::Duration;

use crate::config::{Acme, Admin, Balance, Fleet, Process, Sessions};
use crate::draft::{Draft, HostDraft, ListenerDraft, PoolDraft};
use crate::read::Located;
use crate::setting::{DefaultValue, Setting};
use crate::settings::{ACME, ADMIN, FLEET, HOST_ONLY, LISTENER, POOL, PROCESS, SESSIONS, SHARED};
use crate::source::SourceSpan;
use crate::value::Value;
use crate::written::Written;

impl Draft {
    /// Every setting at its default, and no listener.
    pub(crate) fn new() -> Self {
        Self {
            written: Written::default(),
            process: with_defaults(PROCESS, Process::default()),
            sessions: with_defaults(SESSIONS, Sessions::default()),
            fleet: with_defaults(FLEET, Fleet::default()),
            admin: with_defaults(ADMIN, Admin::default()),
            acme: with_defaults(ACME, Acme::default()),
            pools: Vec::new(),
            listeners: Vec::new(),
        }
    }
}

impl ListenerDraft {
    pub(crate) fn new(origin: Option<SourceSpan>) -> Self {
        let own = HostDraft::new(origin.clone());
        let blank = Self { origin, own, ..Self::default() };
        let mut draft = with_defaults(LISTENER, blank);
        if let Some(origin) = &draft.origin {
            // Problems of default addresses are shown at the whole listener.
            draft.listen.iter_mut().for_each(|address| address.origin = origin.clone());
        }
        draft
    }
}

impl PoolDraft {
    pub(crate) fn new(name: Located<String>) -> Self {
        let blank = Self {
            name,
            servers: Vec::new(),
            balance: Balance::default(),
            affinity: None,
            queue_timeout: Duration::ZERO,
            checks: Vec::new(),
            tls: None,
            incomplete: false,
        };
        with_defaults(POOL, blank)
    }
}

impl HostDraft {
    fn new(origin: Option<SourceSpan>) -> Self {
        let blank = Self { origin, ..Self::default() };
        with_defaults(HOST_ONLY, with_defaults(SHARED, blank))
    }
}

/// Applies every default of a table to a blank target.
fn with_defaults<T>(settings: &[Setting<T>], mut blank: T) -> T {
    for setting in settings {
        if let DefaultValue::Toml(toml) = setting.about.default {
            (setting.store)(&mut blank, &Value::builtin(toml))
                .expect("a test reads every default of the tables");
        }
    }
    blank
}
