//! What the tests of TLS itself share: a site with as many certificates as wanted, other people's clients, the log they
//! leave.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use courser_testkit::client::{Resume, Version};
use courser_testkit::courser::Setup;
use courser_testkit::{Courser, Finished, Folder, KeyType, OriginServer, Process, TestCa, body, require};
use serde_json::Value;

/// A request after whose answer the origin closes.
pub(crate) const REQUEST: &str = "GET / HTTP/1.0\r\n\r\n";

/// A way of resumption.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) version: Version,
    pub(crate) resume: Resume,
    /// What makes OpenSSL use it.
    pub(crate) flags: &'static str,
    /// Its name in the log.
    pub(crate) session: &'static str,
}

pub(crate) const TICKET: Way =
    Way { version: Version::Tls12, resume: Resume::Ticket, flags: "-tls1_2", session: "ticket" };
pub(crate) const SESSION_ID: Way = Way {
    version: Version::Tls12,
    resume: Resume::SessionId,
    flags: "-tls1_2 -no_ticket",
    session: "session_id",
};
pub(crate) const PSK: Way =
    Way { version: Version::Tls13, resume: Resume::Ticket, flags: "-tls1_3", session: "psk" };
pub(crate) const WAYS: [Way; 3] = [TICKET, SESSION_ID, PSK];

/// What stands around a terminator: an origin, a certificate authority, a folder for their files.
pub(crate) struct Site {
    pub(crate) folder: Folder,
    pub(crate) ca: TestCa,
    pub(crate) origin: OriginServer,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self { folder: Folder::new(), ca: TestCa::new(), origin: OriginServer::http() }
    }

    /// A certificate for `localhost` in one file.
    pub(crate) fn cert(&self, key: KeyType) -> PathBuf {
        self.ca.localhost(key, &self.folder, &format!("{key:?}"))
    }

    /// The root's certificate in a file.
    pub(crate) fn root(&self) -> PathBuf {
        self.ca.write_root(&self.folder)
    }

    /// The program in front of the origin, with two workers, a JSON log and no certificate yet.
    pub(crate) fn setup(&self) -> Setup {
        let program = Courser::setup(env!("CARGO_BIN_EXE_courser"));
        program.backend(self.origin.backend()).args(["--log", "json", "--workers", "2"])
    }

    /// The program with certificates for `localhost`.
    pub(crate) fn serve(&self, keys: &[KeyType]) -> Setup {
        keys.iter().fold(self.setup(), |setup, key| setup.cert(self.cert(*key)))
    }

    /// The program with a configuration file; `BACKEND` in it stands for the origin.
    pub(crate) fn configured(&self, toml: &str) -> Setup {
        let file = self.folder.write("courser.toml", toml.replace("BACKEND", self.origin.backend()));
        Courser::setup(env!("CARGO_BIN_EXE_courser")).config(&file).args(["--log", "json", "--workers", "2"])
    }
}

/// The line of the `number`th connection, counted from 1. Waiting for each line before the next connection begins
/// makes their order certain: each worker writes its own.
#[track_caller]
pub(crate) fn line(courser: &Courser, number: usize) -> Value {
    courser.connections_json(number).swap_remove(number - 1)
}

/// Of the last two of `number` connections, which a client has made one after the other, the line of the later: each
/// worker writes its own, so that the first may be written last.
#[track_caller]
pub(crate) fn later_line(courser: &Courser, number: usize) -> Value {
    let lines = courser.connections_json(number).into_iter().take(number).skip(number - 2);
    lines.max_by_key(|line| line["time"].as_str().map(str::to_owned)).expect("there are two")
}

/// Asserts several fields of a line at once; the line is shown when one differs.
#[track_caller]
pub(crate) fn assert_line(line: &Value, fields: &[(&str, &str)]) {
    for (name, wanted) in fields {
        assert_eq!(line[*name].as_str(), Some(*wanted), "{name} of {line}");
    }
}

/// What somebody else's client printed, both outputs together.
pub(crate) struct Said {
    pub(crate) success: bool,
    pub(crate) text: String,
}

impl Said {
    /// Asserts that the client printed `part`.
    #[track_caller]
    pub(crate) fn has(&self, part: &str) -> &Self {
        assert!(self.text.contains(part), "no {part:?} in:\n{}", self.text);
        self
    }

    /// Asserts that the client did not print `part`.
    #[track_caller]
    pub(crate) fn lacks(&self, part: &str) -> &Self {
        assert!(!self.text.contains(part), "{part:?} in:\n{}", self.text);
        self
    }

    /// Asserts that the client got the origin's page, whole.
    #[track_caller]
    pub(crate) fn has_page(&self) -> &Self {
        self.has(std::str::from_utf8(&body(1024)).expect("the page is text"))
    }
}

impl From<Finished> for Said {
    fn from(ended: Finished) -> Self {
        Self { success: ended.status.success(), text: format!("{}\n{}", ended.stdout, ended.stderr) }
    }
}

/// Runs a client of somebody else with `input`; `None`, after saying so, when it is not installed.
pub(crate) fn client(program: &str, arguments: &[&str], input: &str) -> Option<Said> {
    let mut command = Command::new(require(program)?);
    Some(Process::start_with_input(command.args(arguments), input).finish().into())
}

/// `openssl s_client` that asks for the origin's page; `arguments` are separated by spaces.
pub(crate) fn openssl(address: SocketAddr, arguments: &str) -> Option<Said> {
    let address = address.to_string();
    let mut all = vec!["s_client", "-connect", &address, "-ign_eof"];
    all.extend(arguments.split_whitespace());
    client("openssl", &all, REQUEST)
}

/// A path as text.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}
