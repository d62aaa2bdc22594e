//! Settings of session resumption: `[sessions]`.

use crate::config::Sessions;
use crate::read::{self, located};
use crate::setting::{DefaultValue, Flag, Kind, settings};
use crate::{address, draft};

settings! {
    SESSIONS: Sessions, AtRestart;
    "cache_size" {
        flag: Flag::Takes("session-cache-size"),
        kind: Kind::Size,
        default: DefaultValue::Toml("\"64MiB\""),
        doc: "Size of the session cache in memory, at least `64KiB`. When it is full, sessions that were not \
              resumed recently are evicted.",
        example: "\"256MiB\"",
        elsewhere: &["size", "session_cache", "ssl_session_cache"],
        store: |sessions, value| read::size(value, "64KiB").map(|it| sessions.cache_size = it),
    }
    "lifetime" {
        flag: Flag::Takes("session-lifetime"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"2h\""),
        doc: "Lifetime of a session after its full handshake, at most `7d` (RFC 8446, section 4.6.1). A \
              resumption does not extend it.",
        example: "\"12h\"",
        danger: "A stolen ticket key opens the sessions of this period: a longer lifetime means less forward \
                 secrecy.",
        elsewhere: &["timeout", "session_timeout", "ssl_session_timeout", "ttl"],
        store: |sessions, value| read::duration(value, "7d").map(|it| sessions.lifetime = it),
    }
    "tickets" {
        flag: Flag::Switch("no-tickets", false, "Neither issue nor accept session tickets"),
        kind: Kind::Switch,
        default: DefaultValue::Toml("true"),
        doc: "Issue and accept session tickets (RFC 5077; RFC 8446, section 4.6.1). The client stores the \
              session, sealed with a key of the server.",
        example: "false",
        danger: "Without tickets TLS 1.3 clients make a full handshake each time.",
        elsewhere: &["session_tickets", "ssl_session_tickets"],
        store: |sessions, value| read::boolean(value).map(|it| sessions.tickets = it),
    }
    "session_ids" {
        flag: Flag::Switch("no-session-ids", false, "Neither issue nor accept session IDs in TLS 1.2"),
        kind: Kind::Switch,
        default: DefaultValue::Toml("true"),
        doc: "Issue and accept session IDs in TLS 1.2 (RFC 5246, section 7.4.1.2). The server stores the \
              session in its cache.",
        example: "false",
        elsewhere: &["ids"],
        store: |sessions, value| read::boolean(value).map(|it| sessions.session_ids = it),
    }
    "tickets_per_handshake" {
        takes_effect: WithGeneration,
        flag: Flag::Takes("tickets-per-handshake"),
        kind: Kind::Count,
        default: DefaultValue::Toml("2"),
        doc: "Number of tickets sent after a full TLS 1.3 handshake, 0 to 16. A client that opens several \
              connections at once uses one for each, since a ticket should be used once (RFC 8446, appendix \
              C.4).",
        example: "1",
        danger: "With 0 no TLS 1.3 client can resume.",
        elsewhere: &["num_tickets", "tickets_count"],
        store: |sessions, value| read::count(value, 0..=16).map(|it| sessions.tickets_per_handshake = it),
    }
    "file" {
        flag: Flag::Takes("session-file"),
        kind: Kind::File,
        default: DefaultValue::Derived("none: the session cache is lost when the program ends"),
        doc: "Path of the file that stores the session cache between two runs. It is sealed with the fleet's \
              key, or that of `state_folder`, written when the program ends in order, and read and removed at the next start.",
        example: "\"/var/lib/courser/sessions\"",
        elsewhere: &["session_file", "cache_file"],
        store: |sessions, value| address::located_file(value).map(|it| sessions.file = Some(it)),
    }
    "store" {
        flag: Flag::Takes("session-store"),
        kind: Kind::Url,
        default: DefaultValue::Derived("none"),
        doc: "URL of a Redis or Valkey store for session-ID resumption across hosts. `redis://` or `rediss://` \
              (TLS) names one server; `redis-sentinel://`, `redis-cluster://` and their forms with `rediss` \
              name several. Sessions are sealed with the fleet's key before they leave the program.",
        example: "\"rediss://courser@valkey.internal:6379/0\"",
        danger: "Other users can read a password in the URL: write it to `store_password`.",
        elsewhere: &["session_store", "redis", "memcached"],
        store: |sessions, value| {
            located(value, |value| Ok(read::text(value, "a URL")?.to_owned()))
                .map(|it| sessions.store = Some(it))
        },
    }
    "store_password" {
        flag: Flag::Takes("session-store-password"),
        kind: Kind::File,
        default: DefaultValue::Derived("none"),
        doc: "Path of the file with the password for `store`. The file is refused if users other than its \
              owner can read it.",
        example: "\"store.password\"",
        elsewhere: &["password", "password_file"],
        store: |sessions, value| address::located_file(value).map(|it| sessions.store_password = Some(it)),
    }
    "store_ca" {
        flag: Flag::Takes("session-store-ca"),
        kind: Kind::File,
        default: DefaultValue::Derived("the system's authorities"),
        doc: "Path of a PEM file with the authorities that may issue the certificate of `store`.",
        example: "\"store-ca.pem\"",
        elsewhere: &["ca_file"],
        store: |sessions, value| address::located_file(value).map(|it| sessions.store_ca = Some(it)),
    }
    "store_cert" {
        flag: Flag::Takes("session-store-cert"),
        kind: Kind::Certificates,
        default: DefaultValue::Derived("none"),
        doc: "Client certificate for `store`: one PEM file with its key, or a pair of files.",
        example: "\"store-client.pem\"",
        elsewhere: &["client_cert"],
        store: |sessions, value| draft::certificate(value).map(|it| sessions.store_cert = Some(it)),
    }
    "store_timeout" {
        flag: Flag::Takes("session-store-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"20ms\""),
        doc: "Maximum time that a handshake waits for `store`, at most `1s`. After it the handshake is a full \
              one.",
        example: "\"50ms\"",
        danger: "When the store fails, a few handshakes wait this long before the circuit breaker opens.",
        store: |sessions, value| read::duration(value, "1s").map(|it| sessions.store_timeout = it),
    }
}
