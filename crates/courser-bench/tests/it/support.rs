//! Runs of the program, what its record says, and what stands between it and the servers.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use courser_testkit::{FaultyServer, Finished, Process};
use serde_json::Value;

/// Nothing before the steady phase: every connection but the first one, a probe, counts.
pub(crate) const AT_ONCE: [&str; 5] = ["--warm-up", "0", "--ramp-up", "0", "--json"];

/// Starts the program.
pub(crate) fn bench(arguments: &[&str]) -> Process {
    Process::start(Command::new(env!("CARGO_BIN_EXE_courser-bench")).args(arguments))
}

/// Runs the program to its end.
pub(crate) fn finished(arguments: &[&str]) -> Finished {
    bench(arguments).finish()
}

/// What asks a server for a thousand bytes.
pub(crate) fn url(address: SocketAddr) -> String {
    format!("https://{address}/?s=1000")
}

/// Loads this liar, for a second unless they say so: `verb` with `arguments`.
pub(crate) fn judge(verb: &str, liar: &FaultyServer, arguments: &[&str]) -> Judged {
    judge_at(verb, liar.address(), arguments)
}

/// As [`judge`], whoever listens there.
pub(crate) fn judge_at(verb: &str, address: SocketAddr, arguments: &[&str]) -> Judged {
    let url = url(address);
    let time: &[&str] = if arguments.contains(&"--duration") { &[] } else { &["--duration", "1s"] };
    Judged::of(&finished(&[&[verb, &url, "--quiet"], time, &AT_ONCE, arguments].concat()))
}

/// A run that has ended, and its record.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) code: Option<i32>,
    pub(crate) record: Value,
}

impl Judged {
    /// Reads the record that the run printed.
    pub(crate) fn of(run: &Finished) -> Self {
        let record = serde_json::from_str(&run.stdout).unwrap_or_else(|why| panic!("{why}: {run:?}"));
        Self { code: run.status.code(), record }
    }

    /// The only run in the record.
    pub(crate) fn run(&self) -> &Value {
        &self.record["runs"][0]
    }

    /// A number among the totals, by its path: `/requests/failed`.
    pub(crate) fn total(&self, path: &str) -> u64 {
        let number = self.run()["totals"].pointer(path).and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("no {path} in {:#}", self.run()["totals"]))
    }

    /// How many attempts failed in this way.
    pub(crate) fn failed_as(&self, class: &str) -> u64 {
        self.run()["totals"]["failures"][class].as_u64().unwrap_or(0)
    }

    /// Names of the ways in which attempts failed.
    pub(crate) fn classes(&self) -> Vec<&str> {
        let failures = self.run()["totals"]["failures"].as_object().unwrap();
        failures.keys().map(String::as_str).collect()
    }

    /// Handshakes of which something is true.
    pub(crate) fn handshakes(&self, of: impl Fn(&Value) -> bool) -> u64 {
        let rows = self.run()["totals"]["negotiated"].as_array().unwrap();
        rows.iter().filter(|row| of(row)).map(|row| row["count"].as_u64().unwrap()).sum()
    }

    /// Names of all findings.
    pub(crate) fn ids(&self) -> Vec<&str> {
        self.findings().iter().map(|finding| finding["id"].as_str().unwrap()).collect()
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.ids().contains(&id)
    }

    /// What findings of this name say.
    pub(crate) fn texts(&self, id: &str) -> impl Iterator<Item = &str> {
        let found = self.findings().iter().filter(move |finding| finding["id"] == id);
        found.map(|finding| finding["text"].as_str().unwrap())
    }

    /// What a finding says.
    pub(crate) fn text(&self, id: &str) -> &str {
        self.texts(id).next().unwrap_or_else(|| panic!("no {id} among {:#}", self.run()["findings"]))
    }

    /// What to do about it.
    pub(crate) fn advice(&self, id: &str) -> &str {
        let found = self.findings().iter().find(|finding| finding["id"] == id);
        found.unwrap_or_else(|| panic!("no {id}: {:?}", self.ids()))["advice"].as_str().unwrap()
    }

    /// Whether the generator itself says that its figures cannot be trusted; on a busy machine that may come any time.
    pub(crate) fn is_inconclusive(&self) -> bool {
        assert_eq!(self.run()["verdict"]["valid"] == false, self.code == Some(3), "{:?}", self.code);
        self.code == Some(3)
    }

    fn findings(&self) -> &[Value] {
        self.run()["findings"].as_array().unwrap()
    }
}

/// A balancer: connections go to each of its servers in turn. Dropping it closes its socket.
#[derive(Debug)]
pub(crate) struct Balancer {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Balancer {
    /// Starts one on a free port.
    pub(crate) fn start(servers: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stopped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stopped);
        let thread = thread::spawn(move || {
            for (client, server) in listener.incoming().zip(servers.iter().cycle()) {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                join(client.unwrap(), TcpStream::connect(server).unwrap()).unwrap();
            }
        });
        Self { address, stopped, thread: Some(thread) }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Ends the wait for the next client.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Carries bytes both ways until both sides have ended.
fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
    }
    let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || carry(client, server));
    thread::spawn(move || carry(server_too, client_too));
    Ok(())
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    // However it ends, the other side sees an end.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
