//! Files that the program writes: whole or not at all.

use std::fs;
use std::path::Path;
use std::process::Command;

use courser_testkit::{Finished, Folder, Process, require, skip};

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../courser-report/tests/snapshots/primitives.json");

fn write(path: &Path) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
    Process::start(command.args(["report", SUITE, "--csv"]).arg(path)).finish()
}

#[track_caller]
fn fails(path: &Path, advice: &str) {
    let run = write(path);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let named = format!("error: cannot write {}: ", path.display());
    assert!(run.stderr.contains(&named) && run.stderr.contains(advice), "{run:?}");
}

#[test]
fn a_file_takes_the_place_of_the_one_before_and_nothing_else_is_left() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "the one before");
    let link = folder.join("link.csv");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(write(&link).status.success());
    assert!(fs::read_to_string(&path).unwrap().starts_with("suite,case,target,"));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link is still one");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_path_that_cannot_be_written_is_named_with_advice() {
    let folder = Folder::new();
    fails(&folder.join("no/a.csv"), "make its folder first");
    fails(folder.path(), "name a file");
    // What is no regular file is written to, and never replaced.
    fails("/dev/full".as_ref(), "No space left on device (os error 28); make room");
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn on_a_full_disk_the_file_before_survives() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.0.join("a.csv");
    fs::write(&path, "the one before").unwrap();
    fs::write(disk.0.join("others"), [7; 4096]).unwrap_or_default();
    while fs::OpenOptions::new()
        .append(true)
        .open(disk.0.join("others"))
        .is_ok_and(|mut file| std::io::Write::write_all(&mut file, &[7; 512]).is_ok())
    {}
    fails(&path, "a file that was there before is as it was");
    assert_eq!(fs::read_to_string(&path).unwrap(), "the one before");
    assert_eq!(fs::read_dir(disk.0.path()).unwrap().count(), 2, "no half of the new one is left");
}

/// A file system of 16 KiB.
struct SmallDisk(Folder);

impl SmallDisk {
    /// `None`, with the reason printed, for whoever may not mount.
    fn mount() -> Option<Self> {
        let (mount, _) = (require("mount")?, require("umount")?);
        let folder = Folder::new();
        let mut command = Command::new(mount);
        let output =
            command.args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(folder.path()).output().unwrap();
        if !output.status.success() {
            skip(String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
