//! Settings of the whole process: the top of the file.

use crate::config::{Log, Process};
use crate::named::Named;
use crate::setting::{DefaultValue, Flag, Item, Kind, settings};
use crate::{address, draft, fleet, prefix, read};

settings! {
    PROCESS: Process, AtRestart;
    "workers" {
        flag: Flag::Takes("workers"),
        kind: Kind::Count,
        default: DefaultValue::Derived(
            "one per core: the CPUs of the affinity mask, capped by the cgroup's \
            CPU quota",
        ),
        doc: "Number of worker threads, 1 to 1024. Each worker has its own listening sockets and serves a \
              connection from its first byte to its last.",
        example: "4",
        danger: "More workers than CPUs make every handshake slower.",
        elsewhere: &["threads", "nbthread", "worker_processes"],
        store: |process, value| read::count(value, 1..=1024).map(|it| process.workers = Some(it as usize)),
    }
    "pin" {
        flag: Flag::Switch("pin", true, "Bind each worker to one CPU"),
        kind: Kind::Switch,
        default: DefaultValue::Toml("false"),
        doc: "Bind each worker to one CPU. This helps where nothing else runs on these CPUs.",
        example: "true",
        danger: "A worker cannot move away from a CPU that another program uses.",
        elsewhere: &["cpu_map", "cpu_affinity", "affinity"],
        store: |process, value| read::boolean(value).map(|it| process.pin = it),
    }
    "log" {
        flag: Flag::Takes("log"),
        kind: Kind::Choice(|| Log::ALL.iter().map(|log| log.name()).collect()),
        default: DefaultValue::Toml("\"text\""),
        doc: "Format of the connection log on standard output, or in `log_file`. Each connection has one line, written when it \
              ends: `text` for people, `json` for programs, `off` for none.",
        example: "\"json\"",
        elsewhere: &["access_log", "log_format"],
        store: |process, value| read::named(value, "log format").map(|it| process.log = it),
    }
    "log_file" {
        flag: Flag::Takes("log-file"),
        kind: Kind::File,
        default: DefaultValue::Derived("none: standard output"),
        doc: "Path of the file that the connection log is appended to. It is opened anew on SIGUSR1 and at each reload, \
              for programs that rename it (logrotate). Where it cannot be written, lines are lost and counted, and no \
              connection waits.",
        example: "\"/var/log/courser/connections.log\"",
        danger: "It grows without a bound unless something rotates it.",
        elsewhere: &["access_log_file", "output"],
        store: |process, value| address::located_file(value).map(|it| process.log_file = Some(it)),
    }
    "events_file" {
        flag: Flag::Takes("events-file"),
        kind: Kind::File,
        default: DefaultValue::Derived("none: standard error"),
        doc: "Path of the file that event lines (start, warnings, errors) are appended to, opened anew as `log_file`. \
              Problems of the configuration go to standard error in any case.",
        example: "\"/var/log/courser/events.log\"",
        elsewhere: &["error_log", "syslog", "event_log"],
        store: |process, value| address::located_file(value).map(|it| process.events_file = Some(it)),
    }
    "strict" {
        takes_effect: WithGeneration,
        flag: Flag::Switch("strict", true, "Refuse a certificate that has expired or is not yet valid"),
        kind: Kind::Switch,
        default: DefaultValue::Toml("false"),
        doc: "Refuse to start with a certificate that has expired or is not yet valid. By default courser only \
              warns.",
        example: "true",
        danger: "A restart long after the last renewal fails, although some clients ignore the dates of \
                 certificates.",
        store: |process, value| read::boolean(value).map(|it| process.strict = it),
    }
    "max_connections" {
        flag: Flag::Takes("max-connections"),
        kind: Kind::Count,
        default: DefaultValue::Derived(
            "automatic: as many as the limit of open descriptors and half of the \
            memory (64 KiB each) allow",
        ),
        doc: "Maximum number of open connections, over all listeners and workers. Further connections wait in \
              the kernel's queue until one ends. A line on standard error reports that the limit is reached.",
        example: "100_000",
        danger: "Each connection takes two descriptors; a number beyond the limit of open descriptors \
                 cannot be reached.",
        elsewhere: &["maxconn", "worker_connections", "connections"],
        store: |process, value| {
            read::count(value, 1..=u32::MAX).map(|it| process.max_connections = Some(it as usize))
        },
    }
    "overload" {
        flag: Flag::Switch("no-overload", false, "Take no measures where more clients come than can be served"),
        kind: Kind::Switch,
        default: DefaultValue::Toml("true"),
        doc: "Let in what can be served where more clients come, those first that have been here before, and drop the others \
              where it costs least: `docs/withstand.md` says how. Established connections are not touched. `false` serves all \
              in turn, also those that have left.",
        example: "false",
        danger: "With `false`, a flood of handshakes stops the service, and is gone later than the flood.",
        elsewhere: &["maxsslrate", "maxconnrate", "overload_manager", "limit_conn"],
        store: |process, value| read::boolean(value).map(|it| process.overload = it),
    }
    "target_wait" {
        flag: Flag::Takes("target-wait"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"20ms\""),
        doc: "Longest wait for a handshake that is no sign of overload. It is overload when clients wait for longer for 100 ms, \
              and all that wait cannot be served within `patience`.",
        example: "\"50ms\"",
        danger: "Clients wait up to five times as long in overload.",
        elsewhere: &["codel_target"],
        store: |process, value| read::duration(value, "10s").map(|it| process.target_wait = it),
    }
    "patience" {
        flag: Flag::Takes("patience"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"1s\""),
        doc: "How long clients are taken to wait for a handshake before they leave. A burst that can be served within this time is \
              served whole; more than that is overload.",
        example: "\"3s\"",
        danger: "Longer than clients wait: handshakes are made for those who have left.",
        store: |process, value| read::duration(value, "1m").map(|it| process.patience = it),
    }
    "overload_exempt" {
        flag: Flag::Takes("overload-exempt"),
        kind: Kind::List(Item::Network),
        default: DefaultValue::Toml("[]"),
        doc: "Networks whose clients are let in in overload as well, such as health checks. A balancer that sends PROXY headers need \
              not be listed: its clients count by their own addresses.",
        example: "[\"10.0.0.0/24\", \"2001:db8::/64\"]",
        danger: "More of them than can be served leave nothing to others. Of IPv6 the first 64 bits count.",
        elsewhere: &["whitelist", "allowlist"],
        store: |process, value| {
            read::distinct_or_none(value, fleet::network).map(|it| process.overload_exempt = it)
        },
    }
    "overload_prefixes" {
        flag: Flag::Takes("overload-prefixes"),
        kind: Kind::List(Item::Prefix),
        default: DefaultValue::Toml("[\"ipv4/32\", \"ipv4/24\", \"ipv6/64\", \"ipv6/56\", \"ipv6/48\"]"),
        doc: "Lengths of prefixes whose networks have a budget each in overload: no network takes more than the others leave. \
              At most four of IPv4 and four of IPv6; `[]` for no budgets.",
        example: "[\"ipv4/24\", \"ipv6/56\"]",
        danger: "Short prefixes make neighbours pay for each other, long ones let a network come by many of its addresses.",
        elsewhere: &["limit_conn_zone", "ipv6_prefix"],
        store: |process, value| prefix::lengths(value).map(|it| process.overload_prefixes = it),
    }
    "drain_timeout" {
        flag: Flag::Takes("drain-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"30s\""),
        doc: "Time for open connections to finish after a signal to stop. Connections that are still open then \
              are closed.",
        example: "\"2m\"",
        danger: "A service manager with a shorter timeout kills the program first (systemd: `TimeoutStopSec=`).",
        elsewhere: &["shutdown_timeout", "worker_shutdown_timeout"],
        store: |process, value| read::duration(value, "365d").map(|it| process.drain_timeout = it),
    }
    "hard_stop_after" {
        flag: Flag::Takes("hard-stop-after"),
        kind: Kind::Duration,
        default: DefaultValue::Derived("as `drain_timeout`"),
        doc: "Time for open connections of the process that `courser upgrade` has replaced. Connections that are still \
              open then are closed; a connection of TLS cannot move to another process.",
        example: "\"1h\"",
        danger: "While it drains, the old process takes memory and descriptors beside the new one.",
        elsewhere: &["hard-stop-after", "worker_shutdown_timeout", "parent_shutdown_time"],
        store: |process, value| read::duration(value, "365d").map(|it| process.hard_stop_after = Some(it)),
    }
    "max_old_processes" {
        flag: Flag::Takes("max-old-processes"),
        kind: Kind::Count,
        default: DefaultValue::Toml("4"),
        doc: "Maximum number of processes that were replaced by `courser upgrade` and still drain. While there are so \
              many, a further upgrade is refused.",
        example: "10",
        danger: "Each of them holds its connections, and the memory of its sessions and certificates.",
        elsewhere: &["mworker_max_reloads", "max_reloads"],
        store: |process, value| read::count(value, 1..=100).map(|it| process.max_old_processes = it as usize),
    }
    "reload_on_change" {
        flag: Flag::Switch("no-reload-on-change", false, "Reload on request alone"),
        kind: Kind::Switch,
        default: DefaultValue::Toml("true"),
        doc: "Reload when the configuration file, a certificate, a key or a list of authorities has changed: they are \
              looked at every 5 seconds. `courser reload` and SIGHUP reload in any case.",
        example: "false",
        danger: "A file that is valid is served when it is written, also one that is only being tried.",
        elsewhere: &["watch", "auto_reload"],
        store: |process, value| read::boolean(value).map(|it| process.reload_on_change = it),
    }
    "control" {
        flag: Flag::Takes("control"),
        kind: Kind::File,
        default: DefaultValue::Derived(
            "`/run/courser/control.sock` where the user may write to that folder, \
            else `$XDG_RUNTIME_DIR/courser/control.sock`: where neither can be opened, a warning",
        ),
        doc: "Path of the control socket. `courser reload`, `status`, `backend` and `fleet` reach the running \
              program through it; only the user of the program and root may connect. A path that is named has to be \
              free.",
        example: "\"/run/courser-staging/control.sock\"",
        elsewhere: &["stats_socket"],
        store: |process, value| address::located_socket(value).map(|it| process.control = Some(it)),
    }
    "state_folder" {
        flag: Flag::Takes("state-folder"),
        kind: Kind::Folder,
        default: DefaultValue::Derived("none: after a restart every client makes one full handshake"),
        doc: "Path of the folder for the ticket keys of a host that is in no fleet, so that tickets are resumed after \
              a restart. Keys roll every 8 hours; those of sessions that have ended are wiped. Only its owner may enter \
              the folder (mode 0700). A fleet has `fleet.state`.",
        example: "\"/var/lib/courser\"",
        danger: "Who steals the folder can open the tickets of sessions that could be resumed then, and with them \
                 captured traffic of TLS 1.2.",
        elsewhere: &["state_dir", "state_directory", "data_dir"],
        store: |process, value| address::located_file(value).map(|it| process.state_folder = Some(it)),
    }
    "user" {
        flag: Flag::Takes("user"),
        kind: Kind::Text,
        default: DefaultValue::Derived("the user that starts courser"),
        doc: "User to switch to once the sockets are open and the files are read, by name or number. Only root \
              can switch. Supplementary groups are dropped. The user must be able to read certificates, keys \
              and authorities (keys must belong to the user or to root), and to write to the folders of \
              `state_folder`, `fleet.state`, `sessions.file` and `control`.",
        example: "\"courser\"",
        elsewhere: &["uid", "setuid", "run_as"],
        store: |process, value| read::located(value, draft::name).map(|it| process.user = Some(it)),
    }
    "group" {
        flag: Flag::Takes("group"),
        kind: Kind::Text,
        default: DefaultValue::Derived("the group of `user`"),
        doc: "Group to switch to together with `user`, by name or number. Keys that root shares with this \
              group (`chmod 640`) can be read.",
        example: "\"ssl-cert\"",
        elsewhere: &["gid", "setgid"],
        store: |process, value| read::located(value, draft::name).map(|it| process.group = Some(it)),
    }
    "core_dumps" {
        flag: Flag::Switch(
            "core-dumps",
            true,
            "DANGEROUS: allow core files and debuggers, which expose every private key",
        ),
        kind: Kind::Switch,
        default: DefaultValue::Toml("false"),
        doc: "Allow core files, and debuggers of the same user. By default the process is not dumpable and its \
              core size is 0, set before any key is read.",
        example: "true",
        danger: "A core file contains every private key, ticket key and session secret, and plaintext of clients.",
        elsewhere: &["rlimit_core", "worker_rlimit_core", "coredump"],
        store: |process, value| read::boolean(value).map(|it| process.core_dumps = it),
    }
    "confine_workers" {
        flag: Flag::Switch(
            "unconfined-workers",
            false,
            "DANGEROUS: leave worker threads all files and system calls of the process",
        ),
        kind: Kind::Switch,
        default: DefaultValue::Toml("true"),
        doc: "Deny each worker thread all files (Landlock) and the system calls that it does not need \
              (seccomp), as far as the kernel supports it. A line at the start lists what is denied.",
        example: "false",
        danger: "Without it, an attacker who takes over a worker through a fault in TLS or in a parser can read \
                 every file and run every program that courser's user can.",
        elsewhere: &["sandbox", "seccomp"],
        store: |process, value| read::boolean(value).map(|it| process.confine_workers = it),
    }
}
