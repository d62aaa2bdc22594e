//! Small files of the kernel, below a folder of choice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where `proc` and `sys` are.
pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// A file of one value.
    pub(super) fn line(&self, path: &str) -> Option<String> {
        // Several numbers stand apart by tabs, as in ip_local_port_range.
        self.text(path).map(|text| text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
    }

    pub(super) fn sysctl(&self, name: &str) -> Option<String> {
        self.line(&format!("proc/sys/{}", name.replace('.', "/")))
    }

    /// Names in a folder, in order; none without folder.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The name of what a link leads to.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.root.join(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// A file of choices, with the one that holds in brackets.
    pub(super) fn chosen(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// A file of lines "key: value"; of a key that comes again, as for each processor, the first. Empty without file.
    pub(super) fn table(&self, path: &str) -> BTreeMap<String, String> {
        let mut table = BTreeMap::new();
        for (key, value) in
            self.text(path).iter().flat_map(|text| text.lines()).filter_map(|l| l.split_once(':'))
        {
            table.entry(key.trim().to_owned()).or_insert_with(|| value.trim().to_owned());
        }
        table
    }
}
