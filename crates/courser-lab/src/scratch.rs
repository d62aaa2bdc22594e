//! A folder for what a suite writes for its targets: keys, configurations, logs. It goes when the suite ends; when the
//! suite is killed, its keepers remove it (`supervise`), and when those were killed too, whoever starts next.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::Error;

/// What the names of all such folders begin with.
const NAME: &str = "courser-bench-";
/// How often it is tried to remove one, and after which pauses: a second in all.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// The folder; dropping it removes it.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder that nobody else can read. Those that dead processes have left are removed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        remove_stale(&parent);
        for number in 0..100 {
            let path = parent.join(format!("{}{number}", Self::prefix(std::process::id())));
            match DirBuilder::new().mode(0o711).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(why) => return Err(Error::system(format_args!("making {}", path.display()), why)),
            }
        }
        Err(Error::System(format!("{} is full of folders of ours: remove courser-bench-*", parent.display())))
    }

    /// What the names of the folders of a process begin with.
    pub fn prefix(pid: u32) -> String {
        format!("{NAME}{pid}-")
    }

    /// Removes a folder in which others may still write for a moment.
    pub fn remove(folder: &Path) {
        for _ in 0..TRIES {
            match fs::remove_dir_all(folder) {
                Err(why) if why.kind() != std::io::ErrorKind::NotFound => thread::sleep(PAUSE),
                _ => return,
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        Self::remove(&self.0);
    }
}

/// Removes our folders of processes that are not there any more.
fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_ours = entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == own);
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('-').next()?.parse::<u32>().ok());
        if is_ours && pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_removed_and_those_of_the_living_are_not() {
        let parent = courser_testkit::Folder::new();
        // Numbers of processes end at 4194304.
        let names =
            [Scratch::prefix(4_194_305), Scratch::prefix(std::process::id()), "courser-bench-notes".into()];
        for name in &names {
            fs::create_dir(parent.join(name)).unwrap();
            fs::write(parent.join(name).join("key"), "secret").unwrap();
        }
        remove_stale(parent.path());
        assert_eq!(names.map(|name| parent.join(&name).exists()), [false, true, true]);
    }
}
