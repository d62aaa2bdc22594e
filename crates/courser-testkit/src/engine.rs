//! Redis and Valkey, real, each server in a folder of its own on a port of its own.

use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::{Folder, PATIENCE, Process, Signal, find, free_port, leave_out, require};

/// A program that speaks Redis' protocol and stores values.
#[derive(Clone, Debug)]
pub struct Engine {
    program: PathBuf,
}

impl Engine {
    /// Those of Redis and Valkey that are installed, after printing which are not.
    pub fn installed() -> Vec<Self> {
        let programs = ["redis-server", "valkey-server"].into_iter().filter_map(require);
        programs.map(|program| Self { program }).collect()
    }

    /// A server on a free port of 127.0.0.1 that stores nothing on disk, with further `arguments` as on its command line.
    #[must_use]
    pub fn start(&self, arguments: &[&str]) -> EngineServer {
        self.start_at(Ipv4Addr::LOCALHOST.into(), arguments)
    }

    /// As [`Engine::start`], on another address of this machine.
    #[must_use]
    pub fn start_at(&self, address: IpAddr, arguments: &[&str]) -> EngineServer {
        self.start_in(Folder::new(), address, arguments)
    }

    /// As [`Engine::start_at`], in a folder that has its files already.
    #[must_use]
    pub fn start_in(&self, folder: Folder, address: IpAddr, arguments: &[&str]) -> EngineServer {
        let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
        // A port that was free may be taken by the time the server binds it.
        let started = (0..5).find_map(|_| {
            let address = SocketAddr::new(address, free_port());
            let process = self.run(&folder, address, &arguments);
            is_ready(&process).then_some((address, process))
        });
        let (address, process) = started.expect("one of five ports is free, and the server can start");
        EngineServer { engine: self.clone(), folder, address, arguments, process: Some(process) }
    }

    /// Whether it was built with TLS; prints a skip if not.
    pub fn has_tls(&self) -> bool {
        let mut command = Command::new(&self.program);
        let finished = Process::start(command.args(["--port", "0", "--tls-port", "1"])).finish();
        // One that has it misses a certificate.
        let has_tls = finished.stdout.contains("Failed to configure TLS");
        if !has_tls {
            leave_out(format!("{} is built without TLS", self.program.display()));
        }
        has_tls
    }

    fn run(&self, folder: &Folder, address: SocketAddr, arguments: &[OsString]) -> Process {
        let mut command = Command::new(&self.program);
        command.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
        command.arg("--bind").arg(address.ip().to_string()).arg("--port").arg(address.port().to_string());
        command.arg("--dir").arg(folder.path()).arg("--unixsocket").arg(folder.join("socket"));
        Process::start(command.args(arguments))
    }

    /// A sentinel that watches over `master` under the name `main`, and declares it dead after half a second.
    #[must_use]
    pub fn sentinel(&self, master: &EngineServer, quorum: usize) -> EngineServer {
        let folder = Folder::new();
        let settings = format!(
            "sentinel monitor main {} {} {quorum}\n\
             sentinel down-after-milliseconds main 500\n\
             sentinel failover-timeout main 2000\n",
            master.address.ip(),
            master.address.port(),
        );
        let file = folder.write("sentinel.conf", settings);
        let address = SocketAddr::new(master.address.ip(), free_port());
        let mut command = Command::new(&self.program);
        command.arg(file).arg("--sentinel").arg("--port").arg(address.port().to_string());
        command.arg("--bind").arg(address.ip().to_string()).arg("--dir").arg(folder.path());
        let process = Process::start(&mut command);
        process.wait_stdout("the sentinel", |lines| {
            lines.iter().any(|line| line.contains("+monitor master")).then_some(())
        });
        EngineServer { engine: self.clone(), folder, address, arguments: Vec::new(), process: Some(process) }
    }
}

/// A server, stopped when dropped.
#[derive(Debug)]
pub struct EngineServer {
    engine: Engine,
    folder: Folder,
    address: SocketAddr,
    arguments: Vec<OsString>,
    process: Option<Process>,
}

impl EngineServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Sends it a signal, if it runs.
    pub fn signal(&self, signal: Signal) {
        self.process.iter().for_each(|process| process.signal(signal));
    }

    /// Ends it without a warning, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal(Signal::SIGKILL);
            let _ = process.wait();
        }
    }

    /// Starts it again where it was, after [`EngineServer::kill`]: empty.
    pub fn restart(&mut self) {
        let process = self.engine.run(&self.folder, self.address, &self.arguments);
        assert!(is_ready(&process), "the server does not start again");
        self.process = Some(process);
    }

    /// What it answers to a command of an administrator, through its unix socket (a sentinel has none: its port).
    pub fn command(&self, arguments: &[&str]) -> String {
        self.try_command(arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`EngineServer::command`], for a server whose role a sentinel may change meanwhile: it cuts the connections of all
    /// clients then.
    ///
    /// # Errors
    ///
    /// What the client printed.
    pub fn try_command(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = cli();
        if self.socket().exists() {
            command.arg("-s").arg(self.socket());
        } else {
            command.args(["-h", &self.address.ip().to_string(), "-p", &self.address.port().to_string()]);
        }
        run(command.args(arguments))
    }

    /// Whether `ROLE` says that it has this one; not while the server cuts connections.
    pub fn has_role(&self, role: &str) -> bool {
        self.try_command(&["ROLE"]).is_ok_and(|answer| answer.starts_with(role))
    }
}

/// Makes a cluster of `nodes` that were started with `--cluster-enabled yes`, each master with so many replicas, and waits
/// until every node agrees.
pub fn join_cluster(nodes: &[EngineServer], replicas: usize) {
    let addresses: Vec<_> = nodes.iter().map(|node| node.address.to_string()).collect();
    let replicas = replicas.to_string();
    let mut create = cli();
    create.args(["--cluster", "create"]).args(&addresses);
    run(create.args(["--cluster-replicas", &replicas, "--cluster-yes"]))
        .unwrap_or_else(|error| panic!("{error}"));
    let deadline = Instant::now() + PATIENCE;
    let is_whole = |node: &EngineServer| node.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
    while !nodes.iter().all(is_whole) {
        assert!(Instant::now() < deadline, "the cluster does not come together");
        thread::sleep(Duration::from_millis(20));
    }
}

fn cli() -> Command {
    Command::new(find("redis-cli").or_else(|| find("valkey-cli")).expect("redis-cli comes with redis-server"))
}

fn run(command: &mut Command) -> Result<String, String> {
    let finished = Process::start(command).finish();
    let failed = || format!("{}\n{}", finished.stdout, finished.stderr);
    if finished.status.success() { Ok(finished.stdout) } else { Err(failed()) }
}

fn is_ready(process: &Process) -> bool {
    let ready = |lines: &[String]| lines.iter().any(|line| line.contains("Ready to accept connections"));
    process.try_wait_stdout(|lines| ready(lines).then_some(())).is_ok()
}
