//! A primary that sentinels name, and another one after it is gone.

use courser_testkit::Engine;

use crate::support::{KEY, MINUTE, NAME, Watched, worker};

#[test]
fn after_a_failover_the_new_primary_is_used() {
    for engine in Engine::installed() {
        let mut primary = engine.start(&[]);
        let port = primary.address().port().to_string();
        let replica = engine.start(&["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"]);
        let sentinels = [engine.sentinel(&primary, 1), engine.sentinel(&primary, 1)];
        let hosts = sentinels.each_ref().map(|sentinel| sentinel.address().to_string()).join(",");
        worker(async {
            let store = Watched::connected(&format!("redis-sentinel://{hosts}/main/1")).await;
            store.put(&NAME, b"value").await;
            let value = || replica.command(&["-n", "1", "GET", KEY]);
            store.until("the replica has it too", || value() == "value").await;

            primary.kill();
            store.until("the replica is the primary", || replica.has_role("master")).await;
            store.until_available().await;
            assert_eq!(store.store.get(&NAME).await, Ok(Some(b"value".to_vec())));
            store.put(&NAME, b"newer").await;
            assert_eq!(value(), "newer");
        });
    }
}

#[test]
fn a_primary_that_was_stopped_and_came_back_as_a_replica_is_left() {
    for engine in Engine::installed() {
        let primary = engine.start(&[]);
        let port = primary.address().port().to_string();
        let replica = engine.start(&["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"]);
        let sentinel = engine.sentinel(&primary, 1);
        worker(async {
            let store = Watched::connected(&format!("redis-sentinel://{}/main", sentinel.address())).await;
            store.put(&NAME, b"value").await;
            store.until("the replica follows", || replica.command(&["DBSIZE"]) == "1").await;
            // Without a fault that the store could notice.
            sentinel.command(&["SENTINEL", "FAILOVER", "main"]);
            store.until("the roles are exchanged", || primary.has_role("slave")).await;
            let written = || {
                store.store.put(&NAME, b"newer", MINUTE);
                replica.command(&["GET", KEY]) == "newer"
            };
            store.until("the new primary is written to", written).await;
        });
    }
}

#[test]
fn a_name_that_no_sentinel_knows_is_told() {
    for engine in Engine::installed() {
        let primary = engine.start(&[]);
        let sentinel = engine.sentinel(&primary, 1);
        worker(async {
            let store = Watched::new(&format!("redis-sentinel://{}/mian", sentinel.address()));
            store.until_line("breaker open").await;
            assert!(store.lines()[0].contains("master name not found by sentinel"), "{:?}", store.lines());
        });
    }
}
