//! A suite of one case, run for real in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use courser_record::Lab;
use courser_record::lab::{Cell, CellState};
use courser_testkit::{Finished, Folder, PATIENCE, Process, skip};

use crate::targets::{is_installed, of_folder};

/// The file of the suite.
pub(crate) const SUITE: &str = r#"
name = "mini"
title = "A mini suite"
source = "nobody"
question = "Does it run?"
analysis = "It does, or it does not."
targets = ["nginx", "haproxy"]

[[group]]
id = "full"
measure = "saturation"
[group.case]
version = "1.3"
key = "P-256"
object = "1 KB"
clients = 8

[[table]]
id = "all"
title = "At saturation"
rows = "target"
columns = "version"
values = ["tps", "cpu"]
"#;

/// Blocks as short as possible.
const SHORT: [&str; 4] = ["--rounds", "1", "--seconds", "300ms"];

/// One block in which something is sure to happen.
pub(crate) const A_SECOND: [&str; 4] = ["--rounds", "1", "--seconds", "1s"];

/// A folder with the suite in `mini.toml` and, later, its record in `record.json`.
pub(crate) struct Mini {
    pub(crate) folder: Folder,
}

impl Mini {
    /// The suite as it is.
    pub(crate) fn new() -> Self {
        Self::with(SUITE)
    }

    /// Another text of the suite.
    pub(crate) fn with(text: &str) -> Self {
        let folder = Folder::new();
        folder.write("mini.toml", text);
        Self { folder }
    }

    /// The suite for these targets; `None` when one is not installed here, which is told.
    pub(crate) fn of(targets: &[&str]) -> Option<Self> {
        if let Some(missing) = targets.iter().find(|target| !is_installed(target)) {
            skip(format!("{missing} is not installed"));
            return None;
        }
        Some(Self::with(&SUITE.replace(r#"["nginx", "haproxy"]"#, &format!("{targets:?}"))))
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        self.folder.write(name, text)
    }

    /// The program in this folder; what it writes for targets is in it too, so that they can be found by it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
        command.args(arguments).current_dir(self.path()).env("TMPDIR", self.path());
        command
    }

    /// The program, run to its end.
    pub(crate) fn finished(&self, arguments: &[&str]) -> Finished {
        Process::start(&mut self.command(arguments)).finish()
    }

    /// The suite, with `arguments` instead of shortness where there are any of `--rounds`.
    pub(crate) fn suite(&self, arguments: &[&str]) -> Command {
        let short: &[&str] = if arguments.contains(&"--rounds") { &[] } else { &SHORT };
        self.command(&[&["run", "mini.toml", "--record", "record.json"], short, arguments].concat())
    }

    /// The suite, run to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        Process::start(&mut self.suite(arguments)).finish()
    }

    /// One block of each target. Of a single one the rate may be inconclusive where cores are few.
    pub(crate) fn measured(&self, arguments: &[&str]) {
        has_measured(&self.run(arguments), &[]);
    }

    /// The record as it is on disk.
    pub(crate) fn record(&self) -> Lab {
        Lab::from_json(fs::read(self.join("record.json")).unwrap()).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The record once it has a block; it is whole whenever it is looked at.
    pub(crate) fn first_block(&self) -> Lab {
        let path = self.join("record.json");
        wait("a block in the record", || {
            let lab = path.exists().then(|| self.record())?;
            lab.cells.iter().any(|cell| !cell.blocks.is_empty()).then_some(lab)
        })
    }

    /// Waits until nothing runs any more that has to do with the folder.
    pub(crate) fn wait_until_nothing_is_left(&self) {
        wait("the end of all targets", || of_folder(self.path()).is_empty().then_some(()));
    }
}

/// An end with this code, and with `said` on standard error.
pub(crate) fn ended(run: &Finished, code: i32, said: &[&str]) {
    assert_eq!(run.status.code(), Some(code), "{run:?}");
    contains(run, said);
}

/// As [`ended`], for a run whose rates may be inconclusive: the generator of a debug build is slow.
pub(crate) fn has_measured(run: &Finished, said: &[&str]) {
    assert!(matches!(run.status.code(), Some(0 | 3)), "{run:?}");
    contains(run, said);
}

fn contains(run: &Finished, said: &[&str]) {
    for part in said {
        assert!(run.stderr.contains(part), "no {part:?}: {run:?}");
    }
}

/// How far a cell came, and why not farther.
pub(crate) fn outcome<'a>(lab: &'a Lab, target: &str) -> (CellState, &'a str) {
    let cell = cell(lab, target);
    (cell.state, cell.reason.as_deref().unwrap_or_default())
}

/// The cell of the only case.
pub(crate) fn cell<'a>(lab: &'a Lab, target: &str) -> &'a Cell {
    lab.cell("full", target).unwrap_or_else(|| panic!("no cell of {target}: {:?}", lab.cells))
}

/// Looks again and again: files and processes of others do not tell when they change.
pub(crate) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A program for `PATH` that is a shell script; asked for its version it is of version 1.
pub(crate) fn fake(folder: &Path, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;

    let path = folder.join(name);
    let asked = "case \"$1\" in --version|-v|-vv|-V) echo \"HAProxy version 1.0 - \"; exit 0;; esac\n";
    fs::write(&path, format!("#!/bin/sh\n{asked}{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}
