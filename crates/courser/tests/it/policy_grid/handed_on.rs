//! Sessions that go from host to host of a fleet: while a certificate is renewed, between listeners that have no name,
//! and until their lifetime is over.

use std::path::Path;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::Intruder;
use courser_testkit::courser::Setup;
use courser_testkit::{Courser, Leaf, TestCa};
use serde_json::Value;

use super::{Outcome, PSK, TICKET, quoted, visit};
use crate::fleet::keygen;
use crate::stage::eventually;
use crate::support::Site;

fn with_key(setup: Setup, site: &Site) -> Setup {
    setup.arg("--fleet-key").arg(site.folder.join("fleet.key"))
}

/// A fleet is given a new certificate host by host: meanwhile some show the old one and some the new.
#[test]
fn sessions_are_resumed_while_the_servers_certificate_is_renewed() {
    let site = Site::new();
    keygen(site.folder.path(), "fleet.key");
    let host = |name: &str| {
        let certificate = site.ca.issue(&Leaf::new(EcdsaP256)).write_combined(&site.folder, name);
        with_key(site.setup().cert(certificate), &site).start()
    };
    let (old, new) = (host("old"), host("new"));
    for way in [TICKET, PSK] {
        for (made, offered) in [(&old, &new), (&new, &old)] {
            let client = Intruder::new(way.version, EcdsaP256, way.resume);
            client.collect();
            assert_eq!(visit(&client.at(made.address(), "localhost")), Outcome::Full);
            client.offer();
            assert_eq!(visit(&client.at(offered.address(), "localhost")), Outcome::Resumed);
        }
    }
}

/// Logs call a listener without a name after its address, which differs from host to host; sessions are bound to its
/// place in the file.
#[test]
fn hosts_with_other_addresses_and_no_names_are_a_fleet_too() {
    let site = Site::new();
    let key = keygen(site.folder.path(), "fleet.key");
    let cert = quoted(&site.cert(EcdsaP256));
    let listener = format!("[[listener]]\nlisten = \"127.0.0.1:0\"\nbackend = \"BACKEND\"\ncert = {cert}\n");
    let fleet = format!("[fleet]\nkey = {}\n", quoted(&key));
    let host = || site.configured(&format!("{fleet}{listener}")).start();
    let (one, other) = (host(), host());
    let flags = with_key(site.serve(&[EcdsaP256]), &site).start();
    for way in [TICKET, PSK] {
        for offered in [&other, &flags] {
            let client = Intruder::new(way.version, EcdsaP256, way.resume);
            client.collect();
            assert_eq!(visit(&client.at(one.address(), "localhost")), Outcome::Full);
            client.offer();
            assert_eq!(visit(&client.at(offered.address(), "localhost")), Outcome::Resumed);
        }
    }
}

/// Each host renews the ticket that it is shown; the lifetime is still that of the first handshake.
#[test]
fn a_session_handed_to_and_fro_ends_with_its_lifetime() {
    for way in [TICKET, PSK] {
        let (site, clients) = (Site::new(), TestCa::named("clients"));
        keygen(site.folder.path(), "fleet.key");
        let ca = site.folder.write("clients.pem", clients.root_pem());
        let host = || mutual(&site, &ca);
        let hosts = [host(), host()];
        let client = Intruder::new(way.version, EcdsaP256, way.resume);
        client.show(Some(&clients.issue(&Leaf::new(EcdsaP256).of_client("alice"))));
        client.renew();
        let mut visits = 0;
        let mut come = || {
            visits += 1;
            visit(&client.at(hosts[visits % 2].address(), "localhost"))
        };
        assert_eq!(come(), Outcome::Full);
        eventually("the lifetime of the session is over", || come() == Outcome::Full);
        assert!(visits > 3, "it was resumed {} times", visits - 2);
        // Two workers write the log: the last visit need not be the last line.
        let lines = hosts[visits % 2].connections_json(visits.div_ceil(2));
        let over = |line: &&Value| line["miss"] == "expired" && line["client_cert"] == "alice";
        assert_eq!(lines.iter().filter(over).count(), 1, "{lines:#?}");
    }
}

fn mutual(site: &Site, ca: &Path) -> Courser {
    let setup = site.serve(&[EcdsaP256]).args(["--session-lifetime", "3s", "--client-auth", "required"]);
    with_key(setup.arg("--client-ca").arg(ca), site).start()
}
