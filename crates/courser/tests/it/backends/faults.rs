//! One of four servers fails in each of the ways that there are, made by Toxiproxy: who notices, and how many.

use std::sync::atomic::{AtomicUsize, Ordering};

use courser_testkit::client::Version;
use courser_testkit::{Courser, FaultLink, FaultProxy, OriginServer};
use serde_json::{Value, json};

use super::pools::{open, serve, serve_with};
use crate::stage::{Stage, Stuck, assert_closed, eventually};

/// Four origins, each behind a link that can be made to fail.
struct Farm<'a> {
    stage: Stage,
    origins: [OriginServer; 4],
    links: Vec<FaultLink<'a>>,
    courser: Courser,
}

impl<'a> Farm<'a> {
    fn new(proxy: &'a FaultProxy, balance: &str) -> Self {
        let (stage, origins) = (Stage::new(), [(); 4].map(|()| OriginServer::http()));
        let links: Vec<_> = origins.iter().map(|origin| proxy.link(origin.backend())).collect();
        let servers: Vec<_> = links.iter().map(FaultLink::address).collect();
        let pool = format!("[pool.shop]\nservers = {servers:?}\nbalance = '{balance}'");
        let courser = serve(&stage, &pool, &["shop"]);
        Self { stage, origins, links, courser }
    }

    /// How many of so many clients, one after the other, got their page.
    fn served(&self, clients: usize) -> usize {
        (0..clients).filter(|_| open(&self.stage, &self.courser).get(10, true).is_ok()).count()
    }

    fn accepted(&self) -> [u64; 4] {
        self.origins.each_ref().map(OriginServer::accepted)
    }

    /// The log line of each of so many connections.
    fn lines(&self, connections: usize) -> Vec<Value> {
        self.courser.connections_json(connections)
    }

    fn retries(&self, connections: usize) -> u64 {
        self.lines(connections).iter().map(|line| line["retries"].as_u64().unwrap()).sum()
    }
}

#[test]
fn a_server_that_refuses_costs_three_attempts_and_no_client_its_page() {
    let Some(proxy) = FaultProxy::start() else { return };
    let farm = Farm::new(&proxy, "round-robin");
    farm.links[1].set_up(false);
    assert_eq!(farm.served(40), 40);
    assert_eq!((farm.retries(40), farm.accepted()[1]), (3, 0));
}

#[test]
fn a_server_that_swallows_what_knocks_costs_three_clients_the_timeout() {
    let (stage, stuck, origins) = (Stage::new(), Stuck::new(), [(); 3].map(|()| OriginServer::http()));
    let mut servers = vec![stuck.address()];
    servers.extend(origins.iter().map(|origin| origin.backend().to_owned()));
    let pool = format!("[pool.shop]\nservers = {servers:?}\nbalance = 'round-robin'");
    let courser = serve_with(&stage, &pool, &["shop"], "connect_timeout = '100ms'");
    for _ in 0..40 {
        open(&stage, &courser).get(10, true).unwrap();
    }
    let retries = |line: &Value| line["retries"].as_u64().unwrap();
    assert_eq!(courser.connections_json(40).iter().map(retries).sum::<u64>(), 3);
}

#[test]
fn a_server_that_resets_costs_three_clients_their_page_and_no_more() {
    let Some(proxy) = FaultProxy::start() else { return };
    let farm = Farm::new(&proxy, "round-robin");
    farm.links[1].add("reset_peer", &json!({ "timeout": 0 }));
    // What the client has said may have been done: it is not said again to another server.
    assert_eq!(farm.served(40), 37);
    let cut = farm.lines(40).iter().filter(|line| line["close_reason"] == "backend_reset").count();
    assert_eq!(cut, 3);
}

#[test]
fn a_server_that_flaps_costs_no_client_its_page() {
    let Some(proxy) = FaultProxy::start() else { return };
    let farm = Farm::new(&proxy, "round-robin");
    for round in 0..6 {
        farm.links[1].set_up(round % 2 == 1);
        assert_eq!(farm.served(8), 8, "round {round}");
    }
    // Twice in each of three rounds, and so never three times in a row.
    assert_eq!(farm.retries(48), 6);
}

#[test]
fn a_server_that_answers_late_gets_few() {
    let Some(proxy) = FaultProxy::start() else { return };
    let farm = Farm::new(&proxy, "least");
    farm.links[1].add("latency", &json!({ "latency": 1000 }));
    // The clients share the work: who has met the slow server is at it while the others go on.
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while begun.fetch_add(1, Ordering::Relaxed) < 80 {
                    assert_eq!(farm.served(1), 1);
                }
            });
        }
    });
    let slow = farm.accepted()[1];
    assert!((1..=10).contains(&slow), "half of its share at most: {slow} of 80");
}

#[test]
fn a_server_that_closes_late_is_not_at_fault() {
    let Some(proxy) = FaultProxy::start() else { return };
    let farm = Farm::new(&proxy, "round-robin");
    farm.links[1].add("slow_close", &json!({ "delay": 100 }));
    assert_eq!((farm.served(20), farm.retries(20)), (20, 0));
    assert_eq!(farm.accepted(), [5; 4], "each has had its turn");
}

#[test]
fn where_all_refuse_the_client_is_told_at_once_and_all_are_asked_again_when_they_are_back() {
    let Some(proxy) = FaultProxy::start() else { return };
    let farm = Farm::new(&proxy, "round-robin");
    farm.links.iter().for_each(|link| link.set_up(false));
    assert_eq!(farm.served(1), 0);
    let line = &farm.lines(1)[0];
    assert_closed(line, "no_backend", "backend");
    assert_eq!(line["retries"], 4, "each was asked once: {line}");
    farm.links.iter().for_each(|link| link.set_up(true));
    assert_eq!(farm.served(8), 8);
    assert_eq!(farm.accepted(), [2; 4]);
}

#[test]
fn a_server_that_was_ejected_is_back_after_its_time() {
    let Some(proxy) = FaultProxy::start() else { return };
    let farm = Farm::new(&proxy, "round-robin");
    farm.links[1].set_up(false);
    assert_eq!(farm.served(12), 12);
    farm.courser.wait_stderr_line("ejected for 5 s");
    farm.links[1].set_up(true);
    let client = farm.stage.client(&farm.courser, Version::Tls13);
    eventually("it gets connections again", || {
        client.connect().unwrap().get(10, true).unwrap();
        farm.accepted()[1] > 0
    });
}
