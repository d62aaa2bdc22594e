//! Affinity: a client is at the same server each time, at every instance, and few move when servers come and go.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, Connection, Version};
use courser_testkit::{Courser, Leaf, OriginServer, TestCa};
use socket2::{Domain, Socket, Type};

use super::pools::{open, serve};
use crate::stage::Stage;

/// Clients of a test. The share that moves is tried with 20,000 in courser-balance.
const CLIENTS: u8 = 60;

fn pool(origins: &[OriginServer], affinity: &str) -> String {
    let servers: Vec<_> = origins.iter().map(OriginServer::backend).collect();
    format!("[pool.shop]\nservers = {servers:?}\naffinity = '{affinity}'")
}

fn address(client: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, client, 1)
}

/// A connection from an address of loopback's network.
fn get_from(client: &Client, courser: &Courser, from: Ipv4Addr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&courser.address().into()).unwrap();
    Connection::complete(client.session(), socket.into()).unwrap().get(10, true).unwrap();
}

/// The server of each client, by a field of its log line, after so many connections.
///
/// # Panics
/// When a client was at two servers.
fn servers(courser: &Courser, connections: usize, field: &str) -> BTreeMap<String, String> {
    let mut servers = BTreeMap::new();
    for line in courser.connections_json(connections) {
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        let client = text(field).rsplit_once(':').map_or_else(|| text(field), |(ip, _)| ip.to_owned());
        let server = servers.entry(client).or_insert_with(|| text("backend"));
        assert_eq!(*server, text("backend"), "the client was at another one before: {line}");
    }
    servers
}

/// The server of each client at an instance with these origins, where each connects twice.
fn by_source(stage: &Stage, origins: &[OriginServer]) -> BTreeMap<String, String> {
    let courser = serve(stage, &pool(origins, "source"), &["shop"]);
    let client = stage.client(&courser, Version::Tls13);
    for _ in 0..2 {
        (1..=CLIENTS).for_each(|number| get_from(&client, &courser, address(number)));
    }
    servers(&courser, 2 * usize::from(CLIENTS), "client")
}

#[test]
fn a_client_stays_by_its_address_and_moves_only_to_a_server_that_is_new() {
    let (stage, mut origins) = (Stage::new(), (0..4).map(|_| OriginServer::http()).collect::<Vec<_>>());
    let before = by_source(&stage, &origins);
    assert_eq!(before.len(), usize::from(CLIENTS));
    assert!(origins.iter().all(|origin| origin.accepted() > 0), "each server has clients");
    origins.push(OriginServer::http());
    let after = by_source(&stage, &origins);
    let moved: Vec<_> = before.iter().filter(|(client, server)| after[*client] != **server).collect();
    assert!(moved.iter().all(|(client, _)| after[*client] == origins[4].backend()), "{moved:?}");
    // 12 are to be expected; that 30 do happens once in 10^7 runs.
    assert!((1..30).contains(&moved.len()), "{} of {CLIENTS}", moved.len());
}

#[test]
fn neighbours_are_together_where_their_network_is_the_key() {
    let (stage, origins) = (Stage::new(), [(); 4].map(|()| OriginServer::http()));
    let courser = serve(&stage, &pool(&origins, "source/16"), &["shop"]);
    let client = stage.client(&courser, Version::Tls13);
    (1..=20).for_each(|number| get_from(&client, &courser, address(number)));
    let accepted = origins.each_ref().map(OriginServer::accepted);
    assert!(accepted.contains(&20), "all of one /16: {accepted:?}");
}

#[test]
fn a_browser_that_opens_several_connections_has_them_at_one_server() {
    let (stage, origins) = (Stage::new(), [(); 4].map(|()| OriginServer::http()));
    let courser = serve(&stage, &pool(&origins, "source"), &["shop"]);
    let mut held: Vec<Connection> = (0..6).map(|_| open(&stage, &courser)).collect();
    held.iter_mut().for_each(|connection| connection.get(10, false).unwrap());
    let accepted = origins.each_ref().map(OriginServer::accepted);
    assert!(accepted.contains(&6), "{accepted:?}");
}

#[test]
fn a_server_that_fails_passes_its_clients_on() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let dead = super::nobody();
    let pool = format!("[pool.shop]\nservers = ['{}', '{dead}']\naffinity = 'source'", origin.backend());
    let courser = serve(&stage, &pool, &["shop"]);
    let client = stage.client(&courser, Version::Tls13);
    (1..=20).for_each(|number| get_from(&client, &courser, address(number)));
    let retries = |line: &serde_json::Value| line["retries"].as_u64().unwrap();
    let retries: u64 = courser.connections_json(20).iter().map(retries).sum();
    assert_eq!((retries, origin.accepted()), (3, 20), "three connections find out, nobody is lost");
    courser.wait_stderr_line("ejected for 5 s");
}

#[test]
fn a_server_name_has_its_server() {
    let (stage, origins) = (Stage::new(), [(); 4].map(|()| OriginServer::http()));
    let courser = serve(&stage, &pool(&origins, "server-name"), &["shop"]);
    let client = stage.client(&courser, Version::Tls13);
    for _ in 0..2 {
        for number in 0..20 {
            let client = client.for_name(&format!("shop{number}.example"));
            client.connect().unwrap().get(10, true).unwrap();
        }
    }
    assert_eq!(servers(&courser, 40, "sni").len(), 20);
    assert!(origins.iter().filter(|origin| origin.accepted() > 0).count() > 1, "not one for all");
}

#[test]
fn a_client_certificate_has_its_server_in_every_connection_and_after_its_renewal() {
    let (stage, clients) = (Stage::new(), TestCa::named("clients of the pool"));
    let origins = [(); 4].map(|()| OriginServer::http());
    let ca = stage.folder.write("clients.pem", clients.root_pem());
    let auth = format!("client_auth = 'required'\nclient_ca = '{}'", ca.display());
    let courser = super::pools::serve_with(&stage, &pool(&origins, "client-certificate"), &["shop"], &auth);
    // Keys of RSA are one key: the second certificate is a renewal of the first.
    for (key, name) in [(courser_testkit::KeyType::Rsa2048, "renewed"); 2]
        .into_iter()
        .chain(["one", "two", "three", "four", "five", "six", "seven", "eight"].map(|name| (EcdsaP256, name)))
    {
        let certificate = clients.issue(&Leaf::new(key).of_client(name));
        let client = stage.returning_client(&courser, Version::Tls13).with_certificate(&certificate);
        for _ in 0..3 {
            client.connect().unwrap().get(10, true).unwrap();
        }
    }
    assert_eq!(servers(&courser, 30, "client_cert").len(), 9);
    let resumed = courser.connections_json(30).iter().filter(|line| line["session"] == "psk").count();
    assert_eq!(resumed, 20, "the certificate of a session counts as well");
    assert!(origins.iter().filter(|origin| origin.accepted() > 0).count() > 1, "not one for all");
}
