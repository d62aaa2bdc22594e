//! The process guard.

use std::{path::Path, process::Command, time::Duration};

use courser_testkit::{Folder, Process, Signal, process::pinned, require};

fn shell(script: &str) -> Process {
    Process::start(Command::new("sh").arg("-c").arg(script))
}

#[test]
fn lines_of_both_outputs_are_kept() {
    let mut process = shell("echo one; echo two; echo three >&2; printf four");
    assert!(process.wait().success());
    assert_eq!(process.wait_stdout("four", |lines| lines.get(2).cloned()), "four");
    assert_eq!(process.stdout(), ["one", "two", "four"]);
    assert_eq!(process.wait_stderr_line("thr"), "three");
}

#[test]
fn a_signal_reaches_the_program() {
    let mut process = shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    process.wait_stdout("ready", |lines| lines.first().cloned());
    assert_eq!(process.stop().code(), Some(7));
    assert_eq!(process.wait_stdout("bye", |lines| lines.get(1).cloned()), "bye");
}

#[test]
fn a_program_reads_its_input_and_is_read_to_its_end() {
    let mut script = Command::new("sh");
    let ended =
        Process::start_with_input(script.args(["-c", "sort; echo >&2 done; exit 3"]), "b\na\n").finish();
    assert_eq!((ended.status.code(), &*ended.stdout, &*ended.stderr), (Some(3), "a\nb", "done"));
}

#[test]
#[should_panic(expected = "the output ended first")]
fn waiting_for_a_line_that_cannot_come_fails() {
    shell("echo other >&2").wait_stderr_line("this");
}

#[test]
fn dropping_it_ends_a_program_that_ignores_sigterm_and_its_children() {
    let process = shell("trap '' TERM; sleep 600 & echo $!; while :; do wait; done");
    let child = process.wait_stdout("child", |lines| lines.first().cloned());
    drop(process);
    // Bounded by the harness only: the kernel ends it a moment after the signal, init reaps it whenever it likes.
    let lives = |stat: String| !stat.contains(") Z ");
    while std::fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(lives) {
        std::thread::yield_now();
    }
}

#[test]
fn processor_time_counts_children_and_rises_with_work() {
    let process = shell("(while :; do :; done) & echo started; wait");
    process.wait_stdout("started", |lines| lines.first().cloned());
    let before = process.cpu_time();
    // Bounded by the harness only: a busy loop gets processor time sooner or later.
    while process.cpu_time() < before + Duration::from_millis(20) {
        std::thread::yield_now();
    }
    assert!(process.memory().pss > 0);
    process.signal(Signal::SIGKILL);
}

#[test]
fn a_pinned_program_sees_one_core() {
    if require("taskset").is_none() {
        return;
    }
    let mut command = pinned(Path::new("/bin/grep"), 0);
    let process = Process::start(command.args(["Cpus_allowed_list", "/proc/self/status"]));
    let line = process.wait_stdout("status", |lines| lines.first().cloned());
    assert_eq!(line.split_whitespace().last(), Some("0"));
}

#[test]
fn a_folder_goes_with_its_owner() {
    let folder = Folder::new();
    let file = folder.write("a", "b");
    assert!(file.exists());
    drop(folder);
    assert!(!file.exists());
}
