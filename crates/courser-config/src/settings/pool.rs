//! Settings of a pool of servers: `[pool.NAME]`.

use crate::affinity;
use crate::backend_tls;
use crate::check;
use crate::config::Balance;
use crate::draft::PoolDraft;
use crate::named::Named;
use crate::pool::server;
use crate::read;
use crate::setting::{DefaultValue, Flag, Kind, TLS_WITH_BACKENDS, settings};

settings! {
    POOL: PoolDraft, WithGeneration;
    "servers" {
        flag: Flag::None,
        kind: Kind::Servers,
        default: DefaultValue::Derived("none: a pool needs one"),
        doc: "Servers of the pool. An entry is an address as in `backend`, or a table with it as `address`, and \
              with `weight` (1 to 1000, by default 1), the server's share among the others', and \
              `max_connections`, which it never gets more of, and with `backup = true` where it gets connections only \
              while no other one is good. A name stands for all its addresses: each is a \
              server of its own. So does `srv:_http._tcp.shop.internal` for the targets of its SRV records, with their ports, \
              weights and priorities (RFC 2782).",
        example: "[{ address = \"10.0.1.1:8080\", weight = 3 }, { address = \"10.0.1.2:8080\", max_connections = 200 }, \"unix:/run/shop.sock\"]",
        danger: "Without `tls`, traffic to them is not encrypted: use the same machine or a network you trust.",
        elsewhere: &["server", "backend", "upstream", "members", "targets"],
        store: |pool, value| read::some(value, server).map(|it| pool.servers = it),
    }
    "balance" {
        flag: Flag::None,
        kind: Kind::Choice(|| Balance::ALL.iter().map(|choice| choice.name()).collect()),
        default: DefaultValue::Toml("\"least\""),
        doc: "Server of the next connection: `least`, the one with the fewest connections by its weight; \
              `round-robin`, each in turn; `random`; `latency`, the one with the least product of connect time \
              and connections. Each respects weights.",
        example: "\"round-robin\"",
        elsewhere: &["algorithm", "method", "lb_policy", "load_balancing"],
        store: |pool, value| read::named(value, "policy").map(|it| pool.balance = it),
    }
    "affinity" {
        flag: Flag::None,
        kind: Kind::Text,
        default: DefaultValue::Derived("none: each connection goes where `balance` says"),
        doc: "What keeps a client at its server: `source`, the client's address, or the first bits of it \
              (`source/24,/56`; of IPv6 64 where none are given, as devices change the rest: RFC 8981); \
              `server-name`; `client-certificate`, the public key in it; `session`, the TLS session that the client \
              resumes, which is for connections that are relayed without being decrypted. A server with a quarter more \
              than its share, and 16 connections, passes clients on; `balance` distributes those who have no such \
              thing.",
        example: "\"source/24,/56\"",
        elsewhere: &["persistence", "sticky", "stick", "stickiness", "session_affinity", "ip_hash", "hash", "hash_policy"],
        store: |pool, value| read::located(value, affinity::read).map(|it| pool.affinity = Some(it)),
    }
    "queue_timeout" {
        flag: Flag::None,
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"5s\""),
        doc: "Maximum time that a connection waits while every server has its `max_connections`. First come, first \
              served, until the oldest has waited for half of it; then the newest is served first, since the \
              oldest would be served shortly before it gives up.",
        example: "\"1s\"",
        elsewhere: &["timeout_queue", "queue"],
        store: |pool, value| read::duration(value, "1d").map(|it| pool.queue_timeout = it),
    }
    "check" {
        flag: Flag::None,
        kind: Kind::Checks,
        default: DefaultValue::Derived("none: failures of connections alone eject a server"),
        doc: "Active check of each server: `tcp`, to connect; `tls`, a handshake in which the server proves who it is (with the pool's `tls`); \
              `http`, a `GET` that is answered with a good status, over TLS where the pool has it; \
              `agent`, what an agent beside the server says in HAProxy's words (`up`, `down`, `drain`, `50%`, \
              `maxconn:30`). A table has it as `kind`, and may have `interval` (`2s`), `timeout` (as `interval`), \
              `up` and `down`, the results in a row that change a server's state (2 and 3), `port`, another than the \
              server's, and `send_proxy` (as for connections, as LOCAL; off at another port); for `http` also `path` \
              (`/`), `host` (as the server is written) and `status` (`\"200-399\"`, or a list). Of several checks each must \
              pass. [Pools](pools.md#active-checks) has more.",
        example: "{ kind = \"http\", path = \"/health\" }",
        elsewhere: &["health_check", "healthcheck", "checks", "option_httpchk", "health"],
        store: |pool, value| read::some(value, check::check).map(|it| pool.checks = it),
    }
    "tls" {
        flag: Flag::None,
        kind: Kind::Table(TLS_WITH_BACKENDS),
        default: DefaultValue::Toml("false"),
        doc: "TLS with the servers. `verify` says how a server proves who it is: by a certificate that the system trusts \
              (`\"system\"`, which `true` stands for), by one of the authorities in a list of PEM files, by its key \
              (`{ pin = \"sha256/…\" }`, or a list of pins, so that keys can roll), or not at all (`\"off\"`). `server_name` is the \
              name that it is asked for and that its certificate has to be for: by default the one in its address, \
              `\"from-client\"` the one that the client asked for. `cert` is a certificate for servers that ask for one, as \
              in a listener's `cert`. `crl` are lists of revoked certificates, as in `client_crl`.",
        example: "{ verify = \"system\", server_name = \"shop.internal\", cert = \"client.pem\" }",
        danger: "`verify = \"off\"` encrypts for whoever answers: anyone on the path can. It is warned of at every start.",
        elsewhere: &["ssl", "proxy_ssl", "reencrypt", "upstream_tls", "ssl_verify"],
        store: |pool, value| backend_tls::read(value).map(|it| pool.tls = it),
    }
}
