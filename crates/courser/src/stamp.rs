//! Which state of a file was read: so that a file that has changed since can be told from one that has not, without reading it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The state of one file; two states with the same stamp have the same contents, but for writers who set clocks back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Of the inode: also a file that was written and given its old time is another one.
    changed: (i64, i64),
}

impl Stamp {
    /// Of the file behind links; `None` where there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// The states of some files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamps(BTreeMap<PathBuf, Option<Stamp>>);

impl Stamps {
    /// As they are now.
    pub(crate) fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(
            files
                .into_iter()
                .map(|file| (Stamp::of(&file), file))
                .map(|(stamp, file)| (file, stamp))
                .collect(),
        )
    }

    /// The same files as they are now.
    pub(crate) fn now(&self) -> Self {
        Self::of(self.0.keys().cloned())
    }

    /// The files whose state is another one in `later`, or that are in one of the two alone.
    pub(crate) fn changed<'a>(&'a self, later: &'a Self) -> Vec<&'a Path> {
        let differs = |file: &&PathBuf| self.0.get(*file) != later.0.get(*file);
        let gone = self.0.keys().filter(differs);
        let new = later.0.keys().filter(|file| !self.0.contains_key(*file));
        gone.chain(new).map(PathBuf::as_path).collect()
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use courser_testkit::Folder;

    use super::*;

    #[test]
    fn a_file_that_is_written_replaced_relinked_or_removed_is_another_one() {
        let folder = Folder::new();
        let [written, replaced, kept] = ["written", "replaced", "kept"].map(|name| folder.write(name, "1"));
        let (removed, link) = (folder.write("removed", "1"), folder.join("link"));
        symlink(&written, &link).unwrap();
        let files = [&written, &replaced, &kept, &removed, &link].map(Clone::clone);
        let before = Stamps::of(files);
        assert!(before.changed(&before.now()).is_empty());
        // Longer: a clock may not have moved on since.
        fs::write(&written, "12").unwrap();
        fs::rename(folder.write("new", "1"), &replaced).unwrap();
        fs::remove_file(&removed).unwrap();
        let after = before.now();
        assert_eq!(before.changed(&after), [&link, &removed, &replaced, &written].map(PathBuf::as_path));
    }
}
