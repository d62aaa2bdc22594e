//! Records on disk: whole or not at all.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use courser_record::{Problem, Record};
use courser_testkit::{Folder, require, skip};

use crate::sample::{self, Random};

fn some_record() -> Record {
    sample::record(1, &mut Random(2), None, 1_800_000_000_000_000)
}

#[test]
fn a_record_that_is_written_is_read_and_nothing_else_is_left() {
    let folder = Folder::new();
    let path = folder.join("a.json");
    some_record().write(&path).unwrap();
    assert_eq!(Record::read(&path).unwrap(), some_record());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_record_takes_the_place_of_the_one_before() {
    let folder = Folder::new();
    let path = folder.write("a.json", "the one before");
    let link = folder.join("link.json");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    some_record().write(&link).unwrap();
    assert_eq!(Record::read(&path).unwrap(), some_record());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link is still one");
}

#[test]
fn a_file_that_is_cut_is_told_with_its_name_and_place() {
    let folder = Folder::new();
    let text = some_record().to_json();
    let path = folder.write("a.json", &text[..text.len() / 2]);
    let error = Record::read(&path).unwrap_err();
    assert!(matches!(error.problem, Problem::Truncated { line, .. } if line > 100), "{error:?}");
    assert!(error.to_string().starts_with(&format!("{}: the record ends in the middle", path.display())));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Record::read(&Folder::new().join("no.json")).unwrap_err().to_string();
    assert!(error.contains("/no.json: cannot be read: No such file"), "{error}");
}

#[test]
fn a_folder_that_is_not_there_is_told_before_anything_else() {
    let error = some_record().write(&Folder::new().join("no/a.json")).unwrap_err().to_string();
    assert!(error.ends_with("make its folder first"), "{error}");
}

#[test]
fn a_folder_is_no_file() {
    let folder = Folder::new();
    let error = some_record().write(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("name a file"), "{error}");
}

/// What is no regular file is written to, and never replaced.
#[test]
fn a_device_that_is_full_is_told() {
    let error = some_record().write("/dev/full".as_ref()).unwrap_err().to_string();
    assert!(error.contains("/dev/full: No space left on device") && error.contains("make room"), "{error}");
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn on_a_full_disk_the_record_before_survives() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.folder.join("a.json");
    fs::write(&path, "the one before").unwrap();
    let error = some_record().write(&path).unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "the one before");
    assert_eq!(fs::read_dir(disk.folder.path()).unwrap().count(), 1, "no half of the new one is left");
}

/// A file system of 16 KiB.
struct SmallDisk {
    folder: Folder,
    umount: PathBuf,
}

impl SmallDisk {
    /// `None`, with the reason printed, for whoever may not mount.
    fn mount() -> Option<Self> {
        let (mount, umount) = (require("mount")?, require("umount")?);
        let folder = Folder::new();
        let mut command = Command::new(mount);
        let output =
            command.args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(folder.path()).output().unwrap();
        if !output.status.success() {
            skip(String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(Self { folder, umount })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new(&self.umount).arg(self.folder.path()).status();
    }
}
