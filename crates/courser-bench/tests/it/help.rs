//! `--help`: what people read first, and what the command line says to those who mistype.

use std::process::Command;

use courser_testkit::{Finished, Process, require};

/// Columns of a page of help.
const WIDTH: usize = 110;

fn finished(arguments: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
    Process::start(command.args(arguments).env("COLUMNS", "200")).finish()
}

/// The verbs that the page of the program lists.
fn verbs() -> Vec<String> {
    let help = finished(&["--help"]).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).filter(|name| name != "help").collect()
}

/// It is printed on standard output, nothing else is, and its lines fit.
fn check(page: &Finished, of: &str) {
    assert!(page.status.success() && page.stderr.is_empty(), "{of}: {page:?}");
    let wide: Vec<&str> = page.stdout.lines().filter(|line| line.chars().count() > WIDTH).collect();
    assert!(wide.is_empty(), "{of}: {wide:#?}");
}

#[test]
fn every_verb_has_an_example_and_fits_the_page() {
    let verbs = verbs();
    assert!(verbs.len() >= 11, "{verbs:?}");
    for verb in &verbs {
        let page = finished(&[verb, "--help"]);
        check(&page, verb);
        let examples = page.stdout.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
        assert!(
            examples.clone().any(|line| line.contains(&format!("courser-bench {verb} "))
                || line.trim() == format!("courser-bench {verb}")),
            "{verb}: {page:?}"
        );
    }
}

#[test]
fn the_page_of_the_program_has_every_exit_code() {
    let page = finished(&["--help"]);
    check(&page, "the program");
    let codes = page.stdout.lines().skip_while(|line| *line != "Exit codes:").skip(1);
    let codes: Vec<&str> = codes.map_while(|line| line.split_whitespace().next()).collect();
    assert_eq!(codes, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
}

#[test]
fn the_manual_page_has_every_verb_and_shells_can_read_the_completions() {
    let page = finished(&["man"]).stdout;
    for verb in verbs() {
        assert!(page.contains(&format!(".SH COMMAND courser-bench {verb}\n")), "{verb}: {page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = finished(&["completions", shell]).stdout;
        assert!(script.contains("connection-rate"), "{shell}: {script}");
        let Some(program) = require(shell) else { continue };
        let read = Process::start_with_input(Command::new(program).arg("-n"), script).finish();
        assert!(read.status.success(), "{shell}: {read:?}");
    }
}

#[test]
fn a_mistyped_flag_is_told_with_the_one_that_was_meant() {
    let flags = [
        (vec!["load", "https://127.0.0.1:1/", "--rate", "1", "--reus", "4"], "--reuse"),
        (vec!["handshake", "127.0.0.1:1", "--conections", "4"], "--connections"),
        (vec!["search", "https://127.0.0.1:1/", "--rules", "avg<1ms"], "--rule"),
    ];
    for (arguments, meant) in flags {
        let run = finished(&arguments);
        assert_eq!(run.status.code(), Some(2), "{run:?}");
        assert!(run.stderr.contains(&format!("'{meant}'")), "{arguments:?}: {run:?}");
    }
    let run = finished(&["lod"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("'load'"), "{run:?}");
}

/// Of the same flag, one default for loads and another for handshakes.
#[test]
fn help_tells_the_default_that_a_verb_has() {
    for (verb, reuse) in [("load", "4"), ("ramp", "4"), ("search", "4"), ("handshake", "1")] {
        let page = finished(&[verb, "--help"]).stdout;
        let default =
            page.lines().skip_while(|line| !line.contains("--reuse <")).find(|line| line.contains("default"));
        assert!(
            default.is_some_and(|line| line.contains(&format!("[default: {reuse}]"))),
            "{verb}: {default:?}"
        );
    }
}
