//! Pools: weights, limits with their queue, and servers that are ejected.

use std::thread;

use courser_testkit::{
    Courser, OriginServer,
    client::{Connection, Version},
};

use crate::backends::nobody;
use crate::stage::{Stage, assert_closed, courser};

/// A terminator with these pools, and a listener for each of `used`, a pool's name.
pub(super) fn serve(stage: &Stage, pools: &str, used: &[&str]) -> Courser {
    serve_with(stage, pools, used, "")
}

/// As [`serve`], with further settings of each listener.
pub(super) fn serve_with(stage: &Stage, pools: &str, used: &[&str], settings: &str) -> Courser {
    let certificate = stage.certificate.display();
    let listener = |(number, pool): (usize, &&str)| {
        format!(
            "[[listener]]\nname = 'l{number}'\nlisten = '127.0.0.1:0'\ncert = '{certificate}'\npool = '{pool}'\n{settings}\n"
        )
    };
    let listeners: String = used.iter().enumerate().map(listener).collect();
    let file = stage.folder.write("courser.toml", format!("workers = 1\nlog = 'json'\n{pools}\n{listeners}"));
    courser().config(&file).sockets(used.len()).start()
}

pub(super) fn open(stage: &Stage, courser: &Courser) -> Connection {
    stage.client(courser, Version::Tls13).connect().unwrap()
}

#[test]
fn weights_decide_who_gets_how_much() {
    let (stage, origins) = (Stage::new(), [OriginServer::http(), OriginServer::http()]);
    let [heavy, light] = origins.each_ref().map(OriginServer::backend);
    let pool = format!("[pool.shop]\nservers = [{{ address = '{heavy}', weight = 3 }}, '{light}']");
    let courser = serve(&stage, &pool, &["shop"]);
    for _ in 0..40 {
        open(&stage, &courser).get(10, true).unwrap();
    }
    let [heavy, light] = origins.each_ref().map(OriginServer::accepted);
    assert!((29..=31).contains(&heavy) && heavy + light == 40, "{heavy} and {light}");
}

#[test]
fn a_dead_server_costs_three_connections_an_attempt_each_and_then_none() {
    let (stage, origin, dead) = (Stage::new(), OriginServer::http(), nobody());
    let pool = format!("[pool.shop]\nservers = ['{dead}', '{}']", origin.backend());
    let courser = serve(&stage, &pool, &["shop"]);
    for _ in 0..20 {
        open(&stage, &courser).get(10, true).unwrap();
    }
    let retries: u64 =
        courser.connections_json(20).iter().map(|line| line["retries"].as_u64().unwrap()).sum();
    assert_eq!((retries, origin.accepted()), (3, 20));
    courser.wait_stderr_line("ejected for 5 s");
}

#[test]
fn a_connection_waits_for_a_server_that_is_full_and_is_served_when_there_is_room() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let pool = format!(
        "[pool.shop]\nqueue_timeout = '1m'\nservers = [{{ address = '{}', max_connections = 2 }}]",
        origin.backend()
    );
    // Two listeners: the limit is the pool's.
    let courser = serve(&stage, &pool, &["shop", "shop"]);
    let mut held: Vec<Connection> = (0..2).map(|_| open(&stage, &courser)).collect();
    for connection in &mut held {
        connection.get(10, false).unwrap();
    }
    let second = stage.client(&courser, Version::Tls13).at(courser.addresses()[1].parse().unwrap());
    let waiting = thread::spawn(move || second.connect().unwrap().get(10, true));
    held.pop().unwrap().close().unwrap();
    waiting.join().unwrap().unwrap();
    assert_eq!(origin.accepted(), 3);
}

#[test]
fn who_has_waited_for_the_whole_queue_timeout_gets_a_clean_end() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let pool = format!(
        "[pool.shop]\nqueue_timeout = '200ms'\nservers = [{{ address = '{}', max_connections = 1 }}]",
        origin.backend()
    );
    let courser = serve(&stage, &pool, &["shop"]);
    let mut held = open(&stage, &courser);
    held.get(10, false).unwrap();
    assert!(open(&stage, &courser).get(10, true).is_err());
    assert_closed(&courser.connections_json(1)[0], "queue_timeout", "backend");
    assert_eq!(origin.accepted(), 1, "the backend has never seen a second connection");
    held.get(10, true).unwrap();
    open(&stage, &courser).get(10, true).unwrap();
}

#[test]
fn a_pool_that_does_not_exist_is_told_with_the_ones_that_do() {
    let stage = Stage::new();
    let file = stage.folder.write(
        "courser.toml",
        "[pool.shop]\nservers = '127.0.0.1:1'\n[[listener]]\npool = 'shpo'\nbackend = '127.0.0.1:1'\n",
    );
    let done = crate::stage::run_courser(&["check", "--config", file.to_str().unwrap()]);
    let told = &done.stderr;
    assert!(told.contains("there is no pool `shpo`") && told.contains("shop"), "{told}");
    assert!(told.contains("there is a `pool` and a `backend`"), "{told}");
}

#[test]
fn a_backup_gets_connections_while_no_other_server_is_good() {
    let (stage, backup, first) = (Stage::new(), OriginServer::http(), OriginServer::http());
    let (first_address, backup_address) = (first.backend().to_owned(), backup.backend());
    let pool = format!(
        "[pool.shop]\nservers = [{{ address = '{backup_address}', backup = true }}, '{first_address}']"
    );
    let courser = serve(&stage, &pool, &["shop"]);
    for _ in 0..10 {
        open(&stage, &courser).get(10, true).unwrap();
    }
    assert_eq!((first.accepted(), backup.accepted()), (10, 0));
    drop(first);
    for _ in 0..10 {
        open(&stage, &courser).get(10, true).unwrap();
    }
    assert_eq!(backup.accepted(), 10);
}
