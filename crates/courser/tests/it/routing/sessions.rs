//! A farm of terminators behind a relay, each with sessions of its own: clients come back to the one that has theirs.

use std::path::Path;

use courser_testkit::{Courser, Folder, KeyType, Process, TestCa};

use crate::routing::{nginx, serve};
use crate::support::{Said, line, openssl};

/// Clients of a test.
const CLIENTS: usize = 8;

/// What a client gets without tickets in TLS 1.2: a session by ID.
const BY_ID: &str = "-tls1_2 -no_ticket";

/// A relay in front of four servers of nginx, each with a session cache of its own.
struct Farm {
    folder: Folder,
    _nginx: Process,
    relay: Courser,
    connections: usize,
}

impl Farm {
    fn new(affinity: &str) -> Option<Self> {
        courser_testkit::require("openssl")?;
        let (folder, ca) = (Folder::new(), TestCa::new());
        let certificate = ca.localhost(KeyType::EcdsaP256, &folder, "site");
        let servers: [(&Path, &str); 4] = ["a", "b", "c", "d"].map(|text| (certificate.as_path(), text));
        let (nginx, addresses) = nginx(&folder, &servers)?;
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let relay = serve(
            &folder,
            &format!(
                "workers = 1\n[pool.farm]\nbalance = 'round-robin'\nservers = {addresses:?}\n{affinity}\n\
                 [[listener]]\nLISTEN\nroute = {{ relay = 'farm' }}\n"
            ),
        );
        Some(Self { folder, _nginx: nginx, relay, connections: 0 })
    }

    /// A connection of a client, with a session of its own in its file: what it said, and the server that it was at.
    fn connect(&mut self, client: usize, resumes: bool, flags: &str) -> (Said, String) {
        let file = self.folder.join(&format!("{client}.session"));
        let direction = if resumes { "-sess_in" } else { "-sess_out" };
        let said = openssl(self.relay.address(), &format!("{flags} {direction} {}", file.display())).unwrap();
        self.connections += 1;
        (said, line(&self.relay, self.connections)["backend"].as_str().unwrap().to_owned())
    }

    /// How many of the clients, each of which comes back twice, resume their session each time and are at one server.
    fn who_resume(&mut self, flags: &str) -> usize {
        let first: Vec<String> = (0..CLIENTS).map(|client| self.connect(client, false, flags).1).collect();
        // One further connection, so that the turn that each comes at is another server's.
        self.connect(CLIENTS, false, flags);
        let mut returns = |client: usize| {
            (0..2).all(|_| {
                let (said, server) = self.connect(client, true, flags);
                said.text.contains("Reused, ") && server == first[client]
            })
        };
        (0..CLIENTS).filter(|client| returns(*client)).count()
    }
}

#[test]
fn every_session_by_id_is_resumed_at_the_server_that_has_it() {
    let Some(mut farm) = Farm::new("affinity = 'session'") else { return };
    assert_eq!(farm.who_resume(BY_ID), CLIENTS);
}

#[test]
fn without_affinity_few_are() {
    let Some(mut farm) = Farm::new("") else { return };
    let resumed = farm.who_resume(BY_ID);
    assert!(resumed < CLIENTS / 2, "{resumed} of {CLIENTS}");
}

#[test]
fn a_session_that_is_known_to_nobody_goes_in_turn_and_is_known_then() {
    let Some(mut farm) = Farm::new("affinity = 'session'") else { return };
    let (_, first) = farm.connect(0, false, BY_ID);
    let file = farm.folder.join("0.session");
    let session = std::fs::read(&file).unwrap();
    // Another relay with another memory.
    let Some(mut other) = Farm::new("affinity = 'session'") else { return };
    std::fs::write(other.folder.join("0.session"), session).unwrap();
    let (said, server) = other.connect(0, true, BY_ID);
    said.has("New, ");
    assert_ne!(server, first, "it is another farm");
    let (said, again) = farm.connect(0, true, BY_ID);
    said.has("Reused, ");
    assert_eq!(again, first);
}

#[test]
fn tickets_and_tls_13_go_in_turn() {
    for flags in ["-tls1_2", "-tls1_3"] {
        let Some(mut farm) = Farm::new("affinity = 'session'") else { return };
        let mut servers: Vec<String> = (0..4).map(|client| farm.connect(client, false, flags).1).collect();
        // The client's own ID is what the server returns: to remember it would fill the table with nobody's sessions.
        servers.extend((0..4).map(|_| farm.connect(0, true, flags).1));
        let (first, second) = servers.split_at(4);
        assert_eq!(first, second, "{flags}: each has its turn");
    }
}
