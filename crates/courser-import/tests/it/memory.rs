//! Files that are in no file system, and what is looked for in an import.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use courser_import::{Effect, Files, Import, Malformed};

#[derive(Default)]
pub(crate) struct Memory(pub(crate) BTreeMap<PathBuf, String>);

impl Memory {
    pub(crate) fn of<const N: usize>(files: [(&str, &str); N]) -> Self {
        Self(files.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into())
    }
}

impl Files for Memory {
    fn read(&self, file: &Path) -> io::Result<String> {
        self.0.get(file).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let found: Vec<_> = self.0.keys().filter(|file| file.parent() == Some(folder)).cloned().collect();
        if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
    }
}

/// The configuration without its comments.
pub(crate) fn body(import: &Import) -> String {
    let lines = import.toml.lines().filter(|line| !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n").trim_start().to_owned() + "\n"
}

pub(crate) fn unsupported(import: &Import) -> Vec<String> {
    let remarks = import.remarks.iter().filter(|remark| remark.effect == Effect::Unsupported);
    remarks.map(ToString::to_string).collect()
}

pub(crate) fn ok(import: Result<Import, Malformed>) -> Import {
    import.expect("the text is well formed")
}
