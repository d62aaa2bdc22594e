//! What these tests share: a stage with certificate and terminator, clients in other languages, waits with a bound.

use std::{
    fs::{self, Permissions},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use courser_testkit::{
    Courser, Folder, KeyType, PATIENCE, TestCa,
    client::{Client, Resume, Version},
    courser::Setup,
    process::Finished,
    require,
};
pub(crate) use courser_testkit::{Stuck, process::run};
use serde_json::Value;

/// A certificate for localhost, the authority behind it, and a folder for whatever else a test needs.
pub(crate) struct Stage {
    pub(crate) folder: Folder,
    pub(crate) certificate: PathBuf,
    pub(crate) root: PathBuf,
    key: KeyType,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(KeyType::EcdsaP256)
    }

    pub(crate) fn with(key: KeyType) -> Self {
        let (folder, ca) = (Folder::new(), TestCa::new());
        Self { certificate: ca.localhost(key, &folder, "site"), root: ca.write_root(&folder), folder, key }
    }

    /// The terminator with this certificate, one worker and a log in JSON.
    pub(crate) fn courser(&self) -> Setup {
        self.courser_of(1)
    }

    /// As [`Stage::courser`], with so many workers.
    pub(crate) fn courser_of(&self, workers: usize) -> Setup {
        courser().cert(&self.certificate).args(["--log", "json", "--workers", &workers.to_string()])
    }

    /// [`Stage::courser`] in front of `backend`, started.
    pub(crate) fn serve(&self, backend: impl AsRef<str>) -> Courser {
        self.courser().backend(backend.as_ref()).start()
    }

    /// A client of our own, for what no other client does; every handshake full.
    pub(crate) fn client(&self, courser: &Courser, version: Version) -> Client {
        Client::new(courser.address(), version, self.key, Resume::Never)
    }

    /// As [`Stage::client`], but it comes back with tickets.
    pub(crate) fn returning_client(&self, courser: &Courser, version: Version) -> Client {
        Client::new(courser.address(), version, self.key, Resume::Ticket)
    }

    /// curl that trusts the stage's authority and resolves localhost to the terminator.
    pub(crate) fn curl(&self, courser: &Courser, path: &str) -> Command {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "30", "--cacert"]).arg(&self.root);
        let address = courser.address();
        command.arg("--resolve").arg(format!("localhost:{}:{}", address.port(), address.ip()));
        command.arg(format!("https://localhost:{}{path}", address.port()));
        command
    }

    /// Runs a Python script that finds `connect()` (verified TLS to the terminator) and `raw(tls)` (the plain socket
    /// under it). `None`, with the reason printed, where Python is missing.
    pub(crate) fn python(&self, courser: &Courser, script: &str) -> Option<Finished> {
        let mut command = Command::new(require("python3")?);
        command.arg("-c").arg(format!("{PRELUDE}\n{script}"));
        command.env("CA", &self.root).env("PORT", courser.address().port().to_string());
        Some(run(&mut command))
    }
}

const PRELUDE: &str = r#"
import os, socket, ssl, sys
def connect(**options):
    context = ssl.create_default_context(cafile=os.environ["CA"])
    for name, value in options.items():
        setattr(context, name, value)
    plain = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), timeout=15)
    return context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
def raw(tls):
    return socket.socket(fileno=os.dup(tls.fileno()))
def rest(tls):
    return b"".join(iter(lambda: tls.recv(65536), b""))
"#;

/// The program under test.
pub(crate) fn courser() -> Setup {
    Courser::setup(env!("CARGO_BIN_EXE_courser"))
}

/// The program in a folder that every user may enter, which the one of the build may not be.
pub(crate) fn courser_for_all(folder: &Folder) -> PathBuf {
    let (program, to_all) = (folder.join("courser"), Permissions::from_mode(0o755));
    fs::copy(env!("CARGO_BIN_EXE_courser"), &program).expect("the tests' folder can be written");
    fs::set_permissions(folder.path(), to_all).expect("the folder is ours");
    program
}

/// A command of the program that ends by itself.
pub(crate) fn run_courser(arguments: &[&str]) -> Finished {
    run(Command::new(env!("CARGO_BIN_EXE_courser")).args(arguments))
}

/// Asserts that a judge is content, and returns what it printed.
#[track_caller]
pub(crate) fn content(judge: Finished) -> String {
    assert!(judge.status.success(), "{}\n{}\n{}", judge.status, judge.stdout, judge.stderr);
    judge.stdout
}

/// The one line that the connection log has, or will soon have.
#[track_caller]
pub(crate) fn only_line(courser: &Courser) -> Value {
    let mut lines = courser.connections_json(1);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.remove(0)
}

/// Asserts the close reason of a connection and its cause.
#[track_caller]
pub(crate) fn assert_closed(line: &Value, reason: &str, cause: &str) {
    assert_eq!(
        (line["close_reason"].as_str(), line["cause"].as_str()),
        (Some(reason), Some(cause)),
        "{line}"
    );
}

/// How many descriptors the program has open after its first connection, when its workers have all of their own.
pub(crate) fn descriptors_at_rest(courser: &Courser, client: &Client) -> usize {
    client.connect().and_then(|mut first| first.get(10, true)).expect("the terminator serves");
    // The line is written when everything else of a connection is gone.
    let _ = courser.connections(1);
    courser.descriptors()
}

/// How often a condition is looked at: not a guess at how long it takes.
const PACE: Duration = Duration::from_millis(5);

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(PACE);
    }
}

/// A backend that takes one connection: its address, and what `serve` made of it.
pub(crate) fn backend<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let served = thread::spawn(move || serve(listener.accept().expect("the terminator connects").0));
    (address.to_string(), served)
}

/// Compiles a program in Go; `None`, with the reason printed, where Go is missing.
pub(crate) fn go_program(name: &str, source: &str) -> Option<PathBuf> {
    let go = require("go")?;
    let folder = Folder::new();
    let file = folder.write("main.go", source);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Another run of the tests may be executing the file of this name: it is replaced, not written over.
    let unfinished = program.with_extension(std::process::id().to_string());
    let mut build = Command::new(go);
    content(run(build.args(["build", "-o"]).arg(&unfinished).arg(file).env("GO111MODULE", "off")));
    fs::rename(&unfinished, &program).expect("the tests' folder can be written");
    Some(program)
}
