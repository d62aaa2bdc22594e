//! Settings of session resumption: `[sessions]`.

use crate::config::Sessions;
use crate::read::{self, located};
use crate::setting::{About, DefaultValue, Flag, Kind, Setting};
use crate::{address, draft};

pub(crate) static SESSIONS: &[Setting<Sessions>] = &[
    Setting {
        about: About {
            key: "cache_size",
            flag: Flag::Takes("session-cache-size"),
            kind: Kind::Size,
            default: DefaultValue::Toml("\"64MiB\""),
            doc: "Memory for the session cache, at least `64KiB`. When it is full, sessions that nobody \
                  has \
                  resumed lately make room.",
            example: "\"256MiB\"",
            danger: None,
            elsewhere: &["size", "session_cache", "ssl_session_cache"],
        },
        store: |sessions, value| {
            sessions.cache_size = read::size(value, "64KiB")?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "lifetime",
            flag: Flag::Takes("session-lifetime"),
            kind: Kind::Duration,
            default: DefaultValue::Toml("\"2h\""),
            doc: "How long a session may be resumed after its full handshake, at most `7d` (RFC 8446, \
                  section 4.6.1). Resuming does not lengthen it.",
            example: "\"12h\"",
            danger: Some(
                "A stolen ticket key opens the sessions of this long: longer means less forward secrecy.",
            ),
            elsewhere: &["timeout", "session_timeout", "ssl_session_timeout", "ttl"],
        },
        store: |sessions, value| {
            sessions.lifetime = read::duration(value, "7d")?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "tickets",
            flag: Flag::Switch("no-tickets", false, "Neither issue nor accept session tickets"),
            kind: Kind::Switch,
            default: DefaultValue::Toml("true"),
            doc: "Issue and accept session tickets (RFC 5077; RFC 8446, section 4.6.1). The client then \
                  keeps the session, sealed with a key of the server.",
            example: "false",
            danger: Some("Without tickets TLS 1.3 clients make a full handshake each time."),
            elsewhere: &["session_tickets", "ssl_session_tickets"],
        },
        store: |sessions, value| {
            sessions.tickets = read::boolean(value)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "session_ids",
            flag: Flag::Switch("no-session-ids", false, "Neither give nor accept session IDs in TLS 1.2"),
            kind: Kind::Switch,
            default: DefaultValue::Toml("true"),
            doc: "Give and accept session IDs in TLS 1.2 (RFC 5246, section 7.4.1.2). The server then \
                  keeps \
                  the session in its cache.",
            example: "false",
            danger: None,
            elsewhere: &["ids"],
        },
        store: |sessions, value| {
            sessions.session_ids = read::boolean(value)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "tickets_per_handshake",
            flag: Flag::Takes("tickets-per-handshake"),
            kind: Kind::Count,
            default: DefaultValue::Toml("2"),
            doc: "Tickets sent after a full TLS 1.3 handshake, from 0 to 16. A client that opens several \
                  connections at once uses one for each, since a ticket should be used once (RFC 8446, \
                  appendix C.4).",
            example: "1",
            danger: Some("With 0 no TLS 1.3 client can resume."),
            elsewhere: &["num_tickets", "tickets_count"],
        },
        store: |sessions, value| {
            sessions.tickets_per_handshake = read::count(value, 0..=16)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "file",
            flag: Flag::Takes("session-file"),
            kind: Kind::File,
            default: DefaultValue::Derived("none: sessions by ID are forgotten when the program ends"),
            doc: "File that keeps the session cache from one start to the next, sealed with the fleet's key. It \
                  is written when the program ends in order, and read once at the start.",
            example: "\"/var/lib/courser/sessions\"",
            danger: None,
            elsewhere: &["session_file", "cache_file"],
        },
        store: |sessions, value| {
            sessions.file = Some(address::located_file(value)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "store",
            flag: Flag::Takes("session-store"),
            kind: Kind::Url,
            default: DefaultValue::Derived("none"),
            doc: "Redis or Valkey that keeps sessions by ID for hosts beyond one network segment, as a URL: \
                  `redis://` or `rediss://` (TLS) for one server, `redis-sentinel://`, `redis-cluster://` and \
                  their forms with `rediss` for several. Sessions are sealed with the fleet's key before \
                  they leave the program.",
            example: "\"rediss://courser@valkey.internal:6379/0\"",
            danger: Some("A password in the URL can be read by others: write it to `store_password`."),
            elsewhere: &["session_store", "redis", "memcached"],
        },
        store: |sessions, value| {
            sessions.store = Some(located(value, |value| Ok(read::text(value, "a URL")?.to_owned()))?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "store_password",
            flag: Flag::Takes("session-store-password"),
            kind: Kind::File,
            default: DefaultValue::Derived("none"),
            doc: "File with the password for `store`. It is refused when others than its owner can read it.",
            example: "\"store.password\"",
            danger: None,
            elsewhere: &["password", "password_file"],
        },
        store: |sessions, value| {
            sessions.store_password = Some(address::located_file(value)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "store_ca",
            flag: Flag::Takes("session-store-ca"),
            kind: Kind::File,
            default: DefaultValue::Derived("the system's"),
            doc: "PEM file with the authorities that may vouch for the certificate of `store`.",
            example: "\"store-ca.pem\"",
            danger: None,
            elsewhere: &["ca_file"],
        },
        store: |sessions, value| {
            sessions.store_ca = Some(address::located_file(value)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "store_cert",
            flag: Flag::Takes("session-store-cert"),
            kind: Kind::Certificates,
            default: DefaultValue::Derived("none"),
            doc: "Certificate to show to `store`, one PEM file with its key or a pair of files. Redis asks for one \
                  unless it is told otherwise (`tls-auth-clients`).",
            example: "\"store-client.pem\"",
            danger: None,
            elsewhere: &["client_cert"],
        },
        store: |sessions, value| {
            sessions.store_cert = Some(draft::certificate(value)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "store_timeout",
            flag: Flag::Takes("session-store-timeout"),
            kind: Kind::Duration,
            default: DefaultValue::Toml("\"20ms\""),
            doc: "How long a handshake may wait for `store`, at most `1s`. Then it is a full one.",
            example: "\"50ms\"",
            danger: Some("A few handshakes wait for this long when the store fails, until it is left alone."),
            elsewhere: &[],
        },
        store: |sessions, value| {
            sessions.store_timeout = read::duration(value, "1s")?;
            Ok(())
        },
    },
];
