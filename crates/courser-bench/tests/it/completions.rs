//! Rates are what was served, held to what somebody else has logged: a server that serves one at a time at a known rate,
//! and the logs of nginx and HAProxy, below what they can serve and above it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use courser_testkit::leave_out;

use crate::counts::{Judge, Memory, Program};
use crate::support::{AT_ONCE, Judged, finished};

/// Answers `PER_SECOND` clients a second, one at a time, in the order in which they came, and logs when.
struct SlowServer {
    address: SocketAddr,
    served_us: Arc<Mutex<Vec<u64>>>,
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

const PER_SECOND: u32 = 90;

impl SlowServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (served_us, stopped) = (Arc::<Mutex<Vec<u64>>>::default(), Arc::<AtomicBool>::default());
        let (queue, clients) = channel();
        let over = Arc::clone(&stopped);
        let accept = thread::spawn(move || {
            for client in listener.incoming() {
                if over.load(Ordering::SeqCst) || queue.send(client.unwrap()).is_err() {
                    return;
                }
            }
        });
        let (log, over) = (Arc::clone(&served_us), Arc::clone(&stopped));
        let serve = thread::spawn(move || serve(&clients, &log, &over));
        Self { address, served_us, stopped, threads: vec![accept, serve] }
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Ends the wait for the next client.
        let _ = TcpStream::connect(self.address);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn serve(clients: &Receiver<TcpStream>, log: &Mutex<Vec<u64>>, over: &AtomicBool) {
    let each = Duration::from_secs(1) / PER_SECOND;
    let mut free = Instant::now();
    for client in clients.iter().take_while(|_| !over.load(Ordering::SeqCst)) {
        free = free.max(Instant::now()) + each;
        thread::sleep(free.saturating_duration_since(Instant::now()));
        if answer(client).is_ok() {
            log.lock().unwrap().push(now_us());
        }
    }
}

fn answer(mut client: TcpStream) -> io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(1)))?;
    if client.read(&mut [0; 1024])? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into()); // it has given up
    }
    client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwell")
}

fn now_us() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

/// How many of these times are in the record's window, and what the record says.
fn in_window(judged: &Judged, times_us: &[u64]) -> (u64, u64) {
    let edge = |name: &str| judged.run()["window"][name].as_u64().unwrap();
    let window = edge("steady_start_unix_us")..edge("steady_end_unix_us");
    let logged = times_us.iter().filter(|time| window.contains(time)).count() as u64;
    (judged.total("/completed/transactions"), logged)
}

/// Within 1 %; one that is on its way at either end may be on either side.
fn agree((recorded, logged): (u64, u64)) -> bool {
    recorded.abs_diff(logged) <= logged / 100 + 2
}

#[test]
fn what_is_served_after_the_window_is_no_rate() {
    let server = SlowServer::start();
    let url = format!("http://{}/", server.address);
    let load = ["load", &url, "--connection-rate", "400", "--duration", "2s", "--drain", "3s", "--quiet"];
    let judged = Judged::of(&finished(&[&load[..], &AT_ONCE].concat()));
    let served = server.served_us.lock().unwrap().clone();
    let counts = in_window(&judged, &served);
    assert!(agree(counts), "{counts:?} of {}", served.len());
    let rate = judged.total("/completed/transactions") / 2;
    assert!((80..=92).contains(&rate), "{rate}/s");
    assert!(
        judged.total("/requests/succeeded") > 2 * counts.0,
        "by intended start all that the drain saw count"
    );
    let text = judged.text("not-served");
    assert!(
        text.starts_with("overload: ") && text.ends_with(" of 800 attempts were not served in the window"),
        "{text}"
    );
    assert!(judged.has("loss"), "what the drain had no time for: {:?}", judged.ids());
}

/// At a rate, for two seconds, with the log lines' times beside it.
fn load(judge: Judge, rate: &str) -> (u64, u64, Judged) {
    let url = format!("https://{}/", judge.address);
    let load = ["load", &url, "--connection-rate", rate, "--duration", "2s", "--drain", "2s", "--quiet"];
    let judged = Judged::of(&finished(&[&load[..], &["--reuse", "1"], &AT_ONCE].concat()));
    let (recorded, logged) = in_window(&judged, &judge.times_us());
    (recorded, logged, judged)
}

/// Whether a busy machine or the program is at fault shows when it is tried again.
fn completions_are_those_of_the_log(program: Program, is_above: bool) {
    let rate = if is_above { "500" } else { "40" };
    for _ in 0..3 {
        let judge = match is_above {
            true => Judge::slow(program),
            false => Judge::start_on([127, 0, 0, 1], program, "1.3", Memory::Nothing),
        };
        let Some(judge) = judge else { return };
        let (recorded, logged, judged) = load(judge, rate);
        let falls_short = 20 * recorded < 19 * judged.total("/connections/attempted");
        if agree((recorded, logged)) && falls_short == is_above {
            assert!(recorded > 20, "{recorded}");
            assert_eq!(judged.has("not-served") || judged.has("loss"), is_above, "{:?}", judged.ids());
            return;
        }
        println!("{program:?} at {rate}/s: {recorded} recorded, {logged} logged; {:?}", judged.ids());
        assert!(judged.is_inconclusive() || agree((recorded, logged)), "{:#}", judged.run()["totals"]);
    }
    leave_out(format!("the machine is too busy for {program:?} at {rate}/s"));
}

#[test]
fn nginx_logs_as_many_as_were_completed() {
    completions_are_those_of_the_log(Program::Nginx, false);
    completions_are_those_of_the_log(Program::Nginx, true);
}

#[test]
fn haproxy_logs_as_many_as_were_completed() {
    completions_are_those_of_the_log(Program::Haproxy, false);
    completions_are_those_of_the_log(Program::Haproxy, true);
}
