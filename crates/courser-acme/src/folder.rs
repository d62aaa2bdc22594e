//! The files: whole or not there, readable by their owner alone. What is in `FOLDER/acme/DIRECTORY/`:
//!
//! * `account.pem`, the account's key, and `account.json`, where the CA has it. Who has the key can order for as long as a
//!   record of dns-persist-01 stands, and for every name that is proved by a connection to whoever has the key too.
//! * `NAME/pair.pem`, chain and key of what is served: one file, as of two a crash could leave one behind.
//! * `NAME/state.json`, the order under way with its key, failures, and when to try again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::names::NameSet;
use crate::plan::{Setback, Window};

/// The folder of one directory: what another CA has issued, or its staging, is apart.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// Where the pair of a set is, or will be: chain and key in one PEM file, below the program's state folder.
pub fn pair_file(state: &Path, directory: &str, set: &NameSet) -> PathBuf {
    Folder::of(state, directory).set(set).join(PAIR)
}

const PAIR: &str = "pair.pem";

/// Held by the one process that orders.
pub(crate) struct Lock(#[expect(dead_code, reason = "held")] File);

impl Folder {
    pub(crate) fn of(state: &Path, directory: &str) -> Self {
        Self { path: state.join("acme").join(folder_name(directory)) }
    }

    /// The lock over all directories; `None` while another process has it.
    pub(crate) fn lock(state: &Path) -> io::Result<Option<Lock>> {
        let folder = state.join("acme");
        make_folder(&folder)?;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(folder.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn set(&self, set: &NameSet) -> PathBuf {
        self.path.join(set.file_name())
    }

    pub(crate) fn account(&self) -> io::Result<Option<(String, Registration)>> {
        let Some(key) = read_text(&self.path.join(ACCOUNT_KEY))? else { return Ok(None) };
        let registered = read_json(&self.path.join(ACCOUNT))?.unwrap_or_default();
        Ok(Some((key, registered)))
    }

    pub(crate) fn write_account_key(&self, key: &str) -> io::Result<()> {
        write(&self.path.join(ACCOUNT_KEY), key.as_bytes())
    }

    pub(crate) fn write_account(&self, registered: &Registration) -> io::Result<()> {
        write_json(&self.path.join(ACCOUNT), registered)
    }

    pub(crate) fn pair(&self, set: &NameSet) -> io::Result<Option<String>> {
        read_text(&self.set(set).join(PAIR))
    }

    pub(crate) fn write_pair(&self, set: &NameSet, chain: &str, key: &str) -> io::Result<()> {
        let gap = if chain.ends_with('\n') { "" } else { "\n" };
        write(&self.set(set).join(PAIR), format!("{chain}{gap}{key}").as_bytes())
    }

    /// What is not what was written is as good as none: an order is lost, and made again.
    pub(crate) fn state(&self, set: &NameSet) -> io::Result<SetState> {
        Ok(read_json(&self.set(set).join(STATE))?.unwrap_or_else(SetState::new))
    }

    pub(crate) fn write_state(&self, set: &NameSet, state: &SetState) -> io::Result<()> {
        write_json(&self.set(set).join(STATE), state)
    }
}

const ACCOUNT_KEY: &str = "account.pem";
const ACCOUNT: &str = "account.json";
const STATE: &str = "state.json";

/// Where the CA has the account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registration {
    /// Its URL; `None` before the CA has answered.
    pub(crate) url: Option<String>,
    /// What the CA was told.
    #[serde(default)]
    pub(crate) contact: Vec<String>,
    /// Unix seconds.
    #[serde(default)]
    pub(crate) since: i64,
}

/// What has to outlive the process of one set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SetState {
    /// The key of the next certificate in PEM, which is there before its order is.
    #[serde(default)]
    pub(crate) key: Option<String>,
    /// URL of the order under way.
    #[serde(default)]
    pub(crate) order: Option<String>,
    /// In a row.
    #[serde(default)]
    pub(crate) failures: u32,
    #[serde(default)]
    pub(crate) failure: Option<LastFailure>,
    /// Not before that, after a failure.
    #[serde(default)]
    pub(crate) not_before: Option<i64>,
    /// What the CA has said of the certificate that there is.
    #[serde(default)]
    pub(crate) window: Option<Window>,
    /// When to ask it again.
    #[serde(default)]
    pub(crate) ask_at: i64,
    /// How often in a row it has not answered (RFC 9773, section 4.3.3: with growing pauses).
    #[serde(default)]
    pub(crate) unanswered: u32,
    #[serde(default)]
    pub(crate) draw: u16,
}

/// The last try that has failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LastFailure {
    pub(crate) at: i64,
    pub(crate) setback: Setback,
    pub(crate) words: String,
}

impl SetState {
    pub(crate) fn new() -> Self {
        Self {
            key: None,
            order: None,
            failures: 0,
            failure: None,
            not_before: None,
            window: None,
            ask_at: 0,
            unanswered: 0,
            draw: fastrand::u16(..),
        }
    }
}

/// The host, for people, and a hash of the whole.
fn folder_name(directory: &str) -> String {
    let host =
        directory.split("://").nth(1).unwrap_or(directory).split(['/', ':']).next().unwrap_or_default();
    let host: String =
        host.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-')).take(100).collect();
    let hash = Sha256::digest(directory.as_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{host}-{hash}")
}

fn read_text(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(named(&error, path)),
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    Ok(read_text(path)?.and_then(|text| serde_json::from_str(&text).ok()))
}

fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write(path, &serde_json::to_vec_pretty(value)?)
}

/// Writes in place of what there is. After a crash the file has either of both.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    try_write(path, bytes).map_err(|error| named(&error, path))
}

fn try_write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    // Left from a crash; it was never in use.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| {
        // A full disk leaves a useless part.
        let _ = fs::remove_file(&new);
    })?;
    fs::rename(&new, path)?;
    // A name is on the disk once its folder is.
    File::open(folder)?.sync_all()
}

/// Makes a folder and those above it; each is on the disk then.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_folder(above)?;
        DirBuilder::new().mode(0o700).create(folder)?;
        return File::open(above)?.sync_all();
    }
    DirBuilder::new().mode(0o700).create(folder)
}

fn named(error: &io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn set() -> NameSet {
        NameSet::group(["a.example"]).remove(0)
    }

    #[test]
    fn what_was_written_is_read_back_and_is_its_owners_alone() {
        let place = courser_testkit::Folder::new();
        let folder = Folder::of(place.path(), "https://ca.example/directory");
        assert!(folder.pair(&set()).unwrap().is_none() && folder.account().unwrap().is_none());
        folder.write_pair(&set(), "chain", "key").unwrap();
        folder.write_account_key("secret").unwrap();
        assert_eq!(folder.pair(&set()).unwrap().as_deref(), Some("chain\nkey"));
        assert_eq!(folder.account().unwrap(), Some(("secret".to_owned(), Registration::default())));
        let path = pair_file(place.path(), "https://ca.example/directory", &set());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_half_written_state_is_none() {
        let place = courser_testkit::Folder::new();
        let folder = Folder::of(place.path(), "https://ca.example/directory");
        let state = SetState { order: Some("https://ca.example/1".to_owned()), ..SetState::new() };
        folder.write_state(&set(), &state).unwrap();
        assert_eq!(folder.state(&set()).unwrap().order, state.order);
        fs::write(folder.set(&set()).join(STATE), "{\"order\": \"https").unwrap();
        assert_eq!(folder.state(&set()).unwrap().order, None);
    }

    #[test]
    fn each_directory_has_a_folder_of_its_own_that_a_url_cannot_leave() {
        let names = ["https://ca.example/directory", "https://ca.example/staging", "https://../../x"]
            .map(folder_name);
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| !name.contains('/') && name.len() > 9), "{names:?}");
        assert!(names[0].starts_with("ca.example-"));
    }

    #[test]
    fn one_process_orders_at_a_time() {
        let place = courser_testkit::Folder::new();
        let first = Folder::lock(place.path()).unwrap();
        assert!(first.is_some() && Folder::lock(place.path()).unwrap().is_none());
        drop(first);
        assert!(Folder::lock(place.path()).unwrap().is_some());
    }
}
