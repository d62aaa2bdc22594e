//! A cluster, with all its nodes and with one fewer.

use std::time::{Duration, Instant};

use courser_store::{Access, StoreCount, StoreFailure};
use courser_testkit::{Engine, EngineServer, free_port, join_cluster};

use crate::support::{FIVE_WAITS, MINUTE, NAME, PATIENT, SHORT, Watched, names, worker};

/// Nodes that are declared dead after half a second, and replicas that are fit to take over as soon as they are one.
fn nodes(engine: &Engine, count: usize) -> Vec<EngineServer> {
    let settings =
        ["--cluster-enabled", "yes", "--cluster-node-timeout", "500", "--repl-diskless-sync-delay", "0"];
    let start = |_| {
        let bus = free_port().to_string();
        engine.start(&[&settings[..], &["--cluster-port", &bus]].concat())
    };
    (0..count).map(start).collect()
}

fn url(nodes: &[EngineServer]) -> String {
    let hosts: Vec<_> = nodes.iter().map(|node| node.address().to_string()).collect();
    format!("redis-cluster://{}", hosts.join(","))
}

/// Puts a value under many names, and finds all of them.
async fn works(store: &Watched) {
    for name in names(50) {
        store.put(&name, &name[..1]).await;
    }
    for name in names(50) {
        assert_eq!(store.store.get(&name).await, Ok(Some(name[..1].to_vec())));
    }
}

#[test]
fn a_cluster_is_found_by_any_of_its_nodes_and_used_with_all() {
    for engine in Engine::installed() {
        let nodes = nodes(&engine, 3);
        join_cluster(&nodes, 0);
        worker(async {
            works(&Watched::connected(&url(&nodes[1..2])).await).await;
            let held: Vec<u32> =
                nodes.iter().map(|node| node.command(&["DBSIZE"]).parse().unwrap()).collect();
            assert!(held.iter().all(|&held| held > 0), "{held:?}");
            assert_eq!(held.iter().sum::<u32>(), 50);
        });
    }
}

#[test]
fn one_node_of_a_cluster_as_if_it_were_all_is_told() {
    for engine in Engine::installed() {
        let nodes = nodes(&engine, 3);
        join_cluster(&nodes, 0);
        worker(async {
            let store = Watched::connected(&format!("redis://{}", nodes[0].address())).await;
            names(20).iter().for_each(|name| store.store.put(name, b"value", MINUTE));
            store.until_line("use redis-cluster://").await;
        });
    }
}

#[test]
fn a_node_that_dies_costs_bounded_waits_until_its_replica_has_taken_over() {
    for engine in Engine::installed() {
        let mut nodes = nodes(&engine, 6);
        join_cluster(&nodes, 1);
        worker(async {
            let store = Watched::with(&url(&nodes), Access::default(), SHORT);
            store.until_available().await;
            works(&store).await;
            let waits = |node: &EngineServer| {
                node.command(&["INFO", "replication"]).contains("master_link_status:down")
            };
            store.until("the replicas follow", || !nodes.iter().any(waits)).await;
            let is_master = |node: &&mut EngineServer| node.command(&["ROLE"]).starts_with("master");
            nodes.iter_mut().find(is_master).unwrap().kill();

            // Until every name can be written again, what those wait together who ask.
            let mut waited = Duration::ZERO;
            let mut left = names(50);
            let deadline = Instant::now() + courser_testkit::PATIENCE;
            while let Some(name) = left.pop() {
                assert!(
                    Instant::now() < deadline,
                    "{} left: {:?} {:?}",
                    left.len(),
                    store.counters,
                    store.lines()
                );
                store.store.put(&name, b"after", MINUTE);
                let began = Instant::now();
                let answer = store.store.get(&name).await;
                waited += began.elapsed();
                if answer != Ok(Some(b"after".to_vec())) {
                    left.insert(0, name);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            let left_alone = u32::try_from(store.count(StoreCount::BreakerOpened)).unwrap();
            assert!(waited < FIVE_WAITS * (left_alone + 1), "{waited:?} {:?}", store.counters);
        });
    }
}

#[test]
fn a_cluster_without_one_of_its_parts_refuses_and_the_others_are_not_waited_for() {
    for engine in Engine::installed() {
        let mut nodes = nodes(&engine, 3);
        join_cluster(&nodes, 0);
        worker(async {
            let store = Watched::with(&url(&nodes), Access::default(), PATIENT);
            store.until_available().await;
            works(&store).await;
            nodes[2].kill();
            let refused = async {
                loop {
                    if store.store.get(&NAME).await == Err(StoreFailure::Refused) {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(courser_testkit::PATIENCE, refused).await.expect("CLUSTERDOWN");
            for name in names(50) {
                let answer = store.store.get(&name).await;
                assert_ne!(answer, Ok(None), "no part has lost anything");
            }
            assert_eq!(store.count(StoreCount::Timeouts), 0, "what is refused is not waited for");
            assert!(store.lines().iter().any(|line| line.contains("CLUSTERDOWN")), "{:?}", store.lines());
        });
    }
}
