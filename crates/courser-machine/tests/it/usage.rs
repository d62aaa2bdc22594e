//! Usage as read from outside, against what processes say of themselves.
//!
//! The processes are this program again, in a role that the environment names: see [`role`].

use std::env;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use courser_machine::usage::{Cores, Held, OwnThread, Server, ThreadUsage, Usage, UsageError};
use courser_net::cpu;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::ClockId;

const ROLE: &str = "COURSER_MACHINE_TEST_ROLE";

/// How much processor time a role burns: many steps of the coarsest clock.
pub(crate) const WORK: Duration = Duration::from_millis(300);

/// What steps of 10 ms, of some processes at both ends, may hide.
const TOLERANCE: Duration = Duration::from_millis(50);

#[test]
fn user_time_is_what_the_process_says_itself() {
    let (usage, itself) = observe("user");
    assert_near(usage.user + usage.system, itself);
    assert!(usage.user > usage.system * 4, "{usage:?}");
    assert!(usage.wall + usage.error >= WORK, "{usage:?}");
}

#[test]
fn system_time_is_told_from_user_time() {
    let (usage, itself) = observe("system");
    assert_near(usage.user + usage.system, itself);
    assert!(usage.system > usage.user, "{usage:?}");
}

#[test]
fn who_waits_uses_nothing() {
    let mut idle = Role::start("user");
    let mut server = idle.server();
    let before = server.sample().unwrap();
    let mut busy = Role::start("user");
    busy.go();
    busy.result();
    let usage = server.sample().unwrap().since(&before);
    assert!(usage.user + usage.system < TOLERANCE, "{usage:?}");
    assert!(usage.wall + usage.error >= WORK, "{usage:?}");
    idle.go();
    idle.result();
}

#[test]
fn children_count_those_that_ended_as_well() {
    let (usage, itself) = observe("children");
    assert!(itself >= 2 * WORK, "{itself:?}");
    assert_near(usage.user + usage.system, itself);
    assert_eq!(usage.lost, 0);
}

#[test]
fn threads_are_told_apart_by_name() {
    let (usage, _) = observe("threads");
    let names: Vec<&str> = usage.threads.iter().take(2).map(|thread| thread.name.as_str()).collect();
    assert!(names.contains(&"burner-a") && names.contains(&"burner-b"), "{names:?}");
    for thread in &usage.threads[..2] {
        assert_near(thread.cpu(), WORK);
    }
    let threads: Duration = usage.threads.iter().map(ThreadUsage::cpu).sum();
    assert_near(threads, usage.user + usage.system);
}

#[test]
fn memory_is_seen() {
    let role = Role::start("user");
    let held = role.server().sample().unwrap().held;
    let Some(Held::Processes(memory)) = held else { panic!("of our own child: {held:?}") };
    assert!(memory.pss > 0 && memory.pss <= memory.rss, "{memory:?}");
}

#[test]
fn a_process_that_is_gone_is_an_error() {
    let mut role = Role::start("user");
    let (pid, mut server) = (role.child.id(), role.server());
    role.child.kill().unwrap();
    role.child.wait().unwrap();
    assert!(matches!(server.sample(), Err(UsageError::Ended { .. })));
    let error = Server::from_pid(pid).unwrap_err();
    assert!(matches!(error, UsageError::NoSuchProcess { .. }));
    assert!(error.to_string().contains("on this machine"), "{error}");
}

#[test]
fn a_cgroup_is_read_with_those_below_it() {
    let folder = courser_testkit::Folder::new();
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    assert!(matches!(Server::from_cgroup(folder.path()), Err(UsageError::NotACgroup { .. })));
    write("cpu.stat", "usage_usec 1000\nuser_usec 600\nsystem_usec 400\n");
    write("memory.current", "4096\n");
    write("cpuset.cpus.effective", "0-1,3\n");
    fs::create_dir(folder.path().join("below")).unwrap();
    write("below/cgroup.procs", &format!("{}\n", std::process::id()));
    let mut server = Server::from_cgroup(folder.path()).unwrap();
    let before = server.sample().unwrap();
    write("cpu.stat", "usage_usec 5000\nuser_usec 1600\nsystem_usec 3400\n");
    let after = server.sample().unwrap();
    let usage = after.since(&before);
    assert_eq!((usage.user, usage.system), (Duration::from_micros(1000), Duration::from_micros(3000)));
    assert_eq!(after.held, Some(Held::Cgroup(4096)));
    assert_eq!(after.pids, [std::process::id()]);
    assert!(!after.threads.is_empty());
    assert_eq!(server.cpus().unwrap(), [0, 1, 3]);
}

#[test]
fn a_thread_sees_itself_and_is_seen_by_others() {
    let own = OwnThread::current();
    let before = own.sample().unwrap();
    burn_user(WORK);
    let itself = own.sample().unwrap().since(Some(&before));
    let by_another = thread::spawn(move || own.sample().unwrap()).join().unwrap().since(Some(&before));
    for usage in [itself, by_another] {
        assert!(usage.cpu() >= WORK && usage.cpu() < WORK + TOLERANCE, "{usage:?}");
    }
}

#[test]
fn threads_on_one_processor_wait_for_one_another() {
    let processor = cpu::Cpus::available().order[0];
    let barrier = Barrier::new(2);
    let wait = || {
        cpu::pin(processor).unwrap();
        let own = OwnThread::current();
        barrier.wait();
        let before = own.sample().unwrap();
        burn_user(WORK);
        own.sample().unwrap().since(Some(&before)).run_queue_wait
    };
    let waits: Option<Duration> = thread::scope(|scope| {
        let threads = [scope.spawn(wait), scope.spawn(wait)];
        threads.map(|thread| thread.join().unwrap()).into_iter().sum()
    });
    let Some(waits) = waits else { return courser_testkit::leave_out("this kernel does not count waiting") };
    assert!(waits > WORK - TOLERANCE, "{waits:?}");
}

#[test]
fn a_core_that_works_is_busy() {
    let processor = cpu::Cpus::available().order[0];
    let share = thread::spawn(move || {
        cpu::pin(processor).unwrap();
        let before = Cores::read().unwrap();
        burn_user(WORK);
        Cores::read().unwrap().since(&before)[&processor]
    });
    let share = share.join().unwrap();
    assert!(share.busy > 0.8 && share.busy <= 1.0, "{share:?}");
    assert!(share.user > 0.2, "{share:?}");
}

/// Samples a process before and after its work; the second figure is what it says itself.
fn observe(role: &'static str) -> (Usage, Duration) {
    let mut role = Role::start(role);
    let mut server = role.server();
    let before = server.sample().unwrap();
    role.go();
    let itself = role.result();
    (server.sample().unwrap().since(&before), itself)
}

fn assert_near(one: Duration, other: Duration) {
    assert!(one.abs_diff(other) <= TOLERANCE, "{one:?} is not {other:?}");
}

/// This program again, as a server to look at.
pub(crate) struct Role {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Role {
    /// Returns once it is ready.
    pub(crate) fn start(role: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "usage::role", "--nocapture"]).env(ROLE, role);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut role = Self { child, stdin, stdout };
        role.line("ready");
        role
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn server(&self) -> Server {
        Server::from_pid(self.pid()).unwrap()
    }

    pub(crate) fn go(&mut self) {
        self.stdin.write_all(b"\n").unwrap();
    }

    /// How much processor time it says that it and its children used; it stays alive.
    pub(crate) fn result(&mut self) -> Duration {
        Duration::from_micros(self.line("used").parse().unwrap())
    }

    /// What follows `word`, amid what the test harness prints.
    fn line(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended before it said {word}");
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
        }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// No test of its own: what a process that [`Role::start`] starts does. It waits for a byte, works, says what it used,
/// and waits for the end of its input.
#[test]
fn role() {
    let Ok(role) = env::var(ROLE) else { return };
    println!("ready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let before = used();
    match role.as_str() {
        "user" => burn_user(WORK),
        "system" => burn_system(WORK),
        "children" => burn_in_children(),
        _ => burn_in_threads(before),
    }
    say_and_stay(before);
}

fn say_and_stay(before: Duration) {
    println!("used {}", (used() - before).as_micros());
    let _ = std::io::stdin().read(&mut [0]);
}

/// What this process and its children that ended have used.
fn used() -> Duration {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .map(|who| {
            let usage = getrusage(who).unwrap();
            let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            Duration::from_micros(microseconds.unsigned_abs())
        })
        .into_iter()
        .sum()
}

/// Until this thread has used so much, however long that takes.
fn burn_user(time: Duration) {
    burn(time, || {
        black_box((0..20_000_u64).fold(0, |sum, number| black_box(sum ^ number)));
    });
}

fn burn_system(time: Duration) {
    let (mut zero, mut buffer) = (fs::File::open("/dev/zero").unwrap(), vec![0; 1 << 20]);
    burn(time, || zero.read_exact(&mut buffer).unwrap());
}

fn burn(time: Duration, step: impl FnMut()) {
    let clock = || Duration::from(ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap());
    let (end, mut step) = (clock() + time, step);
    while clock() < end {
        step();
    }
}

/// Two that come, work and go.
fn burn_in_children() {
    for _ in 0..2 {
        let mut child = Role::start("user");
        child.go();
        child.result();
        drop(child);
    }
}

/// Threads that are still there when the process says that it is done.
fn burn_in_threads(before: Duration) {
    let done = Barrier::new(3);
    let work = || {
        burn_user(WORK);
        done.wait();
        done.wait();
    };
    thread::scope(|scope| {
        for name in ["burner-a", "burner-b"] {
            thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).unwrap();
        }
        done.wait();
        say_and_stay(before);
        done.wait();
    });
}
