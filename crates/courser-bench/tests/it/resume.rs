//! What was measured is on disk whatever happens: Ctrl-C, a kill, a full disk; and a suite goes on where it stopped.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use courser_record::Lab;
use courser_record::lab::{Block, CellState};
use courser_testkit::{Process, Signal, leave_out, require};

use crate::mini::{Mini, SUITE, cell, ended};
use crate::targets::of_folder;

const TARGETS: [&str; 2] = ["nginx", "haproxy"];
/// Four blocks, the first of which is over long before the last.
const TWO_ROUNDS: [&str; 4] = ["--rounds", "2", "--seconds", "600ms"];

fn blocks(lab: &Lab) -> Vec<&Block> {
    lab.cells.iter().flat_map(|cell| &cell.blocks).collect()
}

#[test]
fn a_suite_that_was_cut_goes_on_where_it_stopped() {
    let Some(mini) = Mini::of(&TARGETS) else { return };
    let process = Process::start(&mut mini.suite(&TWO_ROUNDS));
    let first = mini.first_block();
    process.signal(Signal::SIGINT);
    let run = process.finish();
    ended(&run, 6, &["not finished", "record: record.json"]);
    let cut = mini.record();
    assert_eq!(cut.envelope.cut.as_deref(), Some("Ctrl-C"));
    let page = fs::read_to_string(mini.join("record.html")).unwrap();
    assert!(page.contains("Cut short (Ctrl-C)") && run.stdout.contains("Cut short (Ctrl-C)"), "{run:?}");
    assert!(blocks(&cut).len() < 4 && blocks(&first).iter().all(|block| blocks(&cut).contains(block)));
    assert_eq!(of_folder(mini.path()), Vec::<String>::new());

    let run = mini.run(&[&TWO_ROUNDS[..], &["--resume"]].concat());
    ended(&run, 0, &[]);
    let whole = mini.record();
    assert_eq!(whole.envelope.cut, None);
    for target in TARGETS {
        let (cell, before) = (cell(&whole, target), cell(&cut, target));
        let rounds: Vec<u32> = cell.blocks.iter().map(|block| block.round).collect();
        assert_eq!((cell.state, rounds.len()), (CellState::Done, 2), "{target}: {rounds:?}");
        assert!(rounds.contains(&0) && rounds.contains(&1), "{target}: {rounds:?}");
        assert!(before.blocks.iter().all(|block| cell.blocks.contains(block)), "{target}");
    }
    assert!(whole.elapsed_us > cut.elapsed_us && whole.envelope.created == cut.envelope.created);
}

#[test]
fn a_record_of_something_else_is_not_touched() {
    let Some(mini) = Mini::of(&["nginx"]) else { return };
    mini.measured(&[]);
    let before = fs::read(mini.join("record.json")).unwrap();
    ended(&mini.run(&[]), 2, &["record.json is there already", "--resume goes on with it"]);
    let other = ["run", "handshake-flood", "--targets", "nginx", "--record", "record.json", "--resume"];
    ended(&mini.finished(&other), 2, &["record.json: of the suite mini in its full variant"]);
    ended(&mini.run(&["--quick", "--resume"]), 2, &["of the suite mini in its full variant"]);
    ended(&mini.run(&["--resume", "--rtt", "20ms"]), 2, &["another --rtt: none", "name another file"]);
    mini.write("mini.toml", SUITE.replace("P-256", "P-384"));
    let said = "its case full was \"TLS 1.3, P-256, 1 KB, 8 connections\", and is \"TLS 1.3, P-384,";
    ended(&mini.run(&["--resume"]), 2, &[said]);
    assert!(fs::read(mini.join("record.json")).unwrap() == before, "the record has changed");
    mini.write("record.json", &before[..before.len() / 2]);
    ended(&mini.run(&["--resume"]), 2, &["record.json: the record ends in the middle, at line "]);
}

#[test]
fn a_kill_leaves_a_whole_record_and_no_target() {
    let Some(mini) = Mini::of(&TARGETS) else { return };
    let mut process = Process::start(&mut mini.suite(&TWO_ROUNDS));
    let first = mini.first_block();
    assert!(of_folder(mini.path()).iter().any(|process| process.contains("nginx.conf")), "nothing to leave");
    process.signal(Signal::SIGKILL);
    assert_eq!(process.wait().code(), None);
    mini.wait_until_nothing_is_left();
    let left = mini.record();
    assert_eq!(left.envelope.cut.as_deref(), Some("not finished"));
    assert!(blocks(&first).iter().all(|block| blocks(&left).contains(block)));
    crate::mini::wait("the end of the folder with private keys", || scratch(&mini).is_empty().then_some(()));
    ended(&mini.finished(&["report", "record.json", "-o", "cut.html"]), 0, &[]);
    assert!(fs::read_to_string(mini.join("cut.html")).unwrap().contains("Cut short (not finished)"));
}

/// Folders for targets.
fn scratch(mini: &Mini) -> Vec<String> {
    let names = fs::read_dir(mini.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names
        .filter_map(|name| name.into_string().ok().filter(|name| name.starts_with("courser-bench-")))
        .collect()
}

/// A file system of a few pages that is gone with this.
struct Disk(PathBuf);

impl Disk {
    /// `None` where nothing may be mounted, which is told.
    fn new(place: &Path) -> Option<Self> {
        let (mount, _) = (require("mount")?, require("umount")?);
        fs::create_dir(place).unwrap();
        let mut command = Command::new(mount);
        let run = command.args(["-t", "tmpfs", "-o", "size=256k", "none"]).arg(place).output().unwrap();
        if !run.status.success() {
            leave_out(format!("nothing may be mounted: {}", String::from_utf8_lossy(&run.stderr)));
            return None;
        }
        Some(Self(place.to_owned()))
    }

    /// Leaves no byte.
    fn fill(&self) -> usize {
        let mut file = fs::File::create(self.0.join("others")).unwrap();
        (0..).take_while(|_| file.write_all(&[7; 512]).is_ok()).count() * 512
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, since a program that a failed test has left may still be there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_is_full_breaks_nothing_and_loses_nothing_that_was_printed() {
    let Some(mini) = Mini::of(&TARGETS) else { return };
    let Some(disk) = Disk::new(&mini.join("disk")) else { return };
    let kept = disk.0.join("record.json");
    let mut command = mini.command(&["run", "mini.toml", "--record", "disk/record.json", "--json"]);
    let process = Process::start(command.args(TWO_ROUNDS));
    let read = || Lab::from_json(fs::read(&kept).ok()?).ok().filter(|lab| !blocks(lab).is_empty());
    let first = crate::mini::wait("a block in the record", read);
    let others = disk.fill();
    let run = process.finish();
    let full = "warning: cannot write disk/record.json: No space left on device";
    ended(&run, 1, &[full, "measuring goes on", "error: cannot write disk/record.json", "make room"]);
    assert_eq!(run.stderr.matches("warning: ").count(), 1, "{run:?}");
    assert_eq!(fs::read(disk.0.join("others")).unwrap().len() / 512 * 512, others);
    let left = Lab::from_json(fs::read(&kept).unwrap()).unwrap();
    assert!(!blocks(&left).is_empty() && blocks(&left).len() < 4, "{}", blocks(&left).len());
    let printed = Lab::from_json(&run.stdout).unwrap();
    assert_eq!(blocks(&printed).len(), 4);
    for block in blocks(&first) {
        assert!(blocks(&left).contains(&block) && blocks(&printed).contains(&block));
    }
    let names = fs::read_dir(&disk.0).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 2, "something half written is left");
}
