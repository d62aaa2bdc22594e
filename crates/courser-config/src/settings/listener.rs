//! Settings of a listener alone: `[[listener]]`.

use crate::address;
use crate::config::UnknownName;
use crate::draft::{ListenerDraft, name};
use crate::named::Named;
use crate::proxy_protocol;
use crate::read;
use crate::rule;
use crate::setting::{DefaultValue, Flag, Item, Kind, settings};

settings! {
    LISTENER: ListenerDraft, WithGeneration;
    "name" {
        flag: Flag::None,
        kind: Kind::Text,
        default: DefaultValue::Derived(
            "its first address; sessions are then bound to its position in the file",
        ),
        doc: "Name of the listener in logs and metrics. It must be unique, and the same on all hosts of a \
              fleet: sessions are bound to it.",
        example: "\"web\"",
        danger: "After a change of the name, sessions of the old name cannot be resumed.",
        elsewhere: &["id"],
        store: |listener, value| read::located(value, name).map(|it| listener.name = Some(it)),
    }
    "listen" {
        flag: Flag::Takes("listen"),
        kind: Kind::List(Item::Address),
        default: DefaultValue::Toml("[\"*:443\"]"),
        doc: "Addresses to listen on. An address is `*:443` (every address, IPv6 and IPv4), `192.0.2.1:443`, \
              `[2001:db8::1]:443` (`[::]` is IPv6 alone), `unix:/run/courser.sock`, `abstract:courser`, \
              `systemd` (every socket passed by socket activation) or `systemd:web` (those of that \
              `FileDescriptorName=`).",
        example: "[\"*:443\", \"unix:/run/courser.sock\"]",
        danger: "Ports below 1024 need `CAP_NET_BIND_SERVICE` or socket activation.",
        elsewhere: &["bind", "address", "addresses", "port"],
        store: |listener, value| {
            read::some(value, |item| read::located(item, address::listen)).map(|it| listener.listen = it)
        },
    }
    "backlog" {
        takes_effect: AtRestart,
        flag: Flag::Takes("backlog"),
        kind: Kind::Count,
        default: DefaultValue::Toml("4096"),
        doc: "Length of the kernel's accept queue, for each listening socket. Linux caps it at \
              `net.core.somaxconn`.",
        example: "65_535",
        elsewhere: &["queue"],
        store: |listener, value| {
            read::count(value, 1..=i32::MAX.cast_unsigned()).map(|it| listener.backlog = it)
        },
    }
    "proxy_protocol" {
        flag: Flag::None,
        kind: Kind::Sources,
        default: DefaultValue::Derived("none: a PROXY header is refused"),
        doc: "Sources that send a PROXY protocol header, version 1 or 2, in front of each connection, such as a load balancer: \
              networks, and `unix` for whoever connects to a unix socket of the listener. A header is required of \
              them and refused from all others. The client's address is then the one in the header, in the log \
              (`client`, with the balancer as `via`), for limits of a source, and in the header for the backend.",
        example: "{ from = [\"10.0.0.0/24\", \"2001:db8::/64\"] }",
        danger: "Whoever is listed can claim any address: list no one else.",
        elsewhere: &["accept_proxy", "proxy", "real_ip", "set_real_ip_from", "proxy_tlv"],
        store: |listener, value| {
            read::located(value, proxy_protocol::accept).map(|it| listener.accept_proxy = Some(it))
        },
    }
    "route" {
        flag: Flag::None,
        kind: Kind::Rules,
        default: DefaultValue::Toml("[]"),
        doc: "Rules by which clients are routed, by their ClientHello and before anything is decrypted: \
              `docs/routing.md` has examples. The first that fits decides; where none fits, the server name does. `when` has \
              one or more of: `server_name` (names as in `names` of a host, `\"\"` for clients that send none), `alpn` \
              (any of these is offered), `key` (`rsa-only`: the client can use no ECDSA certificate), `version` (the \
              highest one that is offered, `1.3` or `1.2`), `session` (`offered` or `none`). A rule without `when` is for \
              every client. `relay` passes the connection to a pool as it is, with the listener's timeouts and a \
              `send_proxy` of the rule's or the listener's; `terminate` serves a host of the listener by its name \
              (`default`: the listener's own settings); `refuse` sends the alert `access_denied`.",
        example: "[{ when = { server_name = \"db.example\" }, relay = \"shop\" }, { when = { key = \"rsa-only\" }, relay = \"shop\", send_proxy = \"v2\" }]",
        danger: "A client chooses what it sends: a rule is no access control. With Encrypted Client Hello it sees the outer \
                 name.",
        elsewhere: &["routes", "rules", "acl", "sni_routes"],
        store: |listener, value| read::list(value, rule::read).map(|it| listener.routes = it),
    }
    "unknown_name" {
        flag: Flag::Takes("unknown-name"),
        kind: Kind::Choice(|| UnknownName::ALL.iter().map(|choice| choice.name()).collect()),
        default: DefaultValue::Toml("\"default\""),
        doc: "Response to a client that sends an unknown server name, or none. `default` serves the listener's \
              own certificate and backend; `refuse` sends the alert `unrecognized_name` (RFC 6066, section 3).",
        example: "\"refuse\"",
        danger: "With `refuse`, clients that connect to a bare IP address are refused too.",
        elsewhere: &["strict_sni", "sni"],
        store: |listener, value| read::named(value, "value").map(|it| listener.unknown_name = it),
    }
    "handshake_timeout" {
        flag: Flag::Takes("handshake-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"10s\""),
        doc: "Maximum time from the accepted connection to the end of the handshake. It includes the wait for \
              the first byte; a client cannot extend it by sending byte after byte.",
        example: "\"5s\"",
        elsewhere: &["hello_timeout", "client_hello_timeout", "ssl_handshake_timeout"],
        store: |listener, value| read::duration(value, "1d").map(|it| listener.handshake_timeout = it),
    }
}
