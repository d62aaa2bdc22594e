//! Comparing what is printed with what was printed when a person last looked at it.

use std::fs;
use std::path::{Path, PathBuf};

/// Set it to 1 to write what is printed now in place of what was kept.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

/// The root of this crate.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Holds `shown` to the file at `path`.
pub(crate) fn hold(shown: &str, path: &Path) -> Result<(), String> {
    if std::env::var_os(UPDATE).is_some() {
        fs::write(path, shown).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    if kept == shown {
        return Ok(());
    }
    let (path, again) = (path.display(), format!("{UPDATE}=1 cargo test -p courser-config"));
    Err(format!(
        "{path} is out of date; look at the difference, then run `{again}`\n--- now:\n{shown}\n--- kept:\n{kept}"
    ))
}

/// The files of a folder of fixtures with that extension, sorted.
pub(crate) fn fixtures(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = root().join("tests/fixtures").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}
