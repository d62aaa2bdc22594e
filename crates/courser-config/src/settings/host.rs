//! Settings that a listener has and each of its hosts may override, and those of a host alone.

use crate::address;
use crate::backend_tls;
use crate::config::{ClientAuth, OnTruncation};
use crate::dns;
use crate::draft::{HostDraft, certificates, name, protocol};
use crate::named::Named;
use crate::proxy_protocol::SendProxy;
use crate::read;
use crate::revocation;
use crate::setting::{DefaultValue, Flag, Item, Kind, REVOCATION_LISTS, TLS_WITH_BACKENDS, settings};
use crate::tls::{Group, Profile, Suite, TlsVersion};

settings! {
    /// `profile` stands before what it decides: settings are applied in this order, whatever that of the file.
    SHARED: HostDraft, WithGeneration;
    "cert" {
        flag: Flag::Takes("cert"),
        kind: Kind::Certificates,
        default: DefaultValue::Derived(
            "self-signed: made at each start, if no certificate is configured \
            anywhere",
        ),
        doc: "Paths of certificates in PEM, in order of preference. An entry is one file with the chain (leaf \
              first) and the private key, or a table that names both, or `{ acme = true }`: certificates for the host's \
              `names`, which courser orders and renews by itself (`[acme]`). With several, the first that the client \
              supports is used: put ECDSA before RSA.",
        example: "[\"site-ecdsa.pem\", { chain = \"site-rsa.crt\", key = \"site-rsa.key\" }]",
        danger: "The file contains a private key: only the program's user should be able to read it.",
        elsewhere: &["certificate", "certificates", "certs", "crt", "pem_file", "ssl_certificate", "key"],
        store: |host, value| certificates(value, host),
    }
    "staple" {
        flag: Flag::Takes("staple"),
        kind: Kind::List(Item::File),
        default: DefaultValue::Derived("none: clients that ask for the status of a certificate get no answer"),
        doc: "Paths of the staples of the certificates in `cert`: the authority's answers about them (OCSP, RFC 6960, DER), \
              one for each, in any order. They are sent along to clients that ask (stapling). One that is outdated, about another \
              certificate, wrongly signed, or that says \"revoked\" is not sent, with a warning. A changed file is taken over \
              as a certificate's; courser fetches none.",
        example: "[\"site-ecdsa.ocsp\", \"site-rsa.ocsp\"]",
        danger: "A certificate that demands a staple (must-staple) is refused by clients as soon as there is none.",
        elsewhere: &["ocsp", "ocsp_file", "ssl_stapling_file", "ssl_stapling", "ocsp_stapling", "stapling"],
        store: |host, value| read::some(value, address::located_file).map(|it| host.staples = it),
    }
    "backend" {
        flag: Flag::Takes("backend"),
        kind: Kind::List(Item::Address),
        default: DefaultValue::Derived("none: a listener needs one, its own or one in each host"),
        doc: "Addresses of the servers that receive the plaintext. An address is `10.0.0.3:80`, \
              `[2001:db8::3]:80`, `app.internal:8080`, `unix:/run/app.sock` or `abstract:app`. With several, \
              each connection goes to the one that has the fewest; a `pool` can distribute them otherwise.",
        example: "[\"10.0.0.3:80\", \"10.0.0.4:80\"]",
        danger: "Without `backend_tls`, traffic to it is not encrypted: use the same machine or a network you trust.",
        elsewhere: &["backends", "upstream", "server", "proxy_pass", "target", "connect"],
        store: |host, value| {
            host.backends = read::distinct(value, address::backend)?;
            host.pool = None;
            Ok(())
        },
    }
    "pool" {
        flag: Flag::None,
        kind: Kind::Text,
        default: DefaultValue::Derived("none: the servers of `backend`"),
        doc: "Name of the pool of servers that receive the plaintext, instead of `backend`. Hosts that name the same \
              pool share its servers' limits and health.",
        example: "\"shop\"",
        elsewhere: &["upstream", "default_backend", "use_backend"],
        store: |host, value| {
            host.pool = Some(read::located(value, name)?);
            host.backends.clear();
            host.backend_tls = None;
            Ok(())
        },
    }
    "backend_tls" {
        flag: Flag::None,
        kind: Kind::Table(TLS_WITH_BACKENDS),
        default: DefaultValue::Toml("false"),
        doc: "TLS with the servers of `backend`. As `tls` of a pool.",
        example: "{ verify = [\"internal-ca.pem\"], server_name = \"app.internal\" }",
        danger: "`verify = \"off\"` encrypts for whoever answers.",
        elsewhere: &["proxy_ssl", "reencrypt", "upstream_tls", "target_tls"],
        store: |host, value| backend_tls::read(value).map(|it| host.backend_tls = it),
    }
    "send_proxy" {
        flag: Flag::Takes("send-proxy"),
        kind: Kind::Choice(|| SendProxy::ALL.iter().map(|choice| choice.name()).collect()),
        default: DefaultValue::Toml("\"off\""),
        doc: "PROXY protocol header to send to the backend. It carries the client's address and, with `v2`, \
              what TLS negotiated; with `v2-client-cert` also the client's certificate (field 0x28, DER). `v2-addresses` has \
              no fields, for receivers that expect none.",
        example: "\"v2\"",
        danger: "A backend that does not expect the header takes it for the start of the request; one that does \
                 must accept connections from courser alone, or clients can claim any address.",
        elsewhere: &["send_proxy_v2", "write_proxy"],
        store: |host, value| read::named(value, "PROXY protocol version").map(|it| host.send_proxy = it),
    }
    "profile" {
        flag: Flag::Takes("profile"),
        kind: Kind::Choice(|| Profile::ALL.iter().map(|choice| choice.name()).collect()),
        default: DefaultValue::Toml("\"intermediate\""),
        doc: "Preset of versions, suites and groups, after version 6.0 of Mozilla's Server Side TLS guideline. \
              `modern` is TLS 1.3 alone, `intermediate` adds TLS 1.2 with forward secrecy and AEAD. In a host \
              it also discards `versions`, `suites` and `groups` of the listener.",
        example: "\"modern\"",
        danger: "`modern` excludes clients from before 2018, and many programs that are not browsers.",
        elsewhere: &["security", "preset"],
        store: |host, value| {
            host.profile = read::named(value, "profile")?;
            (host.versions, host.suites, host.groups) = (None, None, None);
            Ok(())
        },
    }
    "versions" {
        flag: Flag::Takes("tls-versions"),
        kind: Kind::List(Item::Choice(|| TlsVersion::ALL.iter().map(|version| version.name()).collect())),
        default: DefaultValue::Derived("those of the profile"),
        doc: "TLS versions to enable. Their order has no effect.",
        example: "[\"1.3\"]",
        elsewhere: &["protocols", "ssl_protocols", "tls_versions", "min_version", "tls_protos"],
        store: |host, value| {
            read::located(value, |v| read::distinct(v, |item| read::named(item, "TLS version")))
                .map(|it| host.versions = Some(it))
        },
    }
    "suites" {
        flag: Flag::Takes("suites"),
        kind: Kind::List(Item::Choice(|| Suite::ALL.iter().map(|suite| suite.name()).collect())),
        default: DefaultValue::Derived("those of the profile that fit the versions"),
        doc: "Cipher suites in order of preference, by IANA or OpenSSL name. Each enabled version needs at \
              least one.",
        example: "[\"TLS_AES_128_GCM_SHA256\", \"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\"]",
        danger: "A certificate whose key type (ECDSA, RSA) has no TLS 1.2 suite here serves TLS 1.3 alone.",
        elsewhere: &["ciphers", "ciphersuites", "cipher_suites", "ssl_ciphers"],
        store: |host, value| {
            read::located(value, |v| read::distinct(v, |item| read::named(item, "suite")))
                .map(|it| host.suites = Some(it))
        },
    }
    "groups" {
        flag: Flag::Takes("groups"),
        kind: Kind::List(Item::Choice(|| Group::ALL.iter().map(|group| group.name()).collect())),
        default: DefaultValue::Derived("those of the profile"),
        doc: "Key exchange groups in order of preference. `P-256` may also be written `secp256r1` or \
              `prime256v1`, `P-384` also `secp384r1`.",
        example: "[\"X25519MLKEM768\", \"X25519\"]",
        danger: "Without `X25519MLKEM768`, traffic recorded today can be decrypted once there is a quantum \
                 computer.",
        elsewhere: &["curves", "ecdhe", "ssl_ecdh_curve", "supported_groups"],
        store: |host, value| {
            read::located(value, |v| read::distinct(v, |item| read::named(item, "group")))
                .map(|it| host.groups = Some(it))
        },
    }
    "alpn" {
        flag: Flag::Takes("alpn"),
        kind: Kind::List(Item::Text),
        default: DefaultValue::Toml("[]"),
        doc: "Application protocols (ALPN, RFC 7301) in order of preference. Empty: ALPN is not negotiated, \
              and both sides use the protocol of the port.",
        example: "[\"h2\", \"http/1.1\"]",
        danger: "The backend must speak each of them without TLS: with `h2` here and HTTP/1.1 alone \
                 there, browsers fail.",
        elsewhere: &["protocol", "next_protocols"],
        store: |host, value| read::distinct_or_none(value, protocol).map(|it| host.alpn = it),
    }
    "client_auth" {
        flag: Flag::Takes("client-auth"),
        kind: Kind::Choice(|| ClientAuth::ALL.iter().map(|choice| choice.name()).collect()),
        default: DefaultValue::Derived("`none`"),
        doc: "Request a certificate from clients. With `required`, the handshake fails unless the client has a \
              valid one; with `optional`, a client that sends none is served, and `send_proxy = \"v2\"` \
              reports to the backend which it was. Both need `client_ca`.",
        example: "\"required\"",
        danger: "The server name in TLS decides, not the `Host` of HTTP inside it: a backend that serves hosts \
                 with different rules must compare the two.",
        elsewhere: &["verify_client", "ssl_verify_client", "verify", "mtls", "client_verify"],
        store: |host, value| {
            read::located(value, |value| read::named(value, "client_auth"))
                .map(|it| host.client_auth = Some(it))
        },
    }
    "client_ca" {
        flag: Flag::Takes("client-ca"),
        kind: Kind::List(Item::File),
        default: DefaultValue::Derived("none: needed where `client_auth` is `optional` or `required`"),
        doc: "Paths of PEM files with the authorities that issue client certificates. A file may contain \
              several. A client's chain must end at one of them.",
        example: "[\"clients-ca.pem\"]",
        danger: "Every client certificate of such an authority is accepted: name one that issues to your clients \
                 alone. After a change of the authorities, earlier sessions cannot be resumed.",
        elsewhere: &["ssl_client_certificate", "ca_file", "cafile", "client_cas", "trusted_ca"],
        store: |host, value| read::some(value, address::located_file).map(|it| host.client_ca = it),
    }
    "client_crl" {
        flag: Flag::None,
        kind: Kind::Table(REVOCATION_LISTS),
        default: DefaultValue::Derived("none: only the dates of certificates are looked at"),
        doc: "Paths of lists of revoked certificates (CRL, RFC 5280, section 5), PEM or DER, or a table with them as `files`. \
              A client whose certificate is listed neither connects nor resumes a session. `depth = \"leaf\"` looks up \
              the client's own certificate alone, not those above it. `unknown = \"allow\"` accepts a certificate \
              that no list covers; `expired = \"allow\"` one whose list is overdue.",
        example: "[\"clients.crl\"]",
        danger: "By default each authority of a chain needs a current list: renew the files before they expire. A connection \
                 that is open when its certificate is revoked stays open.",
        elsewhere: &["crl", "crl_file", "ssl_crl", "crlfile"],
        store: |host, value| {
            read::located(value, revocation::read).map(|it| host.client_crl = Some(it))
        },
    }
    "connect_timeout" {
        flag: Flag::Takes("connect-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"5s\""),
        doc: "Maximum time to connect to a backend, TLS with it included.",
        example: "\"1s\"",
        elsewhere: &["timeout_connect", "proxy_connect_timeout", "backend_timeout"],
        store: |host, value| read::duration(value, "1d").map(|it| host.connect_timeout = it),
    }
    "idle_timeout" {
        flag: Flag::Takes("idle-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"5m\""),
        doc: "Maximum time without a byte in either direction. After it the connection is closed.",
        example: "\"1h\"",
        danger: "Protocols that are quiet for longer, such as WebSocket without pings, need \
                 more.",
        elsewhere: &["timeout", "keepalive_timeout", "proxy_timeout", "timeout_client", "timeout_server"],
        store: |host, value| read::duration(value, "365d").map(|it| host.idle_timeout = it),
    }
    "client_fin_timeout" {
        flag: Flag::Takes("client-fin-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"30s\""),
        doc: "Maximum time for the backend's answer after the client has closed its side. Every byte that is \
              delivered restarts it, so that a long download is not cut.",
        example: "\"5m\"",
        elsewhere: &["timeout_client_fin", "half_close_timeout"],
        store: |host, value| read::duration(value, "365d").map(|it| host.client_fin_timeout = it),
    }
    "backend_fin_timeout" {
        flag: Flag::Takes("backend-fin-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"30s\""),
        doc: "Maximum time for the client to take the remaining bytes and close its side, after the backend \
              has closed. Every byte that is delivered restarts it.",
        example: "\"5m\"",
        elsewhere: &["timeout_server_fin"],
        store: |host, value| read::duration(value, "365d").map(|it| host.backend_fin_timeout = it),
    }
    "max_connection_age" {
        flag: Flag::Takes("max-connection-age"),
        kind: Kind::Duration,
        default: DefaultValue::Derived("none: a connection may stay as long as bytes move"),
        doc: "Maximum age of a connection. After it the connection is closed, whatever it is in the middle of.",
        example: "\"24h\"",
        danger: "A request under way is cut short.",
        elsewhere: &["max_connection_duration", "keepalive_time"],
        store: |host, value| read::duration(value, "365d").map(|it| host.max_connection_age = Some(it)),
    }
    "tcp_keepalive" {
        flag: Flag::Takes("tcp-keepalive"),
        kind: Kind::Duration,
        default: DefaultValue::Toml("\"1m\""),
        doc: "Idle time after which the kernel probes whether the peer is still there (tcp(7), TCP_KEEPIDLE). \
              It applies to connections of clients and to backends. For clients the value of the listener \
              holds, also where a host has its own.",
        example: "\"20s\"",
        elsewhere: &["so_keepalive", "clitcpka", "srvtcpka", "keepalive"],
        store: |host, value| read::duration(value, "9h").map(|it| host.tcp_keepalive = it),
    }
    "tcp_user_timeout" {
        flag: Flag::Takes("tcp-user-timeout"),
        kind: Kind::Duration,
        default: DefaultValue::Derived("twice `idle_timeout`, at most a day"),
        doc: "Maximum time that bytes may stay unacknowledged before the kernel closes a connection (tcp(7), \
              TCP_USER_TIMEOUT). For clients the value of the listener holds, also where a host has its own.",
        example: "\"30s\"",
        danger: "A peer that takes no bytes for this long (a paused download) is cut off as well.",
        elsewhere: &["tcp_ut", "tcp_usertimeout"],
        store: |host, value| read::duration(value, "24d").map(|it| host.tcp_user_timeout = Some(it)),
    }
    "on_truncation" {
        flag: Flag::Takes("on-truncation"),
        kind: Kind::Choice(|| OnTruncation::ALL.iter().map(|choice| choice.name()).collect()),
        default: DefaultValue::Toml("\"fin\""),
        doc: "Action towards the backend when the client's FIN comes without close_notify. Many clients omit \
              close_notify, so `fin` treats it as an ordinary end; `reset` prevents a truncated request from \
              being taken for a whole one (RFC 8446, section 6.1).",
        example: "\"reset\"",
        danger: "With `fin`, an attacker on the path can truncate a message whose protocol does not carry its \
                 length.",
        elsewhere: &["truncation"],
        store: |host, value| read::named(value, "value").map(|it| host.on_truncation = it),
    }
}

settings! {
    HOST_ONLY: HostDraft, WithGeneration;
    "name" {
        flag: Flag::None,
        kind: Kind::Text,
        default: DefaultValue::Derived("the first of `names`"),
        doc: "Name of the host in logs and metrics. It must be unique in its listener, and the same on all \
              hosts of a fleet: sessions are bound to it.",
        example: "\"a\"",
        danger: "After a change of the name, sessions of the old name cannot be resumed.",
        elsewhere: &["id"],
        store: |host, value| read::located(value, name).map(|it| host.name = Some(it)),
    }
    "names" {
        flag: Flag::None,
        kind: Kind::List(Item::Text),
        default: DefaultValue::Derived("the DNS names of the certificates in its own `cert`"),
        doc: "Server names of this host. `*.a.example` stands for every name with one label before \
              `.a.example`; an exact name takes precedence over a wildcard.",
        example: "[\"a.example\", \"*.a.example\"]",
        elsewhere: &["server_name", "server_names", "domains", "hosts", "sni"],
        store: |host, value| {
            read::some(value, |item| read::located(item, dns::server_name)).map(|it| host.names = it)
        },
    }
}
