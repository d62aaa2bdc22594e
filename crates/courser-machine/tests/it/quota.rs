//! A limit on processor time, against the kernel's count and the time that a process takes.

use std::fs;
use std::time::Duration;

use courser_machine::quota::{CpuLimit, LimitGroup, LimitedGroup};
use courser_testkit::leave_out;

use crate::usage::{Role, WORK};

#[test]
fn a_process_gets_the_share_that_it_is_held_to_and_the_kernel_counts_it() {
    let group = match LimitGroup::new(CpuLimit::of_cores(0.25)) {
        Ok(group) => group,
        Err(why) => return leave_out(why),
    };
    let mut busy = Role::start("user");
    // A container may have a limit of its own.
    let outside = LimitedGroup::of_process(busy.pid()).and_then(|group| group.limit());
    assert_ne!(outside, Some(group.limit()));
    group.hold(busy.pid()).unwrap();
    let seen = LimitedGroup::of_process(busy.pid()).unwrap();
    assert_eq!(seen.limit(), Some(group.limit()));
    let (mut server, before) = (busy.server(), seen.throttling().unwrap());
    let start = server.sample().unwrap();
    busy.go();
    busy.result();
    let usage = server.sample().unwrap().since(&start);
    let throttled = seen.throttling().unwrap().since(before);
    // A quarter of a core: the work takes four times as long, less what a last period may have left.
    assert!(usage.wall > WORK * 7 / 2, "{usage:?}");
    // How often, depends on who else wants the processor.
    assert!(throttled.throttled_periods > 0 && !throttled.throttled.is_zero(), "{throttled:?}");
    assert!(throttled.periods >= throttled.throttled_periods, "{throttled:?}");
    let folder = group.folder().to_owned();
    drop(busy);
    drop(group);
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[test]
fn the_children_of_a_process_are_held_too() {
    let group = match LimitGroup::new(CpuLimit::of_cores(0.5)) {
        Ok(group) => group,
        Err(why) => return leave_out(why),
    };
    let mut shell =
        std::process::Command::new("sh").args(["-c", "sleep 1000 & sleep 1000 & wait"]).spawn().unwrap();
    let family = || courser_machine::usage::family(shell.id()).unwrap();
    while family().len() < 3 {
        std::thread::sleep(Duration::from_millis(2));
    }
    group.hold(shell.id()).unwrap();
    let held = fs::read_to_string(group.folder().join("cgroup.procs")).unwrap();
    let family = family();
    assert!(family.iter().all(|pid| held.lines().any(|line| line == pid.to_string())), "{family:?}: {held}");
    for pid in family.into_iter().rev() {
        let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    shell.wait().unwrap();
}
