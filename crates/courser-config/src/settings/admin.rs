//! Settings of what operators and monitoring see over HTTP: `[admin]`.

use crate::config::Admin;
use crate::read;
use crate::setting::{DefaultValue, Flag, Item, Kind, settings};
use crate::{address, admin, fleet};

settings! {
    ADMIN: Admin, AtRestart;
    "listen" {
        flag: Flag::Takes("admin"),
        kind: Kind::List(Item::Address),
        default: DefaultValue::Toml("[]"),
        doc: "Addresses for operators and monitoring, over HTTP: `/healthz` and `/readyz` for probes, `/status.json` \
              for programs. What is asked for changes nothing. An address that other machines can reach needs \
              `allow` and `token`. Anyone on this machine may connect to a loopback address; to a unix socket, only \
              the user and the group of the program.",
        example: "[\"127.0.0.1:9440\", \"unix:/run/courser/admin.sock\"]",
        danger: "Names of hosts, addresses of backends and counts of connections are shown.",
        elsewhere: &["stats", "metrics", "prometheus"],
        store: |to, value| {
            read::distinct_or_none(value, |item| read::located(item, admin::listen)).map(|it| to.listen = it)
        },
    }
    "allow" {
        flag: Flag::Takes("admin-allow"),
        kind: Kind::List(Item::Network),
        default: DefaultValue::Derived("the loopback addresses"),
        doc: "Networks whose addresses may connect to an address of `listen`. Others get no answer.",
        example: "[\"10.0.0.0/8\"]",
        store: |to, value| read::distinct_or_none(value, fleet::network).map(|it| to.allow = it),
    }
    "token" {
        flag: Flag::Takes("admin-token"),
        kind: Kind::File,
        default: DefaultValue::Derived("none"),
        doc: "Path of a file with a token, 16 to 512 visible ASCII characters. A request then needs \
              `Authorization: Bearer TOKEN`, except for `/healthz` and `/readyz`, which say yes or no. The file is \
              refused if other users can read it.",
        example: "\"admin.token\"",
        danger: "The token crosses the network as it is: whoever reads along has it.",
        elsewhere: &["token_file", "bearer_token_file"],
        store: |to, value| address::located_file(value).map(|it| to.token = Some(it)),
    }
    "server_names" {
        flag: Flag::Takes("admin-server-name"),
        kind: Kind::List(Item::Text),
        default: DefaultValue::Toml("[]"),
        doc: "Names and addresses, without port, that requests may have in `Host` beside `localhost`, loopback \
              addresses and the address that the client has connected to. Others are refused, so that no page of \
              the Web reads along in an operator's browser (DNS rebinding).",
        example: "[\"edge-1.internal\"]",
        store: |to, value| read::distinct_or_none(value, admin::server_name).map(|it| to.server_names = it),
    }
}
