//! Settings of what several hosts share: `[fleet]`.

use crate::config::Fleet;
use crate::read::{self, located};
use crate::setting::{About, DefaultValue, Flag, Item, Kind, Setting};
use crate::{address, draft, fleet};

pub(crate) static FLEET: &[Setting<Fleet>] = &[
    Setting {
        about: About {
            key: "key",
            flag: Flag::Takes("fleet-key"),
            kind: Kind::List(Item::File),
            default: DefaultValue::Toml("[]"),
            doc: "Files that `courser fleet keygen` made. Hosts with the same file resume each other's \
                  sessions by ticket, without a message. With two, the first seals and both open: a fleet \
                  is given a new key host by host.",
            example: "[\"fleet.key\"]",
            danger: Some(
                "Who reads the file can open the tickets and messages of the fleet, also those captured \
                 before, unless `state` is set. It is refused when others than its owner and the group that \
                 it was given to can read it.",
            ),
            elsewhere: &["tls_ticket_keys", "ssl_session_ticket_key", "secret"],
        },
        store: |fleet, value| {
            fleet.keys = read::list(value, address::located_file)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "state",
            flag: Flag::Takes("fleet-state"),
            kind: Kind::Folder,
            default: DefaultValue::Derived("none: keys come from the files of `key`"),
            doc: "Folder for keys that are forgotten as time goes on. The secret of an epoch is made of that \
                  before, which is then wiped: who steals the folder cannot open what was captured earlier. \
                  Once every host has its state, take `key` out and destroy its file: until then nothing is \
                  forgotten. A host that joins later gets what `courser fleet export` writes. A state whose \
                  key is not named, while another is, is removed.",
            example: "\"/var/lib/courser\"",
            danger: Some("A host that was off for longer than a session's lifetime still has old keys."),
            elsewhere: &["state_dir"],
        },
        store: |fleet, value| {
            fleet.state = Some(address::located_file(value)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "name",
            flag: Flag::Takes("fleet-name"),
            kind: Kind::Text,
            default: DefaultValue::Derived(
                "the machine's host name, and eight digits that differ from start to start",
            ),
            doc: "What this host is called in the fleet. It has to differ from host to host.",
            example: "\"edge-1\"",
            danger: Some("Of two hosts of one name the one that started last is heard, the other refused."),
            elsewhere: &["hostname", "node"],
        },
        store: |fleet, value| {
            fleet.name = Some(draft::name(value)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "listen",
            flag: Flag::Takes("fleet-listen"),
            kind: Kind::Address,
            default: DefaultValue::Derived("none: sessions by ID are not shared by messages"),
            doc: "UDP address for messages of the fleet: one of this host's, or a multicast group. Sessions by \
                  ID, for TLS 1.2 clients that take no tickets, are pushed to the others when they are made.",
            example: "\"10.0.3.20:8888\"",
            danger: None,
            elsewhere: &["shared_cache_listen", "bind"],
        },
        store: |fleet, value| {
            fleet.listen = Some(located(value, address::datagram)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "peer",
            flag: Flag::Takes("fleet-peer"),
            kind: Kind::List(Item::Address),
            default: DefaultValue::Toml("[]"),
            doc: "UDP addresses of the other hosts, for messages by unicast. Messages from elsewhere are \
                  refused.",
            example: "[\"10.0.0.17:8888\"]",
            danger: None,
            elsewhere: &["peers", "shared_cache_peer"],
        },
        store: |fleet, value| {
            fleet.peers = read::distinct_or_none(value, address::datagram)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "interface",
            flag: Flag::Takes("fleet-interface"),
            kind: Kind::Text,
            default: DefaultValue::Derived("the one that the system routes the group by, and one hop"),
            doc: "Network interface for messages by multicast, and how many routers they may pass.",
            example: "\"eth0,ttl=2\"",
            danger: Some("With a `ttl` above 1 messages leave the segment, where routers forward multicast."),
            elsewhere: &["shared_cache_if"],
        },
        store: |fleet, value| {
            fleet.interface = Some(located(value, fleet::interface)?);
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "allow",
            flag: Flag::Takes("fleet-allow"),
            kind: Kind::List(Item::Network),
            default: DefaultValue::Toml("[]"),
            doc: "Networks that messages may come from by multicast. Empty: any; a message that the fleet's key \
                  did not seal is refused all the same, but costs more than one from a wrong address.",
            example: "[\"10.0.0.0/16\"]",
            danger: None,
            elsewhere: &["allowed", "sources"],
        },
        store: |fleet, value| {
            fleet.allow = read::distinct_or_none(value, fleet::network)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "pull",
            flag: Flag::Switch("no-fleet-pull", false, "Do not ask other hosts for a session by ID"),
            kind: Kind::Switch,
            default: DefaultValue::Toml("true"),
            doc: "Ask the other hosts for a session by ID that this host has not got, before the handshake. \
                  So a host that has just joined, or was cut off, resumes too.",
            example: "false",
            danger: None,
            elsewhere: &[],
        },
        store: |fleet, value| {
            fleet.pull = read::boolean(value)?;
            Ok(())
        },
    },
    Setting {
        about: About {
            key: "pull_timeout",
            flag: Flag::Takes("fleet-pull-timeout"),
            kind: Kind::Duration,
            default: DefaultValue::Toml("\"5ms\""),
            doc: "How long a handshake may wait for the other hosts' answer, at most `1s`. Then it is a full one.",
            example: "\"20ms\"",
            danger: Some("Clients with a session that nobody has wait for this long where a host is down."),
            elsewhere: &[],
        },
        store: |fleet, value| {
            fleet.pull_timeout = read::duration(value, "1s")?;
            Ok(())
        },
    },
];
