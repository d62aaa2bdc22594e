//! Who goes where, as real clients see it.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    path::PathBuf,
};

use courser_testkit::{Courser, Folder, KeyType, Leaf, OriginServer, Process, TestCa};

use super::{captured, nginx, read_all, serve};
use crate::stage::{assert_closed, only_line};
use crate::support::{Said, client, line, openssl};

/// Two servers, one with an RSA and one with an ECDSA certificate, and a relay in front of them.
struct Relay {
    courser: Courser,
    _servers: Process,
    _folder: Folder,
    visits: std::cell::Cell<usize>,
}

impl Relay {
    /// `rules` decides between the pools `rsa` and `ecdsa`.
    fn open(rules: &str) -> Option<Self> {
        let (folder, ca) = (Folder::new(), TestCa::new());
        let certificate = |key, name: &str| ca.localhost(key, &folder, name);
        let (rsa, ecdsa) = (certificate(KeyType::Rsa2048, "rsa"), certificate(KeyType::EcdsaP256, "ecdsa"));
        let (servers, addresses) = nginx(&folder, &[(&rsa, "by rsa"), (&ecdsa, "by ecdsa")])?;
        let toml = format!(
            "[pool.rsa]\nservers = '{}'\n[pool.ecdsa]\nservers = '{}'\n[[listener]]\nLISTEN\nroute = [{rules}]\n",
            addresses[0], addresses[1]
        );
        Some(Self { courser: serve(&folder, &toml), _servers: servers, _folder: folder, visits: 0.into() })
    }

    /// What openssl with these flags is served by.
    #[track_caller]
    fn serves(&self, flags: &str, by: &str) {
        let Some(said) = openssl(self.courser.address(), flags) else { return };
        assert!(said.text.contains(&format!("by {by}")), "{flags}: not by {by}:\n{}", said.text);
        self.visits.set(self.visits.get() + 1);
        let line = line(&self.courser, self.visits.get());
        assert_eq!(
            (line["tls_mode"].as_str(), line["retries"].as_u64()),
            (Some("passthrough"), Some(0)),
            "{line}"
        );
    }
}

#[test]
fn clients_that_can_use_rsa_alone_go_to_rsa_and_the_others_to_ecdsa() {
    let rules = "{ when = { key = 'rsa-only' }, relay = 'rsa' }, { relay = 'ecdsa' }";
    let Some(relay) = Relay::open(rules) else { return };
    for flags in [
        "-tls1_3 -sigalgs rsa_pss_rsae_sha256",
        "-tls1_2 -sigalgs RSA+SHA256:RSA-PSS+SHA256",
        "-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256",
        "-tls1_2 -cipher AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
        // None of the curves that certificates have.
        "-tls1_2 -curves X25519",
        "-tls1_2 -curves X25519:P-521",
    ] {
        relay.serves(flags, "rsa");
    }
    for flags in [
        "",
        "-tls1_2",
        "-tls1_3",
        "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256",
        "-tls1_2 -curves P-256",
        // There the scheme names the curve, and groups are for the key exchange alone.
        "-tls1_3 -curves X25519",
    ] {
        relay.serves(flags, "ecdsa");
    }
}

#[test]
fn the_curve_that_decides_is_that_of_the_host_that_the_name_would_get() {
    let (folder, ca, origin) = (Folder::new(), TestCa::new(), OriginServer::http());
    let certificate = |key, name: &str| {
        ca.issue(&Leaf::new(key).names([format!("{name}.example")])).write_combined(&folder, name)
    };
    let (p256, p384) = (certificate(KeyType::EcdsaP256, "p256"), certificate(KeyType::EcdsaP384, "p384"));
    let Some((_nginx, addresses)) = nginx(&folder, &[(&certificate(KeyType::Rsa2048, "rsa"), "by rsa")])
    else {
        return;
    };
    let toml = format!(
        "[pool.rsa]\nservers = '{}'\n[[listener]]\nLISTEN\ncert = '{}'\nbackend = '{}'\n\
         route = [{{ when = {{ key = 'rsa-only' }}, relay = 'rsa' }}]\n[[listener.host]]\nname = 'p384'\ncert = '{}'\n",
        addresses[0],
        p256.display(),
        origin.backend(),
        p384.display()
    );
    let courser = serve(&folder, &toml);
    let cases = [
        ("p256.example", "-tls1_2 -curves P-256", "terminate"),
        ("p384.example", "-tls1_2 -curves P-256", "passthrough"),
        ("p384.example", "-tls1_2 -curves P-384", "terminate"),
        ("p256.example", "-tls1_2 -curves P-384", "passthrough"),
        ("p384.example", "-tls1_3 -sigalgs ECDSA+SHA256:rsa_pss_rsae_sha256", "passthrough"),
        ("p384.example", "-tls1_3 -sigalgs ECDSA+SHA384", "terminate"),
    ];
    for (number, (name, flags, mode)) in cases.iter().enumerate() {
        let Some(_said) = openssl(courser.address(), &format!("-servername {name} {flags}")) else { return };
        let line = line(&courser, number + 1);
        assert_eq!(line["tls_mode"], *mode, "{line}");
    }
}

#[test]
fn server_names_are_exact_wildcards_or_none() {
    let rules =
        "{ when = { server_name = ['a.example', '*.b.example', ''] }, relay = 'rsa' }, { relay = 'ecdsa' }";
    let Some(relay) = Relay::open(rules) else { return };
    for name in ["a.example", "A.EXAMPLE", "a.example.", "c.b.example"] {
        relay.serves(&format!("-servername {name}"), "rsa");
    }
    relay.serves("-noservername", "rsa");
    // An address is no name, though some clients send one.
    relay.serves("-servername 192.0.2.1", "rsa");
    for name in ["b.example", "d.c.b.example", "xa.example", "a.example.org"] {
        relay.serves(&format!("-servername {name}"), "ecdsa");
    }
}

#[test]
fn protocols_versions_and_sessions_decide_and_the_first_rule_that_fits_wins() {
    let folder = Folder::new();
    let rules = "{ when = { alpn = ['x', 'y'], version = '1.2' }, relay = 'rsa' }, \
                 { when = { alpn = 'y' }, relay = 'ecdsa' }, { when = { version = '1.2', session = 'offered' }, relay = 'rsa' }, \
                 { when = { version = '1.2' }, relay = 'ecdsa' }, { when = { session = 'none' }, relay = 'ecdsa' }, \
                 { relay = 'rsa' }";
    let Some(relay) = Relay::open(rules) else { return };
    relay.serves("-tls1_2 -alpn x,http/1.1", "rsa");
    relay.serves("-alpn http/1.1,y", "ecdsa");
    let session = |name: &str| folder.join(name).display().to_string();
    for (version, tickets) in [("-tls1_2", ""), ("-tls1_2", "-no_ticket"), ("-tls1_3", "")] {
        let file = session(&format!("{version}{tickets}"));
        relay.serves(&format!("{version} {tickets} -sess_out {file}"), "ecdsa");
        relay.serves(&format!("{version} {tickets} -sess_in {file}"), "rsa");
    }
}

#[test]
fn a_rule_refuses_with_an_alert_that_says_so() {
    let rules = "{ when = { server_name = 'gone.example' }, refuse = true }, { relay = 'rsa' }";
    let Some(relay) = Relay::open(rules) else { return };
    let Some(said) = openssl(relay.courser.address(), "-servername gone.example") else { return };
    said.has("tlsv1 alert access denied");
    assert_closed(&only_line(&relay.courser), "refused_by_rule", "client");
}

#[test]
fn a_rule_serves_a_host_by_its_name_whatever_the_client_asks_for() {
    let (folder, ca, origin) = (Folder::new(), TestCa::new(), OriginServer::http());
    let certificate = |key, name: &str| ca.localhost(key, &folder, name);
    let (modern, old): (PathBuf, PathBuf) =
        (certificate(KeyType::EcdsaP256, "modern"), certificate(KeyType::Rsa2048, "old"));
    let toml = format!(
        "[[listener]]\nLISTEN\ncert = '{}'\nbackend = '{}'\n\
         route = [{{ when = {{ version = '1.2' }}, terminate = 'old' }}, {{ terminate = 'default' }}]\n\
         [[listener.host]]\nname = 'old'\ncert = '{}'\n",
        modern.display(),
        origin.backend(),
        old.display()
    );
    let courser = serve(&folder, &toml);
    for (number, (flags, host, key)) in
        [("-tls1_2", "old", "RSA2048"), ("", "default", "EC256")].into_iter().enumerate()
    {
        let Some(said) = openssl(courser.address(), flags) else { return };
        said.has_page();
        let line = line(&courser, number + 1);
        assert_eq!((line["host"].as_str(), line["key"].as_str()), (Some(host), Some(key)), "{line}");
        assert_eq!(line["tls_mode"], "terminate");
    }
}

#[test]
fn grease_is_no_offer_and_the_log_has_what_a_browser_offers() {
    let folder = Folder::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let toml = format!(
        "[pool.all]\nservers = '{}'\n[[listener]]\nLISTEN\nroute = [{{ when = {{ version = '1.3', alpn = 'h2', session = 'none' }}, \
         relay = 'all' }}, {{ refuse = true }}]\n",
        listener.local_addr().unwrap()
    );
    let courser = serve(&folder, &toml);
    let mut socket = TcpStream::connect(courser.address()).unwrap();
    socket.write_all(&captured("chrome")).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let backend = listener.accept().unwrap().0;
    assert_eq!(read_all(&backend).unwrap(), captured("chrome"));
    drop(backend);
    assert_eq!(read_all(&socket).unwrap(), b"");
    let line = only_line(&courser);
    assert_eq!(line["alpn_offered"], "h2,http/1.1");
    assert_eq!(line["versions_offered"], "TLSv1.3,TLSv1.2");
    assert_eq!(
        (line["ech"].as_str(), line["sni"].as_str()),
        (Some("offered"), Some("www.example.org")),
        "{line}"
    );
    assert!(
        line["alpn"].is_null() && line["handshake_us"].is_null() && line["connect_us"].is_u64(),
        "{line}"
    );
}

#[test]
fn check_says_nothing_of_certificates_where_all_is_relayed() {
    let folder = Folder::new();
    let text = "[pool.all]\nservers = '127.0.0.1:1'\n[[listener]]\nroute = { relay = 'all' }\n";
    let file = folder.write("courser.toml", text);
    let done = crate::stage::run_courser(&["check", "--config", file.to_str().unwrap()]);
    assert!(done.status.success() && !done.stderr.contains("certificate"), "{}", done.stderr);
    let relay = serve(&folder, &text.replace("route", "LISTEN\nroute"));
    relay.wait_stderr_line("every client: relay to pool all");
    assert!(relay.stderr().iter().all(|line| !line.contains("certificate")), "{:?}", relay.stderr());
}

#[test]
fn the_pools_of_rules_are_those_of_hosts() {
    // One pool, one limit: a relay and a host share it.
    let (folder, ca, origin) = (Folder::new(), TestCa::new(), OriginServer::http());
    let certificate = ca.localhost(KeyType::EcdsaP256, &folder, "site");
    let toml = format!(
        "workers = 1\n[pool.shop]\nqueue_timeout = '100ms'\nservers = [{{ address = '{}', max_connections = 1 }}]\n[[listener]]\n\
         LISTEN\ncert = '{}'\npool = 'shop'\nroute = [{{ when = {{ server_name = 'relayed.example' }}, relay = 'shop' }}]\n",
        origin.backend(),
        certificate.display()
    );
    let courser = serve(&folder, &toml);
    let address = courser.address().to_string();
    let mut held = TcpStream::connect(courser.address()).unwrap();
    let hello = courser_testkit::client::Client::new(
        courser.address(),
        courser_testkit::client::Version::Tls13,
        KeyType::EcdsaP256,
        courser_testkit::client::Resume::Never,
    );
    let mut bytes = Vec::new();
    hello.for_name("relayed.example").session().write_tls(&mut bytes).unwrap();
    held.write_all(&bytes).unwrap();
    crate::stage::eventually("the relay is connected", || origin.accepted() == 1);
    let Some(_said): Option<Said> =
        client("openssl", &["s_client", "-connect", &address, "-ign_eof"], "GET / HTTP/1.0\r\n\r\n")
    else {
        return;
    };
    assert_closed(&line(&courser, 1), "queue_timeout", "backend");
    drop(held);
}

#[test]
fn of_a_client_with_very_many_protocols_a_few_are_held_and_logged() {
    let folder = Folder::new();
    let courser = serve(&folder, "[[listener]]\nLISTEN\nroute = { refuse = true }\n");
    let offered: Vec<String> = (0..2000).map(|number| format!("p{number}")).collect();
    let Some(_) = openssl(courser.address(), &format!("-alpn {}", offered.join(","))) else { return };
    assert_eq!(only_line(&courser)["alpn_offered"], offered[..32].join(","));
}
