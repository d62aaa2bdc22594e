//! Clients that return to another host, where a store is all that the hosts have in common. Redis is the store.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use courser_proxy::sharing::StoreSettings;
use courser_session::{Miss, Vault};
use courser_store::{Access, StoreCounters, StoreUrl, Target};
use courser_testkit::{Folder, Process, require};

use crate::client::Client;
use crate::host::{Host, keys};
use crate::{PATIENCE, wait_for};

/// A server of this test's own.
struct Server {
    folder: Folder,
    _process: Process,
}

impl Server {
    fn start() -> Option<Self> {
        let folder = Folder::new();
        let mut command = Command::new(require("redis-server")?);
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(folder.join("socket"));
        let process = Process::start(command.arg("--dir").arg(folder.path()));
        process.wait_stdout("a server that is ready", |lines| {
            lines.iter().any(|line| line.contains("ready to accept connections")).then_some(())
        });
        Some(Self { folder, _process: process })
    }

    /// How many there are, as the server says it.
    fn sessions(&self) -> String {
        let mut socket = UnixStream::connect(self.folder.join("socket")).unwrap();
        socket.write_all(b"DBSIZE\r\nQUIT\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.join("socket").display())
    }
}

/// A host with a store, and what it has counted of it.
struct WithStore {
    host: Host,
    counters: Arc<StoreCounters>,
}

impl WithStore {
    fn new(url: &str) -> Self {
        let counters = Arc::new(StoreCounters::new(|_| {}));
        let settings = StoreSettings {
            target: Target::new(StoreUrl::parse(url).unwrap(), Access::default()).unwrap(),
            timeout: PATIENCE,
            counters: Arc::clone(&counters),
            vault: Arc::new(Vault::new(keys())),
        };
        Self { host: Host::alone_with(|sharing| sharing.store = Some(settings)), counters }
    }

    fn connected(self) -> Self {
        self.waits_for("connected");
        self
    }

    fn waits_for(&self, count: &str) {
        wait_for(count, || (self.counters.counts().get(count) > 0).then_some(()));
    }
}

#[test]
fn a_session_is_fetched_from_the_store_and_deleted_in_it() {
    let Some(server) = Server::start() else { return };
    let [a, b, c] = [(); 3].map(|()| WithStore::new(&server.url()).connected());
    let mut client = Client::by_id();
    assert!(!client.visit(a.host.address));
    a.waits_for("stored");
    assert_eq!(server.sessions(), ":1");
    assert!(client.visit(b.host.address));
    assert!(client.visit(b.host.address));
    let counts = b.host.counts(2);
    assert_eq!((counts.asked, counts.found_in_store, counts.by_id_from_elsewhere), (1, 1, 2));
    client.leave_angry(b.host.address);
    wait_for("the deletion", || (server.sessions() == ":0").then_some(()));
    assert!(!client.visit(c.host.address));
    assert_eq!(c.host.counts(1).missed(Miss::NotShared), 1);
}

#[test]
fn a_store_that_says_nothing_costs_a_full_handshake_and_no_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = WithStore::new(&format!("redis://{}", silent.local_addr().unwrap())).host;
    let mut client = Client::by_id();
    client.visit(Host::alone().address);
    let start = Instant::now();
    assert!(!client.visit(host.address));
    assert!(start.elapsed() < PATIENCE / 2, "it is not connected, so nobody waits for it");
    assert_eq!(host.counts(1).missed(Miss::StoreTimeout), 1);
}
