//! `--server-share`: a target that is held to a share of its core, seen from outside; and the origin in the generator's loop.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use courser_record::Lab;
use courser_testkit::{Process, Signal, leave_out};

use crate::mini::{A_SECOND, Mini, cell, ended, has_measured};
use crate::support::judge_at;
use crate::targets::{Started, find_process, is_installed};

/// Groups below the control groups of this machine that this process made.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    fn below(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(name) {
                    found.push(entry.path());
                }
                below(&entry.path(), name, found);
            }
        }
    }

    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup"), &format!("courser-bench-{pid}-"), &mut found);
    found
}

/// Whether this machine lets us hold processes to a share; prints where it does not.
fn can_hold() -> bool {
    let probed = courser_lab::share::probe(0.5);
    if let Err(why) = &probed {
        leave_out(why);
    }
    probed.is_ok()
}

#[test]
fn a_target_gets_its_share_and_record_and_page_name_it() {
    let Some(mini) = Mini::of(&["nginx"]) else { return };
    if !can_hold() {
        return;
    }
    let run = mini.run(&[&A_SECOND[..], &["--server-share", "0.25"]].concat());
    has_measured(&run, &["targets are held to 0.25 of their cores (a control group)"]);
    let lab = mini.record();
    let cell = cell(&lab, "nginx");
    let held = cell.server_share.unwrap();
    assert_eq!((held.share, held.quota_us, held.period_us), (0.25, 1250, 5000));
    let window = &cell.blocks[0].windows[0];
    let used = (window.user_us.unwrap() + window.system_us.unwrap()) as f64 / window.window_us as f64;
    // How much less, depends on who else wants the processor.
    assert!(used < 0.3, "{used}: {window:?}");
    assert!(window.throttled_us.is_some(), "the kernel knows of no limit: {window:?}");
    assert!(run.stdout.contains("Targets were held to 0.25"), "{run:?}");
    let page = fs::read_to_string(mini.join("record.html")).unwrap();
    assert!(page.contains("1.25 ms in each 5 ms"), "the page is silent");
}

#[test]
fn off_is_all_of_its_core() {
    let Some(mini) = Mini::of(&["nginx"]) else { return };
    let run = mini.run(&[&A_SECOND[..], &["--server-share", "off"]].concat());
    has_measured(&run, &[]);
    let lab = mini.record();
    assert_eq!(cell(&lab, "nginx").server_share, None);
    assert!(!run.stdout.contains("were held to") && !run.stderr.contains("held to"), "{run:?}");
}

#[test]
fn a_record_is_not_continued_with_another_share() {
    let Some(mini) = Mini::of(&["nginx"]) else { return };
    if !can_hold() {
        return;
    }
    mini.measured(&["--server-share", "0.5"]);
    let again = ["--resume", "--server-share", "off", "--rounds", "2", "--seconds", "300ms"];
    // All of its blocks are there, so it is done; it is asked for more of them.
    let text = fs::read_to_string(mini.join("record.json")).unwrap();
    fs::write(mini.join("record.json"), text.replace("\"done\"", "\"pending\"")).unwrap();
    ended(&mini.run(&again), 3, &["its blocks were measured with another --server-share"]);
}

/// The program as a user who may make no control group.
fn without_permission(mini: &Mini, arguments: &[&str]) -> courser_testkit::Finished {
    fs::set_permissions(mini.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(mini.join("mini.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = mini.suite(arguments);
    if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        command.uid(65534).gid(65534);
    }
    Process::start(&mut command).finish()
}

#[test]
fn without_permission_it_names_what_is_missing_and_goes_on_unless_it_was_asked_for() {
    let Some(mini) = Mini::of(&["nginx"]) else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_courser-bench"));
    let is_open = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    if !program.ancestors().all(is_open) || courser_machine::allowed_cpus().len() < 2 {
        return leave_out("another user cannot run the program, or there is one core");
    }
    let missing = "control group";
    let shared = ["--target-cpus", "1", "--cpus", "0", "--origin-cpus", "0"];
    let run = without_permission(&mini, &[&A_SECOND[..], &shared, &["--server-share", "0.5"]].concat());
    ended(&run, 1, &["error: --server-share: ", missing]);
    let _ = fs::remove_file(mini.join("record.json"));
    let run = without_permission(&mini, &[&A_SECOND[..], &shared].concat());
    has_measured(&run, &["targets have all of their cores", missing, "--server-share off"]);
    let lab = mini.record();
    assert!(cell(&lab, "nginx").server_share.is_none() && !cell(&lab, "nginx").blocks.is_empty());
    assert!(lab.findings.iter().any(|finding| finding.id == "server-share"), "{:?}", lab.findings);
}

#[test]
fn a_killed_run_leaves_no_control_group_after_the_next_start() {
    let Some(mini) = Mini::of(&["nginx"]) else { return };
    if !can_hold() {
        return;
    }
    let process =
        Process::start(&mut mini.suite(&["--rounds", "100", "--seconds", "300ms", "--server-share", "0.5"]));
    mini.first_block();
    let pid = process.pid();
    assert_eq!(groups_of(pid).len(), 1);
    process.signal(Signal::SIGKILL);
    let _ = process.finish();
    mini.wait_until_nothing_is_left();
    fs::remove_file(mini.join("record.json")).unwrap();
    mini.measured(&["--server-share", "0.5"]);
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new());
}

#[test]
fn one_that_is_started_by_hand_is_held_too_and_leaves_no_group() {
    if !can_hold() {
        return;
    }
    let Some(started) = Started::new("nginx", &["--server-share=0.5"]) else { return };
    let pid = started.id();
    assert_eq!(groups_of(pid).len(), 1);
    started.stop();
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new());
}

#[test]
fn a_load_serves_the_origin_of_what_it_loads() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = free.local_addr().unwrap().to_string();
    drop(free);
    let backend = format!("--backend={origin}");
    let Some(started) = Started::new("nginx", &[&backend, "--versions=1.3"]) else { return };
    let load = ["-c", "2", "--sni", "localhost"];
    // Nothing listens there: nginx answers with an error of its own.
    let judged = judge_at("load", started.address(), &load);
    assert_eq!(judged.total("/requests/succeeded"), 0, "{:#}", judged.record);
    let judged = judge_at("load", started.address(), &[&load[..], &["--origin", &origin]].concat());
    assert!(judged.total("/requests/succeeded") > 0, "{:#}", judged.record);
    assert_eq!(judged.total("/requests/failed"), 0, "{:#}", judged.record);
    started.stop();
}

/// The case of the only cell as it can be typed.
fn typed(lab: &Lab) -> &str {
    lab.cases[0].asked.last().unwrap()
}

#[test]
fn generator_and_origin_on_one_core_are_one_process() {
    if !is_installed("nginx") || courser_machine::allowed_cpus().len() < 2 {
        return leave_out("nginx is not installed, or there is one core");
    }
    let mini = Mini::of(&["nginx"]).unwrap();
    let shared = ["--target-cpus", "1", "--cpus", "0", "--origin-cpus", "0", "--server-share", "off"];
    let process =
        Process::start(&mut mini.suite(&[&["--rounds", "2", "--seconds", "600ms"], &shared[..]].concat()));
    mini.first_block();
    assert_eq!(find_process(mini.path(), " origin --listen"), None);
    has_measured(&process.finish(), &[]);
    let lab = mini.record();
    let window = &cell(&lab, "nginx").blocks[1].windows[0];
    assert!(window.succeeded > 0 && window.failed == 0, "{window:?}");
    assert!(typed(&lab).contains(" --origin 127.0.0.1:") && !typed(&lab).contains("--origin-pid"));
}

#[test]
fn what_is_reached_directly_has_the_targets_core_and_is_measured() {
    if !is_installed("nginx") || courser_machine::allowed_cpus().len() < 2 {
        return leave_out("nginx is not installed, or there is one core");
    }
    let mini = Mini::of(&["direct", "nginx"]).unwrap();
    let shared = ["--target-cpus", "1", "--cpus", "0", "--origin-cpus", "0"];
    has_measured(&mini.run(&[&A_SECOND[..], &shared].concat()), &[]);
    let lab = mini.record();
    let (direct, nginx) = (cell(&lab, "direct"), cell(&lab, "nginx"));
    assert!(direct.command.join(" ").ends_with(" --cpus 1"), "{:?}", direct.command);
    // A quarter of the core is enough for what does so little, and half is more than the generator can load.
    let share = |cell: &courser_record::lab::Cell| cell.server_share.map(|held| held.share);
    assert_eq!([share(direct), share(nginx)], [Some(0.25), Some(0.5)]);
    let window = &direct.blocks[0].windows[0];
    assert!(window.succeeded > 0 && window.failed == 0, "{window:?}");
    let used = window.user_us.unwrap() + window.system_us.unwrap();
    assert!(used > 0, "{window:?}");
}
