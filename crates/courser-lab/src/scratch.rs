//! A folder for what a suite writes for its targets: keys, configurations, logs. It goes when the suite ends.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The folder; dropping it removes it.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder that nobody else can read.
    pub fn new() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        for number in 0..100 {
            let path = parent.join(format!("courser-bench-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o711).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(why) => return Err(Error::system(format_args!("making {}", path.display()), why)),
            }
        }
        Err(Error::System(format!("{} is full of folders of ours: remove courser-bench-*", parent.display())))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
