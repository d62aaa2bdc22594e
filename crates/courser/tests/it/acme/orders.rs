//! A program that orders, with its files.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use courser_testkit::{Courser, Finished, Folder, OriginServer, Pebble, Process, process::run};
use serde_json::Value;

use crate::stage::{content, courser, eventually, run_courser};

pub(crate) struct Orders {
    folder: Folder,
    origin: OriginServer,
    name: String,
    port: u16,
    directory: String,
}

impl Orders {
    /// One that orders for this name from the CA, and listens where the CA looks.
    pub(crate) fn of(name: &str, port: u16, pebble: &Pebble) -> Self {
        let orders = Self::at(name, port, &pebble.directory());
        fs::copy(pebble.authority(), orders.authority()).unwrap();
        orders
    }

    /// As [`Orders::of`], from this directory. [`Orders::authority`] has to be written.
    pub(crate) fn at(name: &str, port: u16, directory: &str) -> Self {
        let (folder, origin) = (Folder::new(), OriginServer::http());
        DirBuilder::new().mode(0o700).create(folder.join("state")).unwrap();
        Self { folder, origin, name: name.to_owned(), port, directory: directory.to_owned() }
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.join("directory-ca.pem")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("courser.toml")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        self.folder.write(name, text)
    }

    /// The configuration, with `more` in `[acme]`.
    pub(crate) fn text(&self, more: &str) -> String {
        format!(
            "control = '{}'\nstate_folder = 'state'\nworkers = 2\nlog = 'json'\n\
             [acme]\ndirectory = '{}'\ndirectory_ca = 'directory-ca.pem'\n{more}\n\
             [[listener]]\nlisten = '127.0.0.1:{}'\nbackend = '{}'\nunknown_name = 'refuse'\n\
             [[listener.host]]\nnames = ['{}']\ncert = {{ acme = true }}\n",
            self.control().display(),
            self.directory,
            self.port,
            self.origin.backend(),
            self.name,
        )
    }

    fn control(&self) -> PathBuf {
        self.folder.join("control.sock")
    }

    /// Starts the program with `more` in `[acme]`.
    pub(crate) fn start(&self, more: &str) -> Courser {
        fs::write(self.config(), self.text(more)).unwrap();
        self.launch()
    }

    /// Starts it with the configuration that there is.
    pub(crate) fn launch(&self) -> Courser {
        courser().config(&self.config()).sockets(1).start()
    }

    pub(crate) fn check(&self) -> Finished {
        run_courser(&["check", "--config", &self.config().display().to_string()])
    }

    /// A command to the program.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        run_courser(&[arguments, &["--control", &self.control().display().to_string()]].concat())
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&content(self.run(&["status", "--json"]))).unwrap()
    }

    pub(crate) fn acme_status(&self) -> Vec<Value> {
        let text = content(self.run(&["acme", "status", "--json"]));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for it. A program that has just started may not know yet what it orders.
    pub(crate) fn eventually(&self, what: &str, condition: impl Fn(&Value) -> bool) {
        eventually(what, || self.acme_status().first().is_some_and(&condition));
    }

    pub(crate) fn eventually_valid(&self) {
        self.eventually("there is a certificate", |set| set["not_after"].is_i64());
    }

    /// Whether there is a certificate and no order any more, by the files.
    pub(crate) fn is_valid(&self) -> bool {
        let state = fs::read_to_string(self.place("state.json")).unwrap_or_default();
        self.place("pair.pem").exists() && !state.contains("https://")
    }

    /// Where a file is, or will be: below the state folder where it belongs there.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        let beside = self.folder.join(name);
        if beside.exists() {
            return beside;
        }
        found(&self.folder.join("state"), name).unwrap_or(beside)
    }

    pub(crate) fn find(&self, name: &str) -> PathBuf {
        found(self.folder.path(), name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// What outlives the process, of the only set. The window is in it before the time that was drawn from it has come.
    pub(crate) fn state(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.find("state.json")).unwrap()).unwrap()
    }

    /// What `openssl s_client` shows of a connection for a name.
    pub(crate) fn shown(&self, openssl: &Path, name: &str, more: &[&str]) -> String {
        let mut command = Command::new(openssl);
        command.args(["s_client", "-connect", &format!("127.0.0.1:{}", self.port), "-servername", name]);
        let done = Process::start_with_input(command.args(more), "").finish();
        done.stdout + &done.stderr
    }

    /// Whether a client that trusts this root alone is content.
    pub(crate) fn is_verified(&self, openssl: &Path, name: &str, root: &Path) -> bool {
        let root = root.display().to_string();
        let shown =
            self.shown(openssl, name, &["-CAfile", &root, "-verify_hostname", name, "-verify_return_error"]);
        shown.contains("Verify return code: 0 (ok)")
    }

    /// The certificate that `shown` has, in words.
    pub(crate) fn certificate_text(&self, openssl: &Path, shown: &str) -> String {
        let file = self.write("seen.pem", shown);
        content(run(Command::new(openssl).args(["x509", "-noout", "-text", "-in"]).arg(file)))
    }
}

fn found(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(folder).ok()?.map(|entry| entry.unwrap().path()).collect();
    let here = entries.iter().find(|path| path.file_name().is_some_and(|found| found == name));
    here.cloned().or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|path| found(path, name)))
}
