//! Sessions by ID through Redis and Valkey: hosts that send each other no message.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::courser::Setup;
use courser_testkit::engine::{Engine, EngineServer, join_cluster};
use courser_testkit::{Courser, Leaf, Signal};

use super::keygen;
use crate::resumption::visitor::Visitor;
use crate::support::{SESSION_ID, Site, line, text};

/// Two hosts with one key and one store.
struct Pair {
    site: Site,
    key: PathBuf,
}

impl Pair {
    fn new() -> Self {
        let site = Site::new();
        let key = keygen(site.folder.path(), "fleet.key");
        Self { site, key }
    }

    /// A patient one: other tests are running.
    fn host(&self, url: &str) -> Setup {
        let setup = self.site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&self.key);
        setup.args(["--session-store", url, "--session-store-timeout", "1s"])
    }

    /// A session of one host is resumed by the other, and the store has seen none of it.
    #[track_caller]
    fn shares(&self, setup: impl Fn() -> Setup, server: &EngineServer) {
        let (one, other) = (setup().start(), setup().start());
        let visitor = Visitor::new(&self.site, SESSION_ID);
        if visitor.come(&one, "").is_none() {
            return;
        }
        // It is written without anybody waiting for it, and the other host connects when it likes.
        self.is_resumed_soon(&visitor, &other);
        let kept = server.command(&["--scan", "--pattern", "courser:*"]);
        assert!(kept.starts_with("courser:"), "{kept:?}");
    }

    /// Comes back until it is resumed; each visit before was a full handshake that kept the session as it was.
    #[track_caller]
    fn is_resumed_soon(&self, visitor: &Visitor, host: &Courser) {
        let resumed = (0..50).any(|_| visitor.comes_back(host).unwrap().text.contains("Reused, "));
        assert!(resumed, "{:?}", host.stdout());
    }
}

#[test]
fn hosts_share_sessions_through_every_engine_there_is() {
    let pair = Pair::new();
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        pair.shares(|| pair.host(&format!("redis://{}/0", server.address())), &server);
    }
}

#[test]
fn hosts_share_sessions_through_a_store_with_a_password_in_a_file() {
    let pair = Pair::new();
    let password = pair.site.folder.write("password", "a secret of the store\n");
    fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
    for engine in Engine::installed() {
        let server = engine.start(&["--requirepass", "a secret of the store"]);
        let url = format!("redis://{}/0", server.address());
        let setup = || pair.host(&url).arg("--session-store-password").arg(&password);
        let (one, other) = (setup().start(), setup().start());
        let visitor = Visitor::new(&pair.site, SESSION_ID);
        if visitor.come(&one, "").is_none() {
            return;
        }
        pair.is_resumed_soon(&visitor, &other);
        for host in [&one, &other] {
            assert!(!host.stderr().join("\n").contains("a secret"), "{:?}", host.stderr());
        }
    }
}

#[test]
fn hosts_share_sessions_through_a_store_with_tls() {
    let pair = Pair::new();
    let folder = &pair.site.folder;
    let issued = pair.site.ca.issue(&Leaf::new(EcdsaP256));
    let (cert, key) =
        (folder.write("store.pem", &issued.chain_pem), folder.write("store.key", &issued.key_pem));
    let root = pair.site.root();
    let ours = pair.site.ca.issue(&Leaf::new(EcdsaP256).of_client("courser"));
    let client = folder.write("client.pem", format!("{}{}", ours.chain_pem, ours.key_pem));
    fs::set_permissions(&client, Permissions::from_mode(0o600)).unwrap();
    for engine in Engine::installed().into_iter().filter(Engine::has_tls) {
        let server = engine.start(&[]);
        let port = courser_testkit::free_port().to_string();
        for (name, value) in [
            ("tls-cert-file", text(&cert)),
            ("tls-key-file", text(&key)),
            ("tls-ca-cert-file", text(&root)),
            // As Redis has it unless told otherwise.
            ("tls-auth-clients", "yes"),
            ("tls-port", port.as_str()),
        ] {
            let set = server.command(&["CONFIG", "SET", name, value]);
            assert!(set.contains("OK") || name != "tls-port", "{name}: {set}");
        }
        let url = format!("rediss://localhost:{port}/0");
        let shown = || pair.host(&url).arg("--session-store-cert").arg(&client);
        pair.shares(|| shown().arg("--session-store-ca").arg(&root), &server);
    }
}

#[test]
fn hosts_share_sessions_through_a_cluster_of_three() {
    let pair = Pair::new();
    for engine in Engine::installed() {
        let nodes: Vec<_> = (0..3).map(|_| engine.start(&["--cluster-enabled", "yes"])).collect();
        join_cluster(&nodes, 0);
        let addresses: Vec<_> = nodes.iter().map(|node| node.address().to_string()).collect();
        let url = format!("redis-cluster://{}", addresses.join(","));
        let (one, other) = (pair.host(&url).start(), pair.host(&url).start());
        let visitor = Visitor::new(&pair.site, SESSION_ID);
        if visitor.come(&one, "").is_none() {
            return;
        }
        pair.is_resumed_soon(&visitor, &other);
    }
}

#[test]
fn a_store_that_hangs_costs_no_client_its_handshake_and_opens_the_breaker() {
    let pair = Pair::new();
    let Some(engine) = Engine::installed().into_iter().next() else { return };
    let server = engine.start(&[]);
    let (url, control) = (format!("redis://{}/0", server.address()), pair.site.folder.join("control.sock"));
    let setup =
        pair.site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&pair.key).arg("--control").arg(&control);
    let host = setup.args(["--session-store", &url, "--session-store-timeout", "50ms"]).start();
    let breaker_opened = || host.stderr().iter().any(|line| line.contains("breaker open"));
    let elsewhere = pair.site.serve(&[EcdsaP256]).start();
    server.signal(Signal::SIGSTOP);
    let mut visits = 0;
    while !breaker_opened() {
        visits += 1;
        assert!(visits < 50, "{:?}", host.stderr());
        // A session that this host has never seen.
        let visitor = Visitor::new(&pair.site, SESSION_ID);
        if visitor.come(&elsewhere, "").is_none() {
            return;
        }
        visitor.is_not_resumed(&host, "");
    }
    server.signal(Signal::SIGCONT);
    host.wait_stderr_line("in use again");
    let told = super::courser(&["fleet", "status", "--json", "--control", text(&control)]);
    let status: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert!(status["handshakes"]["not_resumed"]["store_timeout"].as_u64() >= Some(1), "{status:#}");
    assert_eq!(status["store"]["breaker_open"], false, "{status:#}");
    assert_eq!(line(&host, visits)["close_reason"], "done");
}

#[test]
fn a_url_with_a_mistake_is_told_and_its_password_is_not() {
    let pair = Pair::new();
    for (url, said) in [
        ("redis:/127.0.0.1:6379", "redis://"),
        ("reddis://127.0.0.1:6379", "redis://"),
        ("redis://:swordfish@127.0.0.1:port/0", "port"),
        ("redis://user:swordfish@127.0.0.1:6379/zero", "zero"),
    ] {
        let ended = pair.host(url).launch().finish();
        assert_eq!(ended.status.code(), Some(2), "{url}: {ended:?}");
        assert!(ended.stderr.contains(said), "{url}: {}", ended.stderr);
        assert!(!ended.stderr.contains("swordfish"), "{url}: {}", ended.stderr);
    }
    let setup = pair.site.serve(&[EcdsaP256]).args(["--session-store", "redis://127.0.0.1:6379"]);
    let keyless = setup.launch().finish();
    assert!(keyless.stderr.contains("courser fleet keygen"), "{}", keyless.stderr);
}
