//! What people type: help, checks, pages, exit codes.

use std::process::Command;

use courser_testkit::{Process, process::Finished, require};

use crate::stage::{Stage, content, courser, run, run_courser};

#[test]
fn help_of_the_program_shows_examples_signals_and_exit_codes() {
    let help = content(run_courser(&["--help"]));
    for part in ["Examples:", "courser serve --listen '*:8443'", "Signals:", "SIGTERM", "Exit codes:"] {
        assert!(help.contains(part), "{part} is missing in\n{help}");
    }
}

#[test]
fn help_of_each_command_shows_an_example() {
    for command in [&["serve"][..], &["check"], &["config", "defaults"], &["man"], &["completions"]] {
        let help = content(run_courser(&[command, &["--help"]].concat()));
        let example = format!("  courser {}", command.join(" "));
        assert!(help.contains("Example") && help.contains(&example), "{example} is missing in\n{help}");
    }
}

#[test]
fn without_a_command_the_help_is_shown_and_the_exit_code_is_2() {
    let refused = run_courser(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("Usage: courser"), "{}", refused.stderr);
}

#[test]
fn an_unknown_flag_is_answered_with_the_nearest() {
    let refused = run_courser(&["serve", "--backendd", "127.0.0.1:1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("'--backend'"), "{}", refused.stderr);
}

#[test]
fn check_tells_all_problems_at_once_each_with_its_place() {
    let (path, checked) = check(
        "workerz = 4
drain_timeout = '30'
[[listener]]
listen = '127.0.0.1:99999'
backend = '127.0.0.1:80'
versions = ['1.4']
",
    );
    assert_eq!(checked.status.code(), Some(2));
    for (place, text) in [
        ("1:1", "workerz"),
        ("1:1", "`workers`"),
        ("2:17", "'30'"),
        ("4:10", "127.0.0.1:99999"),
        ("6:13", "1.4"),
    ] {
        let place = format!("{path}:{place}");
        assert!(checked.stderr.contains(&place), "{place} is missing in\n{}", checked.stderr);
        assert!(checked.stderr.contains(text), "{text} is missing in\n{}", checked.stderr);
    }
    assert!(checked.stderr.contains("^^^"), "nothing is underlined in\n{}", checked.stderr);
}

#[test]
fn check_finds_missing_files_and_names_the_setting() {
    let (path, checked) = check("[[listener]]\ncert = 'nowhere.pem'\nbackend = '127.0.0.1:80'\n");
    assert_eq!(checked.status.code(), Some(2));
    assert!(checked.stderr.contains(&format!("{path}:2:8")), "{}", checked.stderr);
    assert!(checked.stderr.contains("nowhere.pem"), "{}", checked.stderr);
}

#[test]
fn check_of_a_good_file_says_so_and_listens_nowhere() {
    let stage = Stage::new();
    let cert = stage.certificate.display();
    let text = format!("[[listener]]\nlisten = '192.0.2.1:443'\ncert = '{cert}'\nbackend = '127.0.0.1:80'\n");
    let file = stage.folder.write("courser.toml", text);
    let said = content(run_courser(&["check", "--config", file.to_str().unwrap()]));
    assert_eq!(said, "ok: listeners: 1, certificates: 1");
}

#[test]
fn serve_refuses_what_check_refuses() {
    let refused = run_courser(&["serve", "--listen", "127.0.0.1:0"]);
    let checked = run_courser(&["check", "--listen", "127.0.0.1:0"]);
    assert_eq!((refused.status.code(), checked.status.code()), (Some(2), Some(2)));
    assert_eq!(refused.stderr, checked.stderr);
}

#[test]
fn what_the_system_refuses_is_exit_code_1() {
    // An address of documentation (RFC 5737) that no machine has.
    let refused = run_courser(&["serve", "--listen", "192.0.2.1:0", "--backend", "127.0.0.1:80"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("cannot listen on 192.0.2.1:0"), "{}", refused.stderr);
}

#[test]
fn the_defaults_pass_check_once_a_backend_is_named() {
    let defaults = content(run_courser(&["config", "defaults"]));
    let named = defaults.replace("# backend = []", "backend = ['127.0.0.1:80']");
    let (_, checked) = check(&named);
    content(checked);
}

#[test]
fn the_manual_page_is_one_that_man_can_show() {
    let page = content(run_courser(&["man"]));
    assert!(page.contains(".TH courser 1"), "{page}");
    let Some(groff) = require("groff") else { return };
    let mut groff = Command::new(groff);
    groff.args(["-man", "-Tutf8", "-P-cbou", "-ww"]);
    let shown = Process::start_with_input(&mut groff, page).finish();
    assert_eq!(shown.stderr, "");
    for part in ["SYNOPSIS", "COMMAND courser check", "--listen", "--drain-timeout", "Exit codes"] {
        assert!(shown.stdout.contains(part), "{part} is missing in\n{}", shown.stdout);
    }
}

#[test]
fn completions_are_scripts_that_shells_can_read() {
    for (shell, program) in [("bash", "bash"), ("zsh", "zsh"), ("fish", "fish")] {
        let script = content(run_courser(&["completions", shell]));
        assert!(script.contains("--send-proxy") || script.contains("send-proxy"), "{script}");
        let Some(program) = require(program) else { continue };
        content(Process::start_with_input(Command::new(program).arg("-n"), script).finish());
    }
}

#[test]
fn bash_completes_the_flags_of_serve() {
    let script = content(run_courser(&["completions", "bash"]));
    let Some(bash) = require("bash") else { return };
    let asked = "
COMP_WORDS=(courser serve --drain) COMP_CWORD=2
_courser courser --drain serve
echo \"${COMPREPLY[@]}\"";
    let said = content(run(Command::new(bash).arg("-c").arg(format!("{script}\n{asked}"))));
    assert_eq!(said, "--drain-timeout");
}

#[test]
fn without_a_certificate_one_is_made_and_that_is_said_loudly() {
    let courser = courser().backend("127.0.0.1:9").start();
    let warning = courser.wait_stderr_line("self-signed");
    assert!(warning.contains("warning"), "{warning}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let mut command = Command::new("bash");
    command.args([
        "-c",
        "set -o pipefail; \"$0\" man | head -c 1 > /dev/null",
        env!("CARGO_BIN_EXE_courser"),
    ]);
    content(run(&mut command));
}

/// Checks a file of this text: its path, and what was said.
fn check(text: &str) -> (String, Finished) {
    let stage = Stage::new();
    let file = stage.folder.write("courser.toml", text);
    let path = file.display().to_string();
    let checked = run_courser(&["check", "--config", &path]);
    (path, checked)
}
