//! A suite whose clients leave: what a target still does for them is not to be paid by the next one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use courser_record::lab::CellState;
use courser_testkit::skip;

use crate::mini::{Mini, SUITE, cell, has_measured};
use crate::targets::is_installed;

#[test]
fn each_block_begins_with_a_server_of_its_own_where_clients_leave() {
    if !is_installed("nginx") {
        return skip("nginx is not installed");
    }
    let case = "measure = \"rate\"\n[group.case]\ncapacity = 50\npatience = 1";
    let mini = Mini::with(&SUITE.replace("measure = \"saturation\"\n[group.case]", case));
    let starts = mini.join("starts");
    let counted =
        format!("#!/bin/sh\ncase \"$*\" in *-c*) echo >>{};; esac\nexec nginx \"$@\"\n", starts.display());
    let program = mini.write("nginx-counted", counted);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let target = format!("nginx={}", program.display());
    let run = mini.run(&[&target, "--rounds", "2", "--seconds", "300ms"]);
    has_measured(&run, &[]);
    let lab = mini.record();
    let blocks = &cell(&lab, "nginx@nginx-counted").blocks;
    assert_eq!(blocks.len(), 2, "{run:?}");
    let starts = fs::read_to_string(starts).unwrap();
    assert_eq!(starts.lines().count(), 2, "{run:?}");
    for window in blocks.iter().map(|block| &block.windows[0]) {
        // Each block finds out by itself what can be served: half of it is offered.
        let capacity = 2.0 * window.offered_tps.unwrap();
        let goodput = window.figures.iter().find(|figure| figure.name == "goodput of capacity").unwrap();
        let part = window.served().connections as f64 / (capacity * 0.3);
        assert!(
            (goodput.value / 100.0 - part).abs() < 0.01,
            "{goodput:?} is no part of what ended in the window"
        );
    }
}

#[test]
fn a_target_that_dies_in_a_block_is_not_started_again() {
    if !is_installed("nginx") {
        return skip("nginx is not installed");
    }
    let case = "measure = \"rate\"\n[group.case]\ncapacity = 200\npatience = 1";
    let mini = Mini::with(&SUITE.replace("measure = \"saturation\"\n[group.case]", case));
    let died = mini.join("died");
    let once = format!(
        "#!/bin/sh\ncase \"$*\" in *-c*) [ -e {0} ] || {{ touch {0}; exec timeout -s KILL 2 nginx \"$@\"; }};; esac\n\
         exec nginx \"$@\"\n",
        died.display()
    );
    let program = mini.write("nginx-once", once);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let target = format!("nginx={}", program.display());
    let run = mini.run(&[&target, "--rounds", "2", "--seconds", "1s"]);
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    let lab = mini.record();
    let cell = lab.cells.first().unwrap();
    assert_eq!(cell.state, CellState::Failed, "{:?}", cell.reason);
    assert!(cell.blocks.is_empty(), "{run:?}");
}
