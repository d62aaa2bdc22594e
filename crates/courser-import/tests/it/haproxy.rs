//! HAProxy's files.

use courser_import::haproxy;

use crate::memory::{Memory, body, ok, unsupported};

const PEM: &str = "-----BEGIN PRIVATE KEY-----";

#[test]
fn a_front_end_in_mode_tcp_with_its_backend_is_taken_over() {
    let text = r#"
global
    user haproxy
    maxconn 5000
    crt-base /etc/ssl/private
    ssl-default-bind-ciphersuites TLS_AES_256_GCM_SHA384
    ssl-default-bind-options ssl-min-ver TLSv1.3

defaults
    mode tcp
    timeout connect 5000
    timeout client 50s
    timeout server 1m

frontend secure
    bind :443,[::1]:444 ssl crt site.pem alpn h2,http/1.1 # both
    default_backend app

backend app
    balance leastconn
    timeout queue 2s
    default-server maxconn 10
    server a 10.0.0.1:80 weight 3 check inter 2s
    server b 10.0.0.2:80 backup
    server off 10.0.0.3:80 disabled
"#;
    let files = Memory::of([("/etc/ssl/private/site.pem", PEM)]);
    let import = ok(haproxy(text, &files));
    let expected = r#"user = "haproxy"
max_connections = 5000

[pool."app"]
servers = [{ address = "10.0.0.1:80", weight = 3, max_connections = 10 }, { address = "10.0.0.2:80", max_connections = 10, backup = true }]
balance = "least"
queue_timeout = "2s"

[[listener]]
listen = ["0.0.0.0:443", "[::1]:444"]
cert = ["/etc/ssl/private/site.pem"]
alpn = ["h2", "http/1.1"]
connect_timeout = "5s"
idle_timeout = "60000ms"
pool = "app"
versions = ["1.3"]
suites = ["TLS_AES_256_GCM_SHA384"]
"#;
    assert_eq!(body(&import), expected);
    assert!(!import.is_incomplete(), "{:?}", import.remarks);
}

#[test]
fn names_of_tls_choose_backends() {
    let text = "
frontend f
    mode tcp
    bind :443 ssl crt a.pem strict-sni
    acl is_b ssl_fc_sni -i B.example
    use_backend b if is_b
    use_backend c if { ssl_fc_sni c.example d.example }
    default_backend a
backend a
    server s 127.0.0.1:1
backend b
    server s unix@/run/b.sock send-proxy-v2
backend c
    server s1 127.0.0.1:3
    server s2 127.0.0.1:4
";
    let import = ok(haproxy(text, &Memory::of([("a.pem", PEM)])));
    let expected = r#"[pool."c"]
servers = ["127.0.0.1:3", "127.0.0.1:4"]
balance = "round-robin"

[[listener]]
listen = ["0.0.0.0:443"]
cert = ["a.pem"]
unknown_name = "refuse"
backend = ["127.0.0.1:1"]

[[listener.host]]
names = ["b.example"]
send_proxy = "v2-addresses"
backend = ["unix:/run/b.sock"]

[[listener.host]]
names = ["c.example", "d.example"]
pool = "c"
"#;
    assert_eq!(body(&import), expected);
}

#[test]
fn certificates_are_found_where_haproxy_finds_them() {
    let files = Memory::of([
        ("apart.crt", "-----BEGIN CERTIFICATE-----"),
        ("apart.crt.key", PEM),
        ("both.pem.ecdsa", PEM),
        ("both.pem.rsa", PEM),
        ("/d/x.pem", PEM),
        ("/d/x.pem.ocsp", ""),
    ]);
    let text = "listen l\n mode tcp\n bind :1 ssl crt apart.crt crt both.pem crt /d\n server s 127.0.0.1:2\n";
    let import = ok(haproxy(text, &files));
    let expected = r#"cert = [{ chain = "apart.crt", key = "apart.crt.key" }, "both.pem.ecdsa", "both.pem.rsa", "/d/x.pem"]"#;
    assert!(body(&import).contains(expected), "{}", import.toml);
}

#[test]
fn what_decides_who_is_served_is_taken_over_or_nothing_is() {
    let with = |bind: &str, more: &str, server: &str| {
        let text = format!(
            "listen l\n mode tcp\n bind :1 ssl crt a.pem {bind}\n {more}\n server s 127.0.0.1:2 {server}\n"
        );
        ok(haproxy(&text, &Memory::of([("a.pem", PEM)])))
    };
    let verified = with("verify required ca-file ca.pem", "", "");
    assert!(
        body(&verified).contains("client_auth = \"required\"\nclient_ca = [\"ca.pem\"]"),
        "{}",
        verified.toml
    );
    let impossible = [
        ("verify required", "", ""),
        ("crt-list list.txt", "", ""),
        ("some-new-word", "", ""),
        ("", "tcp-request connection reject if { src 10.0.0.0/8 }", ""),
        ("", "use_backend b if { src 10.0.0.0/8 }", ""),
        ("", "", "ssl verify none"),
    ];
    for (bind, more, server) in impossible {
        let import = with(bind, more, server);
        assert!(!unsupported(&import).is_empty(), "{bind}{more}{server}");
        assert!(!body(&import).contains("cert ="), "{bind}{more}{server}: {}", import.toml);
    }
}

#[test]
fn a_proxy_header_is_taken_from_whom_haproxy_takes_one() {
    let of = |address: &str| {
        let text = format!(
            "listen l\n mode tcp\n bind {address} accept-proxy ssl crt a.pem\n server s 127.0.0.1:2\n"
        );
        ok(haproxy(&text, &Memory::of([("a.pem", PEM)])))
    };
    let anyone = of(":1");
    assert!(
        body(&anyone).contains("proxy_protocol = { from = [\"0.0.0.0/0\", \"::/0\"] }"),
        "{}",
        anyone.toml
    );
    assert!(anyone.remarks.iter().any(|remark| remark.why.contains("any client may claim any address")));
    let socket = of("unix@/run/l.sock");
    assert!(body(&socket).contains("proxy_protocol = { from = [\"unix\"] }"), "{}", socket.toml);
}

#[test]
fn http_is_left_to_haproxy_and_plain_addresses_too() {
    let text = "defaults\n mode http\nfrontend f\n bind :80\n bind :443 ssl crt a.pem\n default_backend b\nbackend b\n server s 127.0.0.1:1\n";
    let import = ok(haproxy(text, &Memory::of([("a.pem", PEM)])));
    assert_eq!(unsupported(&import).len(), 2, "{:?}", unsupported(&import));
    assert!(
        unsupported(&import).iter().any(|remark| remark.contains("accept-proxy")),
        "{:?}",
        unsupported(&import)
    );
}

#[test]
fn text_that_haproxy_refuses_is_refused_with_its_line() {
    for (text, line) in [("bind :1", 1), ("global\n log \"stdout", 2)] {
        assert_eq!(haproxy(text, &Memory::default()).unwrap_err().line, line, "{text}");
    }
}
