//! What a record counts, held to what somebody else has counted: the logs of nginx and HAProxy, and the kernel's
//! account of a process.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use courser_testkit::{Folder, KeyType, OriginServer, PATIENCE, Process, Signal, TestCa, free_port, require};
use serde_json::Value;

/// The client that `courser-bench` sends first, to see that there is somebody; it makes a full handshake.
const PROBE: u64 = 1;

const REUSE: u64 = 4;

/// Clients of the closed loops.
const CLIENTS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Nginx,
    Haproxy,
}

/// How a server remembers sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Tickets,
    Ids,
    /// One session by ID, whoever had it last.
    OneId,
    Nothing,
}

/// Handshakes by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handshakes {
    full: u64,
    resumed: u64,
}

impl Handshakes {
    /// Within one per cent of what the other has counted.
    fn agrees_with(self, other: Self) -> bool {
        let near = |left: u64, right: u64| left.abs_diff(right) * 100 <= right;
        near(self.full, other.full) && near(self.resumed, other.resumed)
    }
}

/// A real server that logs one line a handshake.
pub(crate) struct Judge {
    program: Program,
    process: Process,
    pub(crate) address: SocketAddr,
    _folder: Folder,
}

impl Judge {
    fn start(program: Program, version: &str, memory: Memory) -> Option<Self> {
        Self::start_on([127, 0, 0, 1], program, version, memory)
    }

    /// `None` when it is not installed.
    pub(crate) fn start_on(ip: [u8; 4], program: Program, version: &str, memory: Memory) -> Option<Self> {
        let folder = Folder::new();
        TestCa::new().localhost(KeyType::EcdsaP256, &folder, "site");
        Self::with_pair(ip, program, version, memory, folder)
    }

    /// One that makes full handshakes of TLS 1.3 alone, a few hundred a second: its key is RSA with 4096 bits.
    pub(crate) fn slow(program: Program) -> Option<Self> {
        let folder = Folder::new();
        let pair = folder.path().join("site.pem");
        let mut openssl = Command::new(require("openssl")?);
        openssl.args(["req", "-x509", "-newkey", "rsa:4096", "-nodes", "-subj", "/CN=localhost"]);
        let made = Process::start(openssl.arg("-keyout").arg(&pair).args(["-out", "-"])).finish();
        fs::write(&pair, fs::read_to_string(&pair).unwrap() + &made.stdout).unwrap();
        Self::with_pair([127, 0, 0, 1], program, "1.3", Memory::Nothing, folder)
    }

    /// With the certificate and the key in `site.pem`.
    fn with_pair(
        ip: [u8; 4],
        program: Program,
        version: &str,
        memory: Memory,
        folder: Folder,
    ) -> Option<Self> {
        let address = SocketAddr::from((ip, free_port()));
        let mut command = match program {
            Program::Nginx => nginx(address, version, memory, &folder)?,
            Program::Haproxy => haproxy(address, version, memory, &folder)?,
        };
        let mut process = Process::start(&mut command);
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert!(process.is_running() && Instant::now() < deadline, "it does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Some(Self { program, process, address, _folder: folder })
    }

    /// Loads it as fast as [`CLIENTS`] clients go.
    fn load(&self, version: &str, by: &str) -> Value {
        let url = format!("https://{}/", self.address);
        let (clients, reuse) = (CLIENTS.to_string(), REUSE.to_string());
        let model = ["-c", &clients, "--reuse", &reuse, "--resume", by, "--tls", version];
        record(&[&["load", &url], &model[..]].concat())
    }

    fn printed(self) -> String {
        self.process.signal(if self.program == Program::Nginx { Signal::SIGQUIT } else { Signal::SIGUSR1 });
        self.process.finish().stdout
    }

    /// Lets it end what it has begun; when it logged, microseconds since 1970.
    pub(crate) fn times_us(self) -> Vec<u64> {
        let printed = self.printed();
        let times = printed
            .lines()
            .filter(|line| line.starts_with("handshake "))
            .filter_map(|line| line.split(' ').next_back());
        // Seconds with their thousandths, or microseconds.
        let us = |time: &str| time.split_once('.').map_or(time.to_owned(), |(s, ms)| format!("{s}{ms}000"));
        times.map(|time| us(time).parse().unwrap_or_else(|_| panic!("{printed}"))).collect()
    }

    /// Lets it end what it has begun, and reads its log.
    fn log(self, version: &str) -> Handshakes {
        let printed = self.printed();
        let lines: Vec<_> = printed.lines().filter_map(|line| line.strip_prefix("handshake ")).collect();
        let version = format!(" TLSv{version} ");
        assert!(lines.iter().all(|line| line.contains(&version)), "{printed}");
        let resumed = lines.iter().filter(|line| line.starts_with(['r', '1'])).count() as u64;
        Handshakes { full: lines.len() as u64 - resumed, resumed }
    }
}

fn nginx(listen: SocketAddr, version: &str, memory: Memory, folder: &Folder) -> Option<Command> {
    let program = require("nginx")?;
    let pair = folder.path().join("site.pem");
    let (cache, tickets) = match memory {
        Memory::Tickets => ("none", "on"),
        Memory::Ids => ("shared:tls:1m", "off"),
        Memory::Nothing => ("off", "off"),
        Memory::OneId => unreachable!("its smallest cache has room for hundreds"),
    };
    let text = format!(
        "daemon off; worker_processes 1; pid {folder}/pid; error_log stderr crit;
user root; # there may be no other one, in a namespace
events {{ worker_connections 512; use epoll; epoll_events 1; }} # its clock stands still between calls
http {{
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  log_format handshakes 'handshake $ssl_session_reused $ssl_protocol $ssl_cipher $msec';
  access_log /dev/stdout handshakes;
  server {{
    listen {listen} ssl;
    ssl_certificate {pair}; ssl_certificate_key {pair};
    ssl_protocols TLSv{version};
    ssl_session_cache {cache}; ssl_session_tickets {tickets};
    location / {{ return 200 'well'; }}
  }}
}}
",
        folder = folder.path().display(),
        pair = pair.display(),
    );
    let mut command = Command::new(program);
    command.arg("-p").arg(folder.path()).arg("-c").arg(folder.write("nginx.conf", text));
    Some(command)
}

fn haproxy(listen: SocketAddr, version: &str, memory: Memory, folder: &Folder) -> Option<Command> {
    let program = require("haproxy")?;
    let pair = folder.path().join("site.pem");
    let (cache, tickets) = match memory {
        Memory::Tickets => (0, ""),
        Memory::Ids => (20_000, "no-tls-tickets"),
        Memory::OneId => (1, "no-tls-tickets"),
        Memory::Nothing => (0, "no-tls-tickets"),
    };
    let text = format!(
        "global
  nbthread 1
  maxconn 512
  log stdout format raw local0
  tune.ssl.cachesize {cache}
  tune.maxpollevents 1
defaults
  mode http
  log global
  timeout connect 10s
  timeout client 1m
  timeout server 1m
frontend tls
  bind {listen} ssl crt {pair} ssl-min-ver TLSv{version} ssl-max-ver TLSv{version} {tickets}
  log-format 'handshake %[ssl_fc_is_resumed] %sslv %sslc %[date(0,us)]'
  http-request return status 200 content-type text/plain string well
",
        pair = pair.display(),
    );
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(folder.write("haproxy.cfg", text));
    Some(command)
}

/// The record of a run of one second; the verdict is the machine's affair.
fn record(arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
    let phases = ["--warm-up", "0", "--ramp-up", "0", "--duration", "1s", "--json", "--quiet"];
    let run = Process::start(command.args(arguments).args(phases)).finish();
    assert!(matches!(run.status.code(), Some(0 | 3)), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

/// What a record has counted, in whichever second.
fn recorded(record: &Value) -> Handshakes {
    let seconds = record["runs"][0]["seconds"].as_array().unwrap();
    let sum = |field: &str| seconds.iter().map(|second| second[field].as_u64().unwrap()).sum();
    Handshakes { full: sum("full"), resumed: sum("resumed") }
}

fn finds(record: &Value, id: &str) -> bool {
    let findings = record["runs"][0]["findings"].as_array().unwrap();
    findings.iter().any(|finding| finding["id"] == id)
}

/// The kinds of handshakes in the steady window.
fn kinds(record: &Value) -> Vec<&str> {
    let negotiated = record["runs"][0]["totals"]["negotiated"].as_array().unwrap();
    negotiated.iter().map(|kind| kind["handshake"].as_str().unwrap()).collect()
}

/// Three of four are resumed, by the record and by the log.
fn resumes(program: Program, version: &str, memory: Memory, by: &str, kind: &str) {
    let Some(judge) = Judge::start(program, version, memory) else { return };
    let record = judge.load(version, by);
    let (mut counted, logged) = (recorded(&record), judge.log(version));
    // The first session of a client makes fewer connections, and time may be too short for its last one.
    let whole = counted.full * (REUSE - 1);
    assert!(counted.resumed <= whole && whole - counted.resumed <= 2 * CLIENTS * (REUSE - 1), "{counted:?}");
    counted.full += PROBE;
    assert!(counted.agrees_with(logged), "{program:?} {version} {memory:?}: {counted:?}, logged {logged:?}");
    assert!(kinds(&record).iter().all(|found| ["full", kind].contains(found)), "{record:#}");
    for id in ["resumption-refused", "resumption-partial", "no-sessions"] {
        assert!(!finds(&record, id), "{id} at {program:?} {version} {memory:?}");
    }
}

/// No handshake is resumed, by the record and by the log, and a reader is told why.
fn refuses(program: Program, version: &str, why: &str) {
    let Some(judge) = Judge::start(program, version, Memory::Nothing) else { return };
    let by = if version == "1.3" { "ticket" } else { "id" };
    let record = judge.load(version, by);
    let (mut counted, logged) = (recorded(&record), judge.log(version));
    counted.full += PROBE;
    assert!(counted.full > PROBE && counted.resumed == 0, "{counted:?}");
    assert!(counted.agrees_with(logged), "{program:?} {version}: {counted:?}, logged {logged:?}");
    assert!(finds(&record, why), "{program:?} {version}: {}", record["runs"][0]["findings"]);
}

#[test]
fn nginx_counts_the_same_resumptions() {
    resumes(Program::Nginx, "1.3", Memory::Tickets, "ticket", "psk");
    resumes(Program::Nginx, "1.2", Memory::Tickets, "ticket", "ticket");
    resumes(Program::Nginx, "1.2", Memory::Ids, "id", "session_id");
}

#[test]
fn haproxy_counts_the_same_resumptions() {
    resumes(Program::Haproxy, "1.3", Memory::Tickets, "ticket", "psk");
    resumes(Program::Haproxy, "1.2", Memory::Tickets, "ticket", "ticket");
    resumes(Program::Haproxy, "1.2", Memory::Ids, "id", "session_id");
}

#[test]
fn a_server_that_remembers_nothing_is_seen_to() {
    refuses(Program::Nginx, "1.2", "no-sessions");
    refuses(Program::Nginx, "1.3", "resumption-refused");
    refuses(Program::Haproxy, "1.2", "no-sessions");
}

/// Clients take turns, so that a cache of one session has mostly forgotten who comes.
#[test]
fn a_cache_that_is_too_small_is_seen() {
    let Some(judge) = Judge::start(Program::Haproxy, "1.2", Memory::OneId) else { return };
    let url = format!("https://{}/", judge.address);
    let record = record(&["load", &url, "-c", "16", "--resume", "id", "--tls", "1.2"]);
    let (mut counted, logged) = (recorded(&record), judge.log("1.2"));
    counted.full += PROBE;
    assert!(counted.agrees_with(logged), "{counted:?}, logged {logged:?}");
    assert_eq!(record["experiment"]["tls"]["reuse"], REUSE, "the default, told in METHODOLOGY.md");
    let offered = record["runs"][0]["totals"]["offered"]["session_id"].as_u64().unwrap();
    assert!(counted.resumed < offered, "{counted:?} of {offered}");
    let is_named = finds(&record, "resumption-partial") || finds(&record, "resumption-refused");
    assert!(is_named, "{}", record["runs"][0]["findings"]);
}

/// When a process was looked at, and what it had used by then: microseconds.
type Look = (u64, u64);

/// Looks at a process all the time until told to stop. In the kernel's unit, ticks of 10 ms.
fn look(pid: u32, over: &AtomicBool) -> Vec<Look> {
    const TICK_US: u64 = 10_000;
    let mut looks = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap();
        // utime and stime are the 14th and 15th field; the second is a name in brackets.
        let after_name = stat.rsplit_once(')').unwrap().1;
        let ticks: u64 =
            after_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        looks.push((u64::try_from(now).unwrap(), ticks * TICK_US));
        thread::sleep(Duration::from_millis(1));
    }
    looks
}

/// The least and the most that a process can have used between two times, given when it was looked at.
fn bounds(looks: &[Look], from: u64, to: u64) -> (u64, u64) {
    let last_before = |time: u64| looks.iter().rev().find(|(at, _)| *at <= time).unwrap().1;
    let first_after = |time: u64| looks.iter().find(|(at, _)| *at >= time).unwrap().1;
    (last_before(to).saturating_sub(first_after(from)), first_after(to) - last_before(from))
}

/// The watched process never rests, and has nothing to do with the load: what counts is whose time is read, and when.
#[test]
fn processor_time_is_what_the_kernel_says_of_the_process() {
    let busy = Process::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let over = Arc::new(AtomicBool::new(false));
    let looking = thread::spawn({
        let (pid, over) = (busy.pid(), Arc::clone(&over));
        move || look(pid, &over)
    });
    let (origin, pid) = (OriginServer::http(), busy.pid().to_string());
    let url = format!("http://{}/", origin.address());
    let record = record(&["load", &url, "--rate", "20", "--reuse", "1", "--server-pid", &pid]);
    over.store(true, Ordering::Relaxed);
    let looks = looking.join().unwrap();
    let (run, number) = (&record["runs"][0], |value: &Value| value.as_u64().unwrap());
    let (window, server) = (&run["window"], &run["server"]);
    let used = number(&server["user_us"]) + number(&server["system_us"]);
    let ends = [&window["steady_start_unix_us"], &window["steady_end_unix_us"]].map(number);
    let (least, most) = bounds(&looks, ends[0], ends[1]);
    // What the record says that its readings were off, and a tick for each of our fields and its.
    let slack = number(&server["alignment_error_us"]) + 40_000;
    assert!(
        least.saturating_sub(slack) <= used && used <= most + slack,
        "{least} to {most}, not {used}: {server:#}"
    );
    assert!(most > 0 && server["pids"] == serde_json::json!([busy.pid()]), "{server:#}");
}
