//! Who may enter, and over what: passwords, access rights, TLS.

use std::fs;
use std::net::Ipv4Addr;

use courser_store::{Access, Identity, StoreCount};
use courser_testkit::{Engine, EngineServer, Folder, KeyType, Leaf, TestCa, free_port};

use crate::support::{MINUTE, NAME, TIMEOUT, Watched, worker};

fn with_password(password: &str) -> Access {
    Access { password: Some(password.as_bytes().to_vec().into()), ..Access::default() }
}

async fn works(store: &Watched) {
    store.until_available().await;
    store.put(&NAME, b"value").await;
    assert_eq!(store.store.get(&NAME).await, Ok(Some(b"value".to_vec())));
    store.delete(&NAME).await;
    assert_eq!(store.store.get(&NAME).await, Ok(None));
    assert_eq!(store.count(StoreCount::Errors), 0, "{:?}", store.lines());
}

/// As docs/session-store.md says that it is enough.
const RIGHTS: [&str; 6] = ["on", "~courser:*", "+get", "+set", "+del", "+ping"];

/// Makes a user `edge` with the password `secret`, who may do what the page says and `more`.
fn admit(server: &EngineServer, more: &[&str]) {
    let rule = [&["ACL", "SETUSER", "edge", ">secret"], &RIGHTS[..], more].concat();
    assert_eq!(server.command(&rule), "OK");
}

#[test]
fn a_user_with_no_more_rights_than_the_page_says_is_enough() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        admit(&server, &["resetpass", ">p%w/:@"]);
        assert_eq!(server.command(&["ACL", "SETUSER", "default", "off"]), "OK");
        worker(async {
            let address = server.address();
            works(&Watched::new(&format!("redis://edge:p%25w%2F%3A%40@{address}"))).await;
            works(&Watched::with(&format!("valkey://edge@{address}"), with_password("p%w/:@\n"), TIMEOUT))
                .await;
        });
    }
}

#[test]
fn what_a_database_a_sentinel_and_a_cluster_need_is_what_the_page_says() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        let sentinel = engine.sentinel(&server, 1);
        admit(&server, &["+select", "+role"]);
        let node = engine.start(&["--cluster-enabled", "yes"]);
        admit(&node, &["+cluster|slots"]);
        assert_eq!(node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "OK");
        worker(async {
            let user = "edge:secret";
            works(&Watched::new(&format!("redis://{user}@{}/3", server.address()))).await;
            works(&Watched::new(&format!("redis-sentinel://{user}@{}/main", sentinel.address()))).await;
            let store = Watched::new(&format!("redis-cluster://{user}@{}", node.address()));
            let whole = || node.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
            store.until("the cluster of one is whole", whole).await;
            works(&store).await;
        });
    }
}

#[test]
fn a_wrong_password_a_missing_one_and_missing_rights_are_told() {
    for engine in Engine::installed() {
        let server = engine.start(&["--requirepass", "secret"]);
        let authorised = |arguments: &[&str]| {
            server.command(&[&["-a", "secret", "--no-auth-warning"], arguments].concat())
        };
        let rule = ["ACL", "SETUSER", "edge", ">secret", "on", "~other:*", "-@all", "+get", "+ping"];
        assert_eq!(authorised(&rule), "OK");
        worker(async {
            let address = server.address();
            let store = Watched::new(&format!("redis://{address}"));
            store.until_line("breaker open").await;
            assert!(store.lines()[0].contains("password"), "{:?}", store.lines());
            let store = Watched::new(&format!("redis://edge:hunter2@{address}"));
            store.until_line("breaker open").await;
            assert!(store.lines()[0].contains("user or password is wrong"), "{:?}", store.lines());
            assert!(!store.lines()[0].contains("hunter2"));
            let store = Watched::connected(&format!("redis://edge:secret@{address}")).await;
            store.store.put(&NAME, b"value", MINUTE);
            store.until_line("+get +set +del +ping ~courser:*").await;
            works(&Watched::new(&format!("redis://:secret@{address}"))).await;
        });
    }
}

/// A server with TLS, and its port for that; `None` where it was built without.
fn tls_server(
    engine: &Engine,
    ca: &TestCa,
    leaf: &Leaf,
    arguments: &[&str],
) -> Option<(EngineServer, String)> {
    if !engine.has_tls() {
        return None;
    }
    let folder = Folder::new();
    let pair = ca.issue(leaf).write_pair(&folder, "store");
    let root = ca.write_root(&folder);
    let port = free_port().to_string();
    let [chain, key, root] = [&pair.chain, &pair.key, &root].map(|path| path.display().to_string());
    let tls =
        ["--tls-port", &port, "--tls-cert-file", &chain, "--tls-key-file", &key, "--tls-ca-cert-file", &root];
    let server = engine.start_in(folder, Ipv4Addr::LOCALHOST.into(), &[&tls, arguments].concat());
    Some((server, port))
}

fn trusting(ca: &TestCa) -> Access {
    let folder = Folder::new();
    Access { roots: Some(fs::read(ca.write_root(&folder)).unwrap()), ..Access::default() }
}

#[test]
fn a_store_with_tls_is_verified_by_its_authority_and_its_name() {
    let ca = TestCa::new();
    for engine in Engine::installed() {
        let leaf = Leaf::new(KeyType::EcdsaP256);
        let arguments = ["--tls-auth-clients", "no", "--requirepass", "secret"];
        let Some((_server, port)) = tls_server(&engine, &ca, &leaf, &arguments) else { continue };
        worker(async {
            for host in ["localhost", "127.0.0.1"] {
                let url = format!("rediss://:secret@{host}:{port}");
                works(&Watched::with(&url, trusting(&ca), TIMEOUT)).await;
            }
            let url = format!("rediss://:secret@127.0.0.1:{port}");
            for access in [trusting(&TestCa::new()), Access::default()] {
                let store = Watched::with(&url, access, TIMEOUT);
                store.until_line("breaker open").await;
                assert!(store.lines()[0].contains("invalid peer certificate"), "{:?}", store.lines());
            }
        });
    }
}

#[test]
fn a_store_that_wants_a_certificate_gets_one() {
    let ca = TestCa::new();
    for engine in Engine::installed() {
        let Some((_server, port)) = tls_server(&engine, &ca, &Leaf::new(KeyType::EcdsaP256), &[]) else {
            continue;
        };
        let ours = ca.issue(&Leaf::new(KeyType::EcdsaP256).of_client("edge"));
        let identity = Identity { chain: ours.chain_pem.into_bytes(), key: ours.key_pem.into_bytes().into() };
        worker(async {
            let url = format!("rediss://localhost:{port}");
            works(&Watched::with(&url, Access { identity: Some(identity), ..trusting(&ca) }, TIMEOUT)).await;
            let store = Watched::with(&url, trusting(&ca), TIMEOUT);
            store.until_line("breaker open").await;
            assert!(!store.store.is_available());
        });
    }
}

#[test]
fn a_store_with_another_ones_certificate_is_refused() {
    let ca = TestCa::new();
    for engine in Engine::installed() {
        let leaf = Leaf::new(KeyType::EcdsaP256).names(["other.example"]);
        let Some((_server, port)) = tls_server(&engine, &ca, &leaf, &["--tls-auth-clients", "no"]) else {
            continue;
        };
        worker(async {
            let store = Watched::with(&format!("rediss://localhost:{port}"), trusting(&ca), TIMEOUT);
            store.until_line("breaker open").await;
            assert!(store.lines()[0].contains("not valid for name"), "{:?}", store.lines());
        });
    }
}

#[test]
fn tls_where_there_is_none_and_none_where_there_is_are_told() {
    let ca = TestCa::new();
    for engine in Engine::installed() {
        let leaf = Leaf::new(KeyType::EcdsaP256);
        let Some((server, port)) = tls_server(&engine, &ca, &leaf, &["--tls-auth-clients", "no"]) else {
            continue;
        };
        worker(async {
            for url in [format!("rediss://{}", server.address()), format!("redis://127.0.0.1:{port}")] {
                let store = Watched::new(&url);
                store.until_line("breaker open").await;
                assert!(!store.store.is_available());
            }
        });
    }
}
