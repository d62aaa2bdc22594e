//! How much memory connections take that say nothing, or rest, also after all of them came at once; and that it is given
//! back.

use std::io::Write;
use std::net::TcpStream;

use courser_testkit::client::{Client, Connection, Version};
use courser_testkit::tools::raise_descriptor_limit;
use courser_testkit::{Courser, OriginServer};

use crate::stage::{Stage, eventually};

/// As many as come at once.
const BURST: usize = 3_000;

const KIB: u64 = 1024;

#[test]
fn a_connection_that_says_nothing_takes_little() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    raise_descriptor_limit().unwrap();
    let before = at_rest(&courser, &stage);
    let silent: Vec<_> = (0..BURST).map(|_| TcpStream::connect(courser.address()).unwrap()).collect();
    eventually("all are accepted", || courser.descriptors() >= BURST);
    let each = (courser.memory().rss - before) / silent.len() as u64;
    println!("{each} bytes for each connection that says nothing");
    assert!(each <= 4 * KIB, "{each} bytes for each connection that says nothing");
}

#[test]
fn a_burst_rests_in_little_memory_and_leaves_none_behind() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage
        .courser()
        .backend(origin.backend())
        .args(["--handshake-timeout", "1m", "--patience", "1m"])
        .start();
    raise_descriptor_limit().unwrap();
    let _alone = crate::overload::alone();
    let client = stage.client(&courser, Version::Tls13);
    let before = at_rest(&courser, &stage);
    let burst = open_at_once(&courser, &client, BURST);
    let each = (courser.memory().rss - before) / BURST as u64;
    let after = |burst| {
        drop(burst);
        eventually("all have gone", || courser.descriptors() < 100);
        courser.memory().rss
    };
    // What a burst has filled stays, all of it or a part.
    let filled = after(burst).max(after(open_at_once(&courser, &client, BURST)));
    after(open_at_once(&courser, &client, BURST));
    println!("{each} bytes for each connection that rests; {filled} bytes between bursts, {before} before");
    assert!(each <= 10 * KIB, "{each} bytes for each connection that rests");
    eventually("memory is given back", || courser.memory().rss * 10 <= filled * 12);
}

/// Resident memory after the first connection, when everything that is made once has been made.
fn at_rest(courser: &Courser, stage: &Stage) -> u64 {
    drop(stage.client(courser, Version::Tls13).connect());
    let _ = courser.connections(1);
    courser.memory().rss
}

/// Every connection has sent its ClientHello before the first one is answered further.
pub(crate) fn open_at_once(courser: &Courser, client: &Client, clients: usize) -> Vec<Connection> {
    let hello = || {
        let (mut tls, mut socket) = (client.session(), TcpStream::connect(courser.address()).unwrap());
        let mut bytes = Vec::new();
        tls.write_tls(&mut bytes).unwrap();
        socket.write_all(&bytes).unwrap();
        (tls, socket)
    };
    let begun: Vec<_> = (0..clients).map(|_| hello()).collect();
    let complete = |(tls, socket)| {
        let mut connection = Connection::complete(tls, socket).unwrap();
        connection.get(1_000, false).unwrap();
        connection
    };
    begun.into_iter().map(complete).collect()
}
