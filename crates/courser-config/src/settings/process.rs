//! Settings of the whole process: the top of the file.

use crate::config::{Log, Process};
use crate::named::Named;
use crate::setting::{About, DefaultValue, Flag, Kind, Setting};
use crate::{address, draft, read};

pub(crate) static PROCESS: &[Setting<Process>] = &[
    Setting {
        about: About {
            key: "workers",
            flag: Flag::Takes("workers"),
            kind: Kind::Count,
            default: DefaultValue::Derived("the CPUs of the affinity mask, capped by the cgroup's CPU quota"),
            doc: "Number of worker threads, from 1 to 1024. Each has its own listening sockets and keeps a \
                  connection from its first byte to its last.",
            example: "4",
            danger: Some("More workers than CPUs make every handshake slower."),
            elsewhere: &["threads", "nbthread", "worker_processes"],
        },
        store: |process, value| {
            process.workers = Some(read::count(value, 1..=1024)? as usize);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "pin",
            flag: Flag::Switch("pin", true, "Bind each worker to one CPU"),
            kind: Kind::Switch,
            default: DefaultValue::Toml("false"),
            doc: "Bind each worker to one CPU. It helps where nothing else runs on these CPUs.",
            example: "true",
            danger: Some("A worker cannot move away from a CPU that something else has taken."),
            elsewhere: &["cpu_map", "cpu_affinity", "affinity"],
        },
        store: |process, value| {
            process.pin = read::boolean(value)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "log",
            flag: Flag::Takes("log"),
            kind: Kind::Choice(|| Log::ALL.iter().map(|log| log.name()).collect()),
            default: DefaultValue::Toml("\"text\""),
            doc: "Format of the connection log on standard output. There is one line for each connection, \
                  written when it has ended: for people, as one JSON object, or not at all.",
            example: "\"json\"",
            danger: None,
            elsewhere: &["access_log", "log_format"],
        },
        store: |process, value| {
            process.log = read::named(value, "log format")?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "strict",
            flag: Flag::Switch("strict", true, "Refuse a certificate that has expired or is not yet valid"),
            kind: Kind::Switch,
            default: DefaultValue::Toml("false"),
            doc: "Refuse to start with a certificate that has expired or is not yet valid. Without it \
                  such a \
                  certificate is only warned of.",
            example: "true",
            danger: Some(
                "A restart long after the last renewal fails, where it would have served clients that do \
                 not care.",
            ),
            elsewhere: &[],
        },
        store: |process, value| {
            process.strict = read::boolean(value)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "max_connections",
            flag: Flag::Takes("max-connections"),
            kind: Kind::Count,
            default: DefaultValue::Derived(
                "as many as the limit of open descriptors and half of the memory (64 KiB each) allow",
            ),
            doc: "Connections open at once, over all listeners and workers. Further ones wait in the kernel's \
                  queue until one ends. Reaching the limit is told on standard error.",
            example: "100_000",
            danger: Some(
                "Each connection takes two descriptors; a number beyond the limit of open descriptors \
                 cannot be reached.",
            ),
            elsewhere: &["maxconn", "worker_connections", "connections"],
        },
        store: |process, value| {
            process.max_connections = Some(read::count(value, 1..=u32::MAX)? as usize);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "drain_timeout",
            flag: Flag::Takes("drain-timeout"),
            kind: Kind::Duration,
            default: DefaultValue::Toml("\"30s\""),
            doc: "How long open connections may go on after the program has been told to stop. What is \
                  still \
                  open then is closed.",
            example: "\"2m\"",
            danger: Some(
                "A service manager that waits for less kills the program first (systemd: \
                 `TimeoutStopSec=`).",
            ),
            elsewhere: &["shutdown_timeout", "hard_stop_after", "worker_shutdown_timeout"],
        },
        store: |process, value| {
            process.drain_timeout = read::duration(value, "365d")?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "control",
            flag: Flag::Takes("control"),
            kind: Kind::File,
            default: DefaultValue::Derived("none: the running program cannot be asked"),
            doc: "Unix socket by which the running program can be asked, as `courser fleet status` does. Only its \
                  owner may use it.",
            example: "\"/run/courser/control.sock\"",
            danger: None,
            elsewhere: &["stats_socket", "admin"],
        },
        store: |process, value| {
            process.control = Some(address::located_socket(value)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "user",
            flag: Flag::Takes("user"),
            kind: Kind::Text,
            default: DefaultValue::Derived("the user that starts it"),
            doc: "User to become when the sockets are open and the files are read, a name or a number, without any \
                  supplementary group. Only root can. Files of certificates, keys and authorities have to be readable by \
                  that user, and keys be owned by it or by root; folders of `fleet.state`, `sessions.file` and `control` \
                  have to be writable by it.",
            example: "\"courser\"",
            danger: None,
            elsewhere: &["uid", "setuid", "run_as"],
        },
        store: |process, value| {
            process.user = Some(read::located(value, draft::name)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "group",
            flag: Flag::Takes("group"),
            kind: Kind::Text,
            default: DefaultValue::Derived("the group of `user`"),
            doc: "Group to have with `user`, a name or a number. Keys that root lends to this group (`chmod 640`) can be \
                  read.",
            example: "\"ssl-cert\"",
            danger: None,
            elsewhere: &["gid", "setgid"],
        },
        store: |process, value| {
            process.group = Some(read::located(value, draft::name)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "core_dumps",
            flag: Flag::Switch(
                "core-dumps",
                true,
                "DANGEROUS: allow core files and debuggers, which get every private key",
            ),
            kind: Kind::Switch,
            default: DefaultValue::Toml("false"),
            doc: "Allow core files, and debuggers of the same user. Without it the process is not dumpable and its core \
                  size is 0, set before any key is read.",
            example: "true",
            danger: Some(
                "A core file has every private key, ticket key and session secret, and plaintext of clients.",
            ),
            elsewhere: &["rlimit_core", "worker_rlimit_core", "coredump"],
        },
        store: |process, value| {
            process.core_dumps = read::boolean(value)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "confine_workers",
            flag: Flag::Switch(
                "unconfined-workers",
                false,
                "DANGEROUS: leave worker threads every file and system call that the process has",
            ),
            kind: Kind::Switch,
            default: DefaultValue::Toml("true"),
            doc: "Whether each worker thread gives up files (Landlock) and system calls that it does not need (seccomp), \
                  as far as the kernel can. A line at the start says what is on.",
            example: "false",
            danger: Some(
                "Without it, who takes a worker over by a fault in TLS or in a parser can read every file and run every \
                 program that courser's user can.",
            ),
            elsewhere: &["sandbox", "seccomp"],
        },
        store: |process, value| {
            process.confine_workers = read::boolean(value)?;
            Ok(())
        },
    },
];
