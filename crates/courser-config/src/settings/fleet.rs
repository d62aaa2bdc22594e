//! Settings of what several hosts share: `[fleet]`.

use crate::config::Fleet;
use crate::fleet::Peer;
use crate::read::{self, located};
use crate::setting::{DefaultValue, Flag, Item, Kind, settings};
use crate::{address, draft, fleet};

settings! {
    FLEET: Fleet, AtRestart;
    "key" {
        flag: Flag::Takes("fleet-key"),
        kind: Kind::List(Item::File),
        default: DefaultValue::Toml("[]"),
        doc: "Paths of key files made by `courser fleet keygen`. Hosts with the same file resume each other's \
              tickets; no message is needed. With two files, the first seals and both open, so that a fleet \
              can change its key host by host.",
        example: "[\"fleet.key\"]",
        danger: "Whoever reads the file can open the tickets and messages of the fleet, also those captured \
                 earlier, unless `state` is set. The file is refused if users other than its owner and the group \
                 that root shares it with can read it.",
        elsewhere: &["tls_ticket_keys", "ssl_session_ticket_key", "secret"],
        store: |fleet, value| read::list(value, address::located_file).map(|it| fleet.keys = it),
    }
    "state" {
        flag: Flag::Takes("fleet-state"),
        kind: Kind::Folder,
        default: DefaultValue::Derived("none: keys come from the files of `key`"),
        doc: "Path of the folder for forward-secret key states. The secret of an epoch is derived from the one \
              before, which is then wiped: whoever steals the folder cannot open what was captured earlier. \
              Once every host has its state, remove `key` and destroy its file: until then earlier keys can be \
              derived again. A new host starts from what `courser fleet export` writes. A state whose key is \
              not named, while another is, is removed.",
        example: "\"/var/lib/courser\"",
        danger: "A host that was off for longer than a session's lifetime still has old keys.",
        elsewhere: &["state_dir"],
        store: |fleet, value| address::located_file(value).map(|it| fleet.state = Some(it)),
    }
    "name" {
        flag: Flag::Takes("fleet-name"),
        kind: Kind::Text,
        default: DefaultValue::Derived(
            "automatic: the machine's host name, and eight digits that differ \
            from start to start",
        ),
        doc: "Name of this host in the fleet. Each host needs its own.",
        example: "\"edge-1\"",
        danger: "Of two hosts with one name, the one that started last is accepted and the other refused.",
        elsewhere: &["hostname", "node"],
        store: |fleet, value| draft::name(value).map(|it| fleet.name = Some(it)),
    }
    "listen" {
        flag: Flag::Takes("fleet-listen"),
        kind: Kind::Address,
        default: DefaultValue::Derived("none: sessions are not replicated"),
        doc: "UDP address for fleet messages: an address of this host, or a multicast group. Sessions for TLS \
              1.2 clients without tickets are pushed to the other hosts when they are made.",
        example: "\"10.0.3.20:8888\"",
        elsewhere: &["shared_cache_listen", "bind"],
        store: |fleet, value| located(value, address::datagram).map(|it| fleet.listen = Some(it)),
    }
    "peer" {
        flag: Flag::Takes("fleet-peer"),
        kind: Kind::List(Item::Address),
        default: DefaultValue::Toml("[]"),
        doc: "UDP addresses of the other hosts, for unicast. A name stands for all of its addresses, as that of a \
              headless Service does; they are looked up every five seconds. Messages from other addresses are \
              refused.",
        example: "[\"10.0.0.17:8888\"]",
        elsewhere: &["peers", "shared_cache_peer"],
        store: |fleet, value| {
            (fleet.peers, fleet.peer_names) = Default::default();
            for peer in read::distinct_or_none(value, fleet::peer)? {
                match peer {
                    Peer::Address(address) => fleet.peers.push(address),
                    Peer::Name(name) => fleet.peer_names.push(name),
                }
            }
            Ok(())
        },
    }
    "interface" {
        flag: Flag::Takes("fleet-interface"),
        kind: Kind::Text,
        default: DefaultValue::Derived(
            "automatic: the interface of the system's route to the group, and one \
            hop",
        ),
        doc: "Network interface for multicast, and the number of routers that messages may pass.",
        example: "\"eth0,ttl=2\"",
        danger: "With a `ttl` above 1 messages leave the segment, where routers forward multicast.",
        elsewhere: &["shared_cache_if"],
        store: |fleet, value| located(value, fleet::interface).map(|it| fleet.interface = Some(it)),
    }
    "allow" {
        flag: Flag::Takes("fleet-allow"),
        kind: Kind::List(Item::Network),
        default: DefaultValue::Toml("[]"),
        doc: "Networks from which multicast messages are accepted. Empty: any. A message that the fleet's key \
              did not seal is refused in any case, but costs more than one from a wrong address.",
        example: "[\"10.0.0.0/16\"]",
        elsewhere: &["allowed", "sources"],
        store: |fleet, value| read::distinct_or_none(value, fleet::network).map(|it| fleet.allow = it),
    }
    "pull" {
        flag: Flag::Switch("no-fleet-pull", false, "Do not request sessions from other hosts"),
        kind: Kind::Switch,
        default: DefaultValue::Toml("true"),
        doc: "Request a session ID that is not in the cache from the other hosts before the handshake. So a \
              host that has just joined, or was cut off, resumes too.",
        example: "false",
        store: |fleet, value| read::boolean(value).map(|it| fleet.pull = it),
    }
    "pull_timeout" {
        flag: Flag::Takes("fleet-pull-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"5ms\""),
        doc: "Maximum time that a handshake waits for the other hosts, at most `1s`. After it the handshake is \
              a full one.",
        example: "\"20ms\"",
        danger: "While a host is down, clients whose session no host has wait this long.",
        store: |fleet, value| read::duration(value, "1s").map(|it| fleet.pull_timeout = it),
    }
}
