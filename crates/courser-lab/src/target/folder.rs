//! Folders and files of targets.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes a folder that only we may list. Others may pass through it: there are programs that give up being root.
pub(super) fn make_folder(folder: &Path) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(0o711).create(folder);
    made.map_err(|why| format!("{}: {why}", folder.display()))
}

/// Writes a file for its owner alone.
pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    let named = |why: std::io::Error| format!("{}: {why}", path.display());
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).map_err(named)?;
    file.write_all(text.as_bytes()).map_err(named)
}
