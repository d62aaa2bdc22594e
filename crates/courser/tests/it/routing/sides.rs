//! One port that relays and terminates: no connection comes out on the wrong side, however many there are.

use std::thread;

use courser_testkit::{
    KeyType, OriginServer,
    client::{Client, Resume, Version},
};

use super::serve;
use crate::stage::Stage;

/// Threads, and connections of each.
const CLIENTS: usize = 8;
const EACH: usize = 75;

#[test]
fn one_port_relays_and_terminates_without_one_connection_on_the_wrong_side() {
    let (stage, origins) = (Stage::new(), [OriginServer::http(), OriginServer::http()]);
    let [here, there] = origins.each_ref().map(OriginServer::backend);
    let behind = stage.courser().backend(there).start();
    let certificate = stage.certificate.display();
    let front = serve(
        &stage.folder,
        &format!(
            "workers = 2\n[pool.behind]\nservers = '{}'\n[[listener]]\nLISTEN\ncert = '{certificate}'\nbackend = '{here}'\n\
             route = [{{ when = {{ server_name = '*.relayed.example' }}, relay = 'behind' }}]\n",
            behind.address()
        ),
    );
    let visit = |number: usize| {
        let version = if number.is_multiple_of(3) { Version::Tls12 } else { Version::Tls13 };
        let client = Client::new(front.address(), version, KeyType::EcdsaP256, Resume::Never);
        let name = if number.is_multiple_of(2) { "a.relayed.example" } else { "relayed.example" };
        client.for_name(name).connect().unwrap().get(number * 37 % 50_000, true).unwrap();
    };
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || (0..EACH).for_each(|each| visit(number * EACH + each)));
        }
    });
    let half = (CLIENTS * EACH / 2) as u64;
    assert_eq!(origins.each_ref().map(OriginServer::accepted), [half, half]);
    for line in front.connections_json(CLIENTS * EACH) {
        let expected = if line["sni"] == "a.relayed.example" { "passthrough" } else { "terminate" };
        assert_eq!(line["tls_mode"], expected, "{line}");
        assert_eq!(line["close_reason"], "done", "{line}");
    }
}
