//! Which state of a file was read: so that a file that has changed since can be told from one that has not, without reading it.

use std::cmp::Ordering;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::on_every_cpu::on_every_cpu;

/// The state of one file; two states with the same stamp have the same contents, but for writers who set clocks back.
/// Times are in nanoseconds since the beginning of 1970: of seconds and nanoseconds apart, a hundred thousand files would take
/// 1.6 MB more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: i64,
    /// Of the inode: also a file that was written and given its old time is another one.
    changed: i64,
}

impl Stamp {
    /// Of the file behind links; `None` where there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: nanoseconds(found.mtime(), found.mtime_nsec()),
            changed: nanoseconds(found.ctime(), found.ctime_nsec()),
        })
    }
}

/// Times before 1678 and after 2262 are one time each.
fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(A_SECOND).saturating_add(nanoseconds)
}

/// Nanoseconds.
const A_SECOND: i64 = 1_000_000_000;

/// Clocks of file systems move on by as much as two seconds at a time: a file that was written just before it was read may
/// have been written once more with the same stamp.
const CLOCK_STEP: i64 = 2;

/// The states of some files. What is the same in two of them is in memory once.
#[derive(Clone, Debug)]
pub(crate) struct Stamps {
    /// Sorted, each once.
    files: Arc<[Arc<Path>]>,
    states: Arc<[Option<Stamp>]>,
    /// Unix seconds.
    taken: i64,
}

impl Stamps {
    /// As they are now.
    pub(crate) fn of(files: impl IntoIterator<Item = Arc<Path>>) -> Self {
        let mut files: Vec<_> = files.into_iter().collect();
        // As bytes: to compare paths by their components costs ten times as much.
        files.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
        files.dedup_by(|one, other| one.as_os_str() == other.as_os_str());
        Self::now_of(files.into())
    }

    /// The same files as they are now.
    pub(crate) fn now(&self) -> Self {
        Self::now_of(Arc::clone(&self.files))
    }

    fn now_of(files: Arc<[Arc<Path>]>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let taken = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Self { states: on_every_cpu(&files, |file| Stamp::of(file)).into(), files, taken }
    }

    /// The same, but for a file that was read before: it has its state of `earlier`.
    pub(crate) fn with_state_of(mut self, file: Option<&Path>, earlier: &Self) -> Self {
        let place = |stamps: &Self| stamps.find(file?);
        if let (Some(place), Some(before)) = (place(&self), place(earlier)) {
            Arc::make_mut(&mut self.states)[place] = earlier.states[before];
        }
        self
    }

    /// The files whose state is another one in `later`, or that are in one of the two alone.
    pub(crate) fn changed<'a>(&'a self, later: &'a Self) -> Vec<&'a Path> {
        self.merge(later, |before, after| before != after)
    }

    /// The files of `later` that have to be read again, as what was read may not be what they have.
    pub(crate) fn outdated<'a>(&'a self, later: &'a Self) -> Vec<&'a Path> {
        let is_young = |stamp: &Stamp| stamp.changed / A_SECOND + CLOCK_STEP > self.taken;
        self.merge(later, |before, after| {
            before.is_none() || before != after || before.flatten().as_ref().is_some_and(is_young)
        })
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    fn find(&self, file: &Path) -> Option<usize> {
        self.files.binary_search_by(|known| known.as_os_str().cmp(file.as_os_str())).ok()
    }

    /// The files of either for whose states `differs`; `None` stands for those that are not in the list.
    fn merge<'a>(
        &'a self,
        later: &'a Self,
        differs: impl Fn(Option<Option<Stamp>>, Option<Option<Stamp>>) -> bool,
    ) -> Vec<&'a Path> {
        let mut found = Vec::new();
        let (mut one, mut other) = (0, 0);
        while one < self.len() || other < later.len() {
            let (before, after) = (self.files.get(one), later.files.get(other));
            let order = match (before, after) {
                (Some(before), Some(after)) => before.as_os_str().cmp(after.as_os_str()),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let state = |stamps: &Self, place: usize, absent: Ordering| {
                (order != absent).then(|| stamps.states[place])
            };
            if differs(state(self, one, Ordering::Greater), state(later, other, Ordering::Less)) {
                found.extend(if order == Ordering::Greater { after } else { before }.map(AsRef::as_ref));
            }
            one += usize::from(order != Ordering::Greater);
            other += usize::from(order != Ordering::Less);
        }
        found
    }
}

/// The same files in the same states, whenever that was seen.
impl PartialEq for Stamps {
    fn eq(&self, other: &Self) -> bool {
        self.states == other.states && (Arc::ptr_eq(&self.files, &other.files) || self.files == other.files)
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
        let files = [&written, &replaced, &kept, &removed, &link].map(|file| Arc::from(file.as_path()));
        let before = Stamps::of(files);
        assert!(before.changed(&before.now()).is_empty());
        // Longer: a clock may not have moved on since.
        fs::write(&written, "12").unwrap();
        fs::rename(folder.write("new", "1"), &replaced).unwrap();
        fs::remove_file(&removed).unwrap();
        let after = before.now();
        assert_eq!(before.changed(&after), [&link, &removed, &replaced, &written].map(|file| &**file));
        let others = Stamps::of([kept, folder.write("more", "1")].map(Arc::from));
        assert_eq!(after.changed(&others).len(), 5);
    }

    #[test]
    fn a_file_that_was_young_when_it_was_read_is_read_again() {
        let folder = Folder::new();
        let file: Arc<Path> = folder.write("file", "1").into();
        let young = Stamps::of([Arc::clone(&file)]);
        assert!(young.changed(&young.now()).is_empty() && young.outdated(&young.now()) == [&*file]);
        let old = Stamps { taken: young.taken + 2 * CLOCK_STEP, ..young.clone() };
        assert!(old.outdated(&young.now()).is_empty());
        let more: Arc<Path> = folder.write("more", "1").into();
        assert_eq!(old.outdated(&Stamps::of([file, Arc::clone(&more)])), [&*more]);
    }
}
