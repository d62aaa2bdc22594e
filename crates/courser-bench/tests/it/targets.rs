//! Terminators that are installed here, started for real: set up as asked, and gone whoever is killed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use courser_testkit::{Folder, PATIENCE, leave_out, skip};
use serde_json::Value;

use crate::mini::wait;
use crate::support::{finished, judge_at};

/// What every terminator can be asked for.
const ASKED: [&str; 6] = [
    "--versions=1.2",
    "--suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "--groups=P-384",
    "--key=P-256",
    "--session-cache=1000",
    "--no-tickets",
];

/// `courser-bench start`, and what it has told.
pub(crate) struct Started {
    child: Child,
    /// It goes on for as long as this is open; waiting for a child would close its own.
    input: Option<ChildStdin>,
    told: Vec<String>,
    folder: Folder,
}

impl Started {
    /// Starts a target; `None` when it is not installed here.
    pub(crate) fn new(target: &str, arguments: &[&str]) -> Option<Self> {
        if !is_installed(target) {
            let why = format!("{target} is not installed");
            // Debian has no package of it.
            if target == "sozu" {
                leave_out(why);
            } else {
                skip(why);
            }
            return None;
        }
        let folder = Folder::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_courser-bench"))
            .args(["start", target, "--folder"])
            .arg(folder.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.path().join("complaints")).unwrap())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut told: Vec<String> = Vec::new();
        for line in output.lines().map_while(Result::ok) {
            told.push(line);
            if told.last().is_some_and(|line| line.starts_with("command ")) {
                break;
            }
        }
        let input = child.stdin.take();
        let started = Self { child, input, told, folder };
        assert!(started.fact("command").is_some(), "{target} does not start: {}", started.logs());
        Some(started)
    }

    /// The number of the program itself.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What is told behind a word.
    fn fact(&self, word: &str) -> Option<&str> {
        self.told.iter().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))
    }

    fn pid(&self, word: &str) -> u32 {
        self.fact(word)
            .and_then(|pid| pid.parse().ok())
            .unwrap_or_else(|| panic!("no {word}: {:?}", self.told))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses()[0]
    }

    /// Of all its hosts.
    fn addresses(&self) -> Vec<SocketAddr> {
        let hosts = self.told.iter().filter_map(|line| line.strip_prefix("listening on "));
        hosts.map(|url| url.rsplit_once('/').unwrap().1.parse().unwrap()).collect()
    }

    /// What the target printed, and what was complained about.
    fn logs(&self) -> String {
        let parts = fs::read_dir(self.folder.path()).unwrap().map(|part| part.unwrap().path());
        let logs =
            parts.flat_map(|part| [fs::read_to_string(part.join("output.log")), fs::read_to_string(part)]);
        logs.map(Result::unwrap_or_default).collect()
    }

    /// An object that came through it from the origin.
    fn exchange(&self) -> String {
        // By name: there are terminators that answer nobody else.
        let url = format!("https://localhost:{}/?s=1000", self.address().port());
        let mut curl = Command::new("curl");
        curl.args([
            "-4sk",
            "--max-time",
            "10",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code} %{size_download}",
            &url,
        ]);
        String::from_utf8(curl.output().unwrap().stdout).unwrap()
    }

    /// What it negotiates.
    fn inspect(&self) -> Value {
        let run = finished(&["inspect", "--json", "--sni", "localhost", &self.address().to_string()]);
        let page: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|why| panic!("{why}: {run:?}"));
        page["endpoints"][0].clone()
    }

    /// Closes its standard input, waits for its end, and looks that nothing is left.
    pub(crate) fn stop(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
        assert_eq!(of_folder(self.folder.path()), Vec::<String>::new());
    }

    /// Waits until nothing is left that was started in its folder.
    fn wait_until_nothing_is_left(&self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if of_folder(self.folder.path()).is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("left: {:#?}", of_folder(self.folder.path()));
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn is_installed(target: &str) -> bool {
    static INSTALLED: OnceLock<Vec<String>> = OnceLock::new();
    let ask = || {
        let run = finished(&["targets", "--json"]);
        let page: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|why| panic!("{why}: {run:?}"));
        let all = page["targets"].as_array().unwrap().iter().filter(|one| one["installed"] == true);
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    INSTALLED.get_or_init(ask).iter().any(|name| name == target)
}

pub(crate) fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// Processes that have something to do with a folder: their arguments name it, or they run in it.
pub(crate) fn of_folder(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap();
    let about = |process: PathBuf| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
        let runs_in = fs::read_link(process.join("cwd")).unwrap_or_default();
        let is_ours = arguments.contains(name) || runs_in.starts_with(folder);
        is_ours.then(|| format!("{}: {arguments}", process.display()))
    };
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok()))
        .filter_map(about)
        .collect()
}

/// One of these processes whose arguments contain this.
pub(crate) fn find_process(folder: &Path, arguments: &str) -> Option<u32> {
    let found = of_folder(folder).into_iter().find(|process| process.contains(arguments))?;
    found.strip_prefix("/proc/")?.split_once(':')?.0.parse().ok()
}

/// Started with the same words, each negotiates the same, and serves.
fn serves_as_asked(target: &str, asked: &[&str]) {
    let Some(started) = Started::new(target, asked) else { return };
    assert_eq!(started.exchange(), "200 1000", "{target}: {}", started.logs());
    let found = started.inspect();
    let [only] = &found["versions"].as_array().unwrap()[..] else { panic!("{target}: {found:#}") };
    let suite = serde_json::json!(["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]);
    let told = (&only["version"], &only["suites"], &only["groups"]);
    assert_eq!(told, (&"TLSv1.2".into(), &suite, &serde_json::json!(["P-384"])), "{target}: {found:#}");
    assert!(!of_folder(started.folder.path()).is_empty(), "{target} cannot be found while it runs");
    started.stop();
}

#[test]
fn terminators_negotiate_what_was_asked_serve_and_leave_nothing() {
    for target in ["nginx", "nginx-stream", "haproxy", "hitch", "stunnel", "hitch+haproxy"] {
        serves_as_asked(target, &ASKED);
        serves_as_asked(target, &[&ASKED[..], &["--stock", "--workers=2"]].concat());
    }
    // Go resumes by tickets alone.
    serves_as_asked("caddy", &ASKED[..4]);
    serves_as_asked("sozu", &ASKED);
    serves_as_asked("courser", &ASKED);
}

/// Second connections that were resumed, and all of them: each goes to the other address than the first.
fn came_back(addresses: &[SocketAddr], arguments: &[&str]) -> (u64, u64) {
    let also = addresses[1].to_string();
    // nginx (stream) keeps a connection for seconds that ends in any other way.
    let sessions = ["--also", &also, "--sni", "localhost", "--rate", "10", "--reuse", "2", "--close", "rst"];
    let judged = judge_at("load", addresses[0], &[&sessions, arguments].concat());
    assert_eq!(judged.total("/connections/failed"), 0, "{:#}", judged.record);
    let all = judged.total("/connections/succeeded");
    let full = judged.handshakes(|row| row["handshake"] == "full");
    let first = judged.total("/sessions");
    (all - full, all - first)
}

#[test]
fn hosts_with_one_key_resume_each_others_sessions() {
    for version in ["1.3", "1.2"] {
        let asked = ["--hosts=2", "--session-cache=0", "--versions", version];
        for target in ["courser", "nginx", "nginx-stream", "haproxy", "stunnel", "nginx+haproxy"] {
            let Some(started) = Started::new(target, &asked) else { continue };
            let (resumed, returned) = came_back(&started.addresses(), &[]);
            assert!(resumed == returned && resumed > 0, "{target}, TLS {version}: {resumed} of {returned}");
            started.stop();
        }
    }
}

#[test]
fn hosts_of_courser_resume_each_others_sessions_by_id() {
    let asked = ["--hosts=2", "--no-tickets", "--versions=1.2"];
    let Some(started) = Started::new("courser", &asked) else { return };
    let (resumed, returned) = came_back(&started.addresses(), &["--resume", "id"]);
    // A session that comes later than its client is a full handshake; on a busy machine there may be one.
    assert!(2 * resumed > returned && returned > 0, "{resumed} of {returned}");
    started.stop();
}

#[test]
fn hosts_that_share_nothing_do_not() {
    let start = || Started::new("nginx", &["--session-cache=0"]);
    let (Some(one), Some(other)) = (start(), start()) else { return };
    let (resumed, returned) = came_back(&[one.address(), other.address()], &["--tls", "1.2"]);
    assert!(resumed == 0 && returned > 0, "{resumed} of {returned}");
    one.stop();
    other.stop();
}

#[test]
fn old_versions_and_short_keys_are_had_where_the_library_allows_them() {
    let asked = ["--versions=1.0", "--key=RSA-1024", "--suites=TLS_RSA_WITH_AES_128_CBC_SHA"];
    for target in ["nginx", "nginx-stream", "haproxy", "hitch", "stunnel"] {
        let Some(started) = Started::new(target, &asked) else { continue };
        let found = started.inspect();
        assert_eq!(found["versions"][0]["version"], "TLSv1.0", "{target}: {found:#}");
        assert_eq!(found["certificates"][0]["key"], "RSA1024", "{target}: {found:#}");
        started.stop();
    }
}

#[test]
fn backends_can_be_reached_by_tls() {
    let Some(behind) = Started::new("haproxy", &[]) else { return };
    let backend = format!("--backend={}", behind.address());
    for target in ["nginx", "nginx-stream", "haproxy", "caddy"] {
        let Some(started) = Started::new(target, &["--backend-tls", &backend]) else { continue };
        assert_eq!(started.exchange(), "200 1000", "{target}: {}", started.logs());
        started.stop();
    }
}

/// How many connections two clients with three requests each make a target open to its backend.
fn backend_connections(target: &str, arguments: &[&str]) -> Option<usize> {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("--backend={}", backend.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for socket in backend.incoming().map_while(Result::ok) {
            thread::spawn({
                let counted = Arc::clone(&counted);
                move || answer(&socket, &counted)
            });
        }
    });
    let started = Started::new(target, &[&[address.as_str()], arguments].concat())?;
    let url = format!("https://localhost:{}/", started.address().port());
    for _ in 0..2 {
        let run = Command::new("curl").args(["-4sk", "--max-time", "10", &url, &url, &url]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stdout), "ok".repeat(3), "{target}: {}", started.logs());
    }
    started.stop();
    Some(count.load(Ordering::SeqCst))
}

/// Answers requests for as long as the client stays; a connection without any does not count.
fn answer(socket: &TcpStream, count: &AtomicUsize) {
    let mut lines = BufReader::new(socket).lines().map_while(Result::ok).peekable();
    if lines.peek().is_some() {
        count.fetch_add(1, Ordering::SeqCst);
    }
    for _ in lines.filter(String::is_empty) {
        let _ = (&mut &*socket).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
}

/// Programs that forward bytes make one for each client.
#[test]
fn backend_connections_are_as_many_as_of_programs_that_forward_bytes() {
    for target in ["haproxy", "nginx-stream"] {
        assert!(backend_connections(target, &[]).is_none_or(|count| count == 2), "{target}");
    }
    // With --keep-alive they may be kept for the next client too.
    let kept = |count| count == 1 || count == 2;
    assert!(backend_connections("nginx", &["--keep-alive"]).is_none_or(kept));
    assert!(backend_connections("caddy", &["--keep-alive"]).is_none_or(kept));
    // Without it a client sends one request: no connection is left for another.
    assert!(backend_connections("nginx", &[]).is_none_or(|count| count == 6));
    assert!(backend_connections("caddy", &[]).is_none_or(|count| count == 6));
    // The package's settings stay as they are.
    assert!(backend_connections("nginx", &["--keep-alive", "--stock"]).is_none_or(|count| count == 6));
}

/// The processors of each thread of a target that was started, those of its keeper left out.
fn bound(started: &Started) -> Vec<String> {
    let family = of_folder(started.folder.path());
    let pids =
        family.iter().filter(|process| !process.contains(" supervise ") && !process.contains(" start "));
    let pids = pids.filter(|process| !process.contains(" origin "));
    let tasks = pids
        .flat_map(|process| fs::read_dir(format!("{}/task", process.split(':').next().unwrap())).unwrap());
    let status =
        tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default());
    let list = |status: String| {
        status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"))
            .unwrap_or_default()
            .to_owned()
    };
    status.map(list).collect()
}

#[test]
fn each_worker_of_a_tuned_target_has_a_processor_of_its_own() {
    let here = fs::read_to_string("/proc/self/status").unwrap();
    if !here.contains("Cpus_allowed_list:\t0-") {
        leave_out("this machine has one processor");
        return;
    }
    let asked = ["--workers=2", "--cpus=0,1"];
    for target in ["courser", "nginx", "nginx-stream", "haproxy", "hitch"] {
        let Some(started) = Started::new(target, &asked) else { continue };
        // HAProxy binds its threads and hitch's workers are bound once they run.
        wait(&format!("{target} to bind its workers"), || {
            let all = bound(&started);
            ["0", "1"].iter().all(|cpu| all.iter().any(|bound| bound == cpu)).then_some(())
        });
        started.stop();
        // hitch binds its workers itself.
        if target == "hitch" {
            continue;
        }
        let Some(stock) = Started::new(target, &[&asked[..], &["--stock"]].concat()) else { continue };
        assert!(bound(&stock).iter().all(|bound| bound == "0-1"), "{target}: {:?}", bound(&stock));
        stock.stop();
    }
}

#[test]
fn what_a_target_cannot_do_is_told_with_the_reason() {
    let cases: [(&str, &[&str], &str); 6] = [
        ("hitch", &["--hosts=2"], "no setting for ticket keys"),
        ("nginx", &["--hosts=2", "--no-tickets"], "resume by ticket alone"),
        ("courser", &["--key=RSA-1024"], "no RSA key under 2048 bits"),
        ("hitch", &["--backend=127.0.0.1:1", "--backend=127.0.0.1:2"], "hitch+haproxy"),
        ("caddy", &["--versions=1.0"], "does not speak TLS 1.0"),
        ("direct", &[], "without TLS"),
    ];
    for (target, arguments, reason) in cases.into_iter().filter(|(target, _, _)| is_installed(target)) {
        let folder = Folder::new();
        let place = ["start", target, "--folder", folder.path().to_str().unwrap()];
        let run = finished(&[&place[..], arguments].concat());
        assert!(run.status.code() == Some(2) && run.stderr.contains(reason), "{target}: {run:?}");
    }
    let run = finished(&["start", "no-such-target"]);
    assert!(run.status.code() == Some(2) && run.stderr.contains("did you mean "), "{run:?}");
}

#[test]
fn a_file_of_ones_own_is_a_target_too_and_its_mistakes_have_a_place() {
    let folder = Folder::new();
    let own = folder.write("own.toml", "name = 'own'\ntitle = 'Own'\nnote = 'n'\nrole = 'balanser'\n");
    let run = finished(&["start", own.to_str().unwrap()]);
    assert!(run.status.code() == Some(2) && run.stderr.contains("line 4, column 8"), "{run:?}");
    let shell = "name = 'own'\ntitle = 'Own'\nnote = 'n'\narguments = ['-c', 'echo no such thing; exit 3']\n\
                 [program]\nnames = ['sh']\ninstall = '-'\nversion = { fixed = '1' }\n";
    let own = folder.write("own.toml", shell);
    let run = finished(&["start", own.to_str().unwrap()]);
    let told = "own ended by itself (exit code 3): no such thing";
    assert!(run.status.code() == Some(1) && run.stderr.contains(told), "{run:?}");
}

#[test]
fn nothing_is_left_when_the_bench_is_killed() {
    for target in ["nginx", "hitch", "hitch+haproxy"] {
        let Some(mut started) = Started::new(target, &["--workers=2"]) else { continue };
        started.child.kill().unwrap();
        started.child.wait().unwrap();
        started.wait_until_nothing_is_left();
    }
}

#[test]
fn nothing_is_left_when_the_keeper_is_killed() {
    for target in ["nginx", "hitch", "hitch+haproxy"] {
        let Some(mut started) = Started::new(target, &["--workers=2"]) else { continue };
        kill(started.pid("keeper"));
        assert_eq!(started.child.wait().unwrap().code(), Some(4), "{target}");
        started.wait_until_nothing_is_left();
    }
}

#[test]
fn nothing_is_left_when_the_first_process_of_a_target_is_killed() {
    for target in ["nginx", "hitch", "haproxy"] {
        let Some(mut started) = Started::new(target, &["--workers=2"]) else { continue };
        kill(started.pid("pid"));
        assert_eq!(started.child.wait().unwrap().code(), Some(4), "{target}");
        started.wait_until_nothing_is_left();
    }
}
