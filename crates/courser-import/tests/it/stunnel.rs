//! stunnel's files.

use courser_import::stunnel;

use crate::memory::{Memory, body, ok, unsupported};

#[test]
fn a_service_is_a_listener_with_stunnels_times() {
    let text = "\u{feff}; a comment\nsetuid = stunnel4\nforeground = yes\n\n[https]\naccept = 443\nconnect = 80\ncert = /etc/stunnel/stunnel.pem\nTIMEOUTclose = 0\n";
    let import = ok(stunnel(text, &Memory::default()));
    let expected = r#"user = "stunnel4"

[[listener]]
name = "https"
listen = ["0.0.0.0:443"]
backend = ["localhost:80"]
cert = ["/etc/stunnel/stunnel.pem"]
handshake_timeout = "300s"
connect_timeout = "10s"
idle_timeout = "43200s"
"#;
    assert_eq!(body(&import), expected);
    assert!(!import.is_incomplete());
}

#[test]
fn settings_before_the_first_service_are_defaults_of_all() {
    let text = "cert = site.pem\nkey = site.key\nsslVersionMin = TLSv1.3\nTIMEOUTidle = 60\n[a]\naccept = ::1:5001\nconnect = /run/a.sock\nprotocol = proxy\n[b]\naccept = 127.0.0.1:5002\nconnect = 10.0.0.1:1\nconnect = 10.0.0.2:1\nTIMEOUTidle = 0\ncurves = X25519:P-256:X448\n";
    let import = ok(stunnel(text, &Memory::default()));
    let expected = r#"[pool."b"]
balance = "round-robin"
servers = ["10.0.0.1:1", "10.0.0.2:1"]

[[listener]]
name = "a"
listen = ["[::1]:5001"]
send_proxy = "v1"
backend = ["unix:/run/a.sock"]
cert = [{ chain = "site.pem", key = "site.key" }]
handshake_timeout = "300s"
connect_timeout = "10s"
idle_timeout = "60s"
versions = ["1.3"]

[[listener]]
name = "b"
listen = ["127.0.0.1:5002"]
pool = "b"
cert = [{ chain = "site.pem", key = "site.key" }]
handshake_timeout = "300s"
connect_timeout = "10s"
idle_timeout = "86400s"
versions = ["1.3"]
groups = ["X25519", "P-256"]
"#;
    assert_eq!(body(&import), expected);
}

#[test]
fn a_service_by_name_is_a_host_of_the_service_that_it_names() {
    let text = "[web]\naccept = 443\nconnect = 80\ncert = web.pem\n[shop]\nsni = web:Shop.example\nconnect = 81\ncert = shop.pem\n[lost]\nsni = nobody:x.example\nconnect = 82\n";
    let import = ok(stunnel(text, &Memory::default()));
    let host = "[[listener.host]]\nname = \"shop\"\nnames = [\"shop.example\"]\nbackend = [\"localhost:81\"]\ncert = [\"shop.pem\"]\n";
    assert!(body(&import).contains(host), "{}", import.toml);
    assert!(unsupported(&import)[0].contains("[lost]"), "{:?}", unsupported(&import));
}

#[test]
fn how_clients_are_verified_is_taken_over_or_nothing_is() {
    let with = |settings: &str| {
        let text = format!("[s]\naccept = 1\nconnect = 2\ncert = c.pem\n{settings}\n");
        ok(stunnel(&text, &Memory::default()))
    };
    let required = "client_auth = \"required\"\nclient_ca = [\"ca.pem\"]";
    for settings in ["verify = 2\nCAfile = ca.pem", "verifyChain = yes\nCAfile = ca.pem"] {
        assert!(body(&with(settings)).contains(required), "{settings}");
    }
    for settings in ["verify = 1\nCAfile = ca.pem", "verifyChain = yes\nrequireCert = no\nCAfile = ca.pem"] {
        assert!(body(&with(settings)).contains("client_auth = \"optional\""), "{settings}");
    }
    let revoked = with("verify = 2\nCAfile = ca.pem\nCRLfile = crl.pem");
    assert!(body(&revoked).contains(&format!("{required}\nclient_crl = [\"crl.pem\"]")), "{}", revoked.toml);
    let impossible = [
        "verify = 2\nCAfile = ca.pem\nCRLpath = /crl",
        "verify = 3\nCAfile = ca.pem",
        "verifyPeer = yes\nCAfile = ca.pem",
        "verify = 2",
        "requireCert = yes",
        "verifyChain = yes\nCAfile = ca.pem\ncheckHost = a.example",
        "client = yes",
        "exec = /bin/sh",
        "protocol = smtp",
        "PSKsecrets = secrets.txt",
        "somethingNew = yes",
    ];
    for settings in impossible {
        let import = with(settings);
        assert!(import.is_incomplete(), "{settings}");
        assert!(!body(&import).contains("[[listener]]"), "{settings}: {}", import.toml);
    }
}

#[test]
fn standby_servers_and_included_files_are_taken_over() {
    let files = Memory::of([(
        "/d/a.conf",
        "[a]\naccept = 1\nconnect = 10.0.0.1:2\nconnect = 10.0.0.2:2\nfailover = prio\ncert = c.pem\n",
    )]);
    let import = ok(stunnel("include = /d\n", &files));
    let pool = "[pool.\"a\"]\nservers = [\"10.0.0.1:2\", { address = \"10.0.0.2:2\", backup = true }]\n";
    assert!(body(&import).contains(pool), "{}", import.toml);
    let endless = Memory::of([("/d/a.conf", "include = /d\n")]);
    assert!(stunnel("include = /d\n", &endless).is_err());
}
