//! Sessions that go from host to host of a fleet: while a certificate is renewed, between listeners that have no name,
//! and until their lifetime is over.

use std::path::PathBuf;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::SessionThief;
use courser_testkit::courser::Setup;
use courser_testkit::{Leaf, TestCa, free_port};
use serde_json::Value;

use super::{Outcome, is_resumed_elsewhere, quoted, visit};
use crate::fleet::keygen;
use crate::stage::eventually;
use crate::support::{Site, WAYS};

/// Where the hosts of a fleet hear each other.
struct Fleet {
    key: PathBuf,
    ports: [u16; 3],
}

impl Fleet {
    fn new(site: &Site) -> Self {
        Self { key: keygen(site.folder.path(), "fleet.key"), ports: [(); 3].map(|()| free_port()) }
    }

    /// The address of a host, and those of the others.
    fn addresses(&self, own: usize) -> (String, Vec<String>) {
        let address = |port: &u16| format!("127.0.0.1:{port}");
        let others = self.ports.iter().filter(|port| **port != self.ports[own]);
        (address(&self.ports[own]), others.map(address).collect())
    }

    /// A host by flags.
    fn host(&self, own: usize, setup: Setup) -> Setup {
        let (listen, peers) = self.addresses(own);
        let setup = setup.arg("--fleet-key").arg(&self.key).args(["--fleet-name", &format!("host-{own}")]);
        let setup = setup.args(["--fleet-listen", &listen]);
        peers.iter().fold(setup, |setup, peer| setup.args(["--fleet-peer", peer]))
    }

    /// The same in a file.
    fn section(&self, own: usize) -> String {
        let (listen, peers) = self.addresses(own);
        let key = quoted(&self.key);
        format!("[fleet]\nname = \"host-{own}\"\nkey = {key}\nlisten = {listen:?}\npeer = {peers:?}\n")
    }
}

/// A fleet is given a new certificate host by host: meanwhile some show the old one and some the new.
#[test]
fn sessions_are_resumed_while_the_servers_certificate_is_renewed() {
    let site = Site::new();
    let fleet = Fleet::new(&site);
    let host = |own: usize, name: &str| {
        let certificate = site.ca.issue(&Leaf::new(EcdsaP256)).write_combined(&site.folder, name);
        fleet.host(own, site.setup().cert(certificate)).start()
    };
    let (old, new) = (host(0, "old"), host(1, "new"));
    for way in WAYS {
        for (made, offered) in [(&old, &new), (&new, &old)] {
            let client = SessionThief::new(way.version, EcdsaP256, way.resume);
            client.capture();
            assert_eq!(visit(&client.at(made.address(), "localhost")), Outcome::Full);
            client.offer();
            is_resumed_elsewhere(way, &client.at(offered.address(), "localhost"));
        }
    }
}

/// Logs call a listener without a name after its address, which differs from host to host; sessions are bound to its
/// place in the file.
#[test]
fn hosts_with_other_addresses_and_no_names_are_a_fleet_too() {
    let site = Site::new();
    let fleet = Fleet::new(&site);
    let cert = quoted(&site.cert(EcdsaP256));
    let listener = format!("[[listener]]\nlisten = \"127.0.0.1:0\"\nbackend = \"BACKEND\"\ncert = {cert}\n");
    let host = |own: usize| site.configured(&format!("{}{listener}", fleet.section(own))).start();
    let (one, other) = (host(0), host(1));
    let flags = fleet.host(2, site.serve(&[EcdsaP256])).start();
    for way in WAYS {
        for offered in [&other, &flags] {
            let client = SessionThief::new(way.version, EcdsaP256, way.resume);
            client.capture();
            assert_eq!(visit(&client.at(one.address(), "localhost")), Outcome::Full);
            client.offer();
            is_resumed_elsewhere(way, &client.at(offered.address(), "localhost"));
        }
    }
}

/// Each host renews the ticket that it is shown, or is told of the ID; the lifetime is still that of the first handshake.
#[test]
fn a_session_handed_to_and_fro_ends_with_its_lifetime() {
    for way in WAYS {
        let (site, clients) = (Site::new(), TestCa::named("clients"));
        let fleet = Fleet::new(&site);
        let ca = site.folder.write("clients.pem", clients.root_pem());
        let hosts = [0, 1].map(|own| {
            let setup =
                site.serve(&[EcdsaP256]).args(["--session-lifetime", "3s", "--client-auth", "required"]);
            fleet.host(own, setup.arg("--client-ca").arg(&ca)).start()
        });
        let client = SessionThief::new(way.version, EcdsaP256, way.resume);
        client.set_certificate(Some(&clients.issue(&Leaf::new(EcdsaP256).of_client("alice"))));
        client.renew();
        let mut visits = 0;
        let mut come = || {
            visits += 1;
            visit(&client.at(hosts[visits % 2].address(), "localhost"))
        };
        assert_eq!(come(), Outcome::Full);
        eventually("the session is where it is offered", || come() == Outcome::Resumed);
        eventually("the lifetime of the session is over", || come() == Outcome::Full);
        assert!(visits > 3, "it was resumed {} times", visits - 2);
        // Two workers write the log: the last visit need not be the last line.
        let lines = hosts[visits % 2].connections_json(visits.div_ceil(2));
        let over = |line: &&Value| line["not_resumed"] == "expired" && line["client_cert"] == "alice";
        assert_eq!(lines.iter().filter(over).count(), 1, "{lines:#?}");
    }
}
