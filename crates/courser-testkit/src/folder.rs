//! A temporary folder that goes away with its owner.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// A folder under the system's temporary folder, readable by its owner only, removed when dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes an empty folder of its own.
    pub fn new() -> Self {
        loop {
            let path = std::env::temp_dir().join(unused_name());
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Self { path },
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot create {}: {error}", path.display()),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name` inside, whether it exists or not.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file inside with mode 0600 and returns its path; an existing file is replaced.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(contents.as_ref()));
        if let Err(error) = written {
            panic!("cannot write {}: {error}", path.display());
        }
        path
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind after a failure here is clutter, not a wrong test.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Unique within the process by the counter, across processes by the process id; a leftover of an earlier process
/// with the same id makes `create` fail and the caller tries again.
fn unused_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("courser-test-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
