//! `compare`: records before and after, platforms against a baseline, a program against itself.

use std::sync::OnceLock;

use courser_record::Lab;
use courser_testkit::{Fault, FaultyServer, skip};

use crate::mini::{Mini, ended};
use crate::support::{finished, url};
use crate::targets::is_installed;

/// Enough blocks for an interval.
const BLOCKS: u32 = 8;

/// A record of a real run whose block has come eight times, each a little different; `None` without nginx.
fn base() -> Option<&'static Lab> {
    static BASE: OnceLock<Option<Lab>> = OnceLock::new();
    let make = || {
        let mini = Mini::of(&["nginx"])?;
        mini.measured(&[]);
        let mut lab = mini.record();
        let first = lab.cells[0].blocks[0].clone();
        let one = |round: u32| {
            let mut block = first.clone();
            block.round = round;
            let window = &mut block.windows[0];
            // 1 ms of processor time per request, up to 0.7 % more.
            (window.succeeded, window.system_us) = (1000, Some(0));
            window.user_us = Some(1000 * (1000 + u64::from(round)));
            block
        };
        lab.cells[0].blocks = (0..BLOCKS).map(one).collect();
        Some(lab)
    };
    BASE.get_or_init(make).as_ref()
}

/// The same with other processor times, in percent.
fn scaled(lab: &Lab, percent: u64) -> Lab {
    let mut lab = lab.clone();
    for block in &mut lab.cells[0].blocks {
        let user = &mut block.windows[0].user_us;
        *user = user.map(|us| us * percent / 100);
    }
    lab
}

/// A folder with these records.
fn records(all: &[(&str, &Lab)]) -> Mini {
    let mini = Mini::new();
    for (name, lab) in all {
        mini.write(name, lab.to_json());
    }
    mini
}

#[test]
fn what_got_worse_by_more_than_is_allowed_is_an_exit_code_and_a_table() {
    let Some(base) = base() else { return };
    let (worse, better) = (scaled(base, 110), scaled(base, 90));
    let mini = records(&[("before.json", base), ("after.json", &worse), ("better.json", &better)]);
    let compare = |after, limit| mini.finished(&["compare", "before.json", after, "--fail-above", limit]);
    let run = compare("after.json", "3%");
    ended(&run, 8, &["worse: full of nginx: 10.0 % worse"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "| case | target | figure | before | after | change |", "{run:?}");
    assert!(lines[1].starts_with("|---|") && lines[2].starts_with("| full | nginx | "), "{run:?}");
    assert!(lines[2].contains("10.0 % worse (") && lines.len() == 3, "{run:?}");
    ended(&compare("after.json", "15%"), 0, &[]);
    ended(&compare("better.json", "3%"), 0, &[]);
    let same = compare("before.json", "3%");
    ended(&same, 0, &[]);
    assert!(same.stdout.contains("no change seen") && same.stderr.is_empty(), "{same:?}");
    // Without a limit it is a table and no judgement.
    ended(&mini.finished(&["compare", "before.json", "after.json"]), 0, &[]);
}

#[test]
fn records_of_different_machines_are_compared_with_a_warning() {
    let Some(base) = base() else { return };
    let mut other = scaled(base, 100);
    other.envelope.machine.cpu_model = "Another CPU".into();
    other.targets[0].version = "0.1".into();
    let run = records(&[("a.json", base), ("b.json", &other)]).finished(&["compare", "a.json", "b.json"]);
    ended(&run, 0, &["warning: of different machines: ", "Another CPU", "nginx is "]);
    assert!(run.stdout.contains("**Warning:** of different machines: "), "{run:?}");
    assert!(run.stdout.contains("| full | nginx |"), "{run:?}");
}

#[test]
fn platforms_are_told_as_losses_against_a_baseline() {
    let Some(base) = base() else { return };
    let (slow, fast) = (scaled(base, 125), scaled(base, 80));
    let mini = records(&[("metal.json", base), ("kvm.json", &slow), ("new.json", &fast)]);
    let run = mini.finished(&["compare", "--baseline", "metal.json", "kvm.json", "new.json"]);
    ended(&run, 0, &[]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "| case | target | figure | metal | kvm: loss | new: loss |", "{run:?}");
    assert!(lines[2].starts_with("| full | nginx |"), "{run:?}");
    assert!(lines[2].ends_with("| +25.0 % | -20.0 % |"), "{run:?}");
    ended(&mini.finished(&["compare", "--baseline", "metal.json"]), 2, &["needs records to compare with it"]);
}

#[test]
fn what_is_no_record_of_a_suite_is_told_as_what_it_is() {
    let Some(base) = base() else { return };
    let newer = base.to_json().replacen("\"version\": 3", "\"version\": 4", 1);
    let mini = records(&[("suite.json", base)]);
    mini.write("newer.json", newer);
    mini.write("text.json", "hello\n");
    let liar = FaultyServer::start(Fault::None);
    let load = mini.join("load.json");
    let keep = ["--duration", "1s", "--warm-up", "0", "--ramp-up", "0", "--record", load.to_str().unwrap()];
    let _ = finished(&[&["load", &url(liar.address()), "-c", "1"], &keep[..]].concat());
    for (file, said) in [
        ("newer.json", "newer.json: a record of version 4, and this program reads up to version 3"),
        ("text.json", "text.json: not JSON at line 1, column "),
        ("load.json", "load.json: a courser-record (of: load,"),
        ("nowhere.json", "nowhere.json: cannot be read: No such file"),
    ] {
        let run = mini.finished(&["compare", "suite.json", file]);
        ended(&run, 2, &["error: ", said]);
        let run = mini.finished(&["report", "suite.json", file, "-o", "page.html"]);
        ended(&run, 2, &["error: ", said]);
        assert!(run.stdout.is_empty() && !mini.join("page.html").exists(), "{file}: {run:?}");
    }
    let run = mini.finished(&["report", "load.json"]);
    ended(&run, 2, &["`courser-bench show load.json` prints it"]);
    ended(&mini.finished(&["compare", "suite.json", "nginx"]), 2, &["one is a record and the other is none"]);
    ended(&mini.finished(&["compare", "suite.json"]), 2, &["takes two targets or two records"]);
}

#[test]
fn a_program_against_itself_gets_a_verdict_and_a_record_of_both() {
    if !is_installed("courser") {
        skip("courser is not built");
        return;
    }
    let mini = Mini::new();
    let words = "compare courser courser --time 1s --seconds 300ms --record both.json";
    let run = mini.finished(&words.split(' ').collect::<Vec<_>>());
    ended(&run, 0, &["record: both.json"]);
    let verdicts = ["no verdict yet", "no difference seen", "times the time of courser"];
    assert!(verdicts.iter().any(|verdict| run.stdout.contains(verdict)), "{run:?}");
    let lab = Lab::from_json(std::fs::read(mini.join("both.json")).unwrap()).unwrap();
    for target in ["courser", "courser@again"] {
        let cell = lab.cell("tls13-ecdsa", target).unwrap();
        assert!(cell.blocks.len() >= 2, "{target}: a quad has two of each");
    }
    let told = lab.findings.iter().find(|finding| finding.id == "comparison").unwrap();
    assert!(run.stdout.contains(&told.text), "{run:?}");
}

#[test]
fn a_limit_is_checked_while_two_programs_take_turns_in_several_cases() {
    if !is_installed("courser") {
        skip("courser is not built");
        return;
    }
    let mini = Mini::new();
    let words =
        "compare courser courser --case tls13-ecdsa,tls12-ecdsa --fail-above 300% --time 1s --seconds 100ms";
    let run = mini.finished(&words.split(' ').collect::<Vec<_>>());
    ended(&run, 0, &[]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines.len() == 2 && lines.iter().all(|line| line.contains("worse by more than 300 %")),
        "{run:?}"
    );
    assert!(lines[0].starts_with("tls13-ecdsa: ") && lines[1].starts_with("tls12-ecdsa: "), "{run:?}");
    let run = mini.finished(&["compare", "courser", "courser", "--case", "tls13-ecdsa,fleet/full"]);
    ended(&run, 2, &["cases of one suite at a time, not of compare and fleet"]);
}
