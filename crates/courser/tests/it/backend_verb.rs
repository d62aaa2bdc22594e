//! `courser backend`: what an operator reads of servers, and what drain, enable and weight do. HAProxy judges what an agent's
//! words mean.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use courser_testkit::client::Version;
use courser_testkit::process::Finished;
use courser_testkit::{Courser, OriginServer, Process, require};
use serde_json::Value;

use crate::backends::nobody;
use crate::stage::{Stage, courser, eventually, run};

/// A terminator with these pools, a listener for each of `used`, and a control socket.
struct Service {
    stage: Stage,
    courser: Courser,
    control: PathBuf,
}

impl Service {
    fn start(pools: &str, used: &[&str]) -> Self {
        let stage = Stage::new();
        let file = Self::write(&stage, pools, used);
        let courser = courser().config(&file).sockets(used.len()).start();
        let control = stage.folder.join("control.sock");
        Self { stage, courser, control }
    }

    fn write(stage: &Stage, pools: &str, used: &[&str]) -> PathBuf {
        let (certificate, control) = (stage.certificate.display(), stage.folder.join("control.sock"));
        let mut text = format!("workers = 1\nlog = 'json'\ncontrol = '{}'\n{pools}\n", control.display());
        for pool in used {
            let _ = write!(
                text,
                "[[listener]]\nname = '{pool}'\nlisten = '127.0.0.1:0'\ncert = '{certificate}'\npool = '{pool}'\n"
            );
        }
        stage.folder.write("courser.toml", text)
    }

    fn backend(&self, arguments: &[&str]) -> Finished {
        let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
        run(command.arg("backend").args(arguments).arg("--control").arg(&self.control))
    }

    /// The answer to a request that succeeds.
    #[track_caller]
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let done = self.backend(&[arguments, &["--json"]].concat());
        assert!(done.status.success(), "{}", done.stderr);
        done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn get(&self) -> bool {
        self.stage.client(&self.courser, Version::Tls13).connect().unwrap().get(10, true).is_ok()
    }
}

#[test]
fn a_drained_server_gets_no_new_connections_and_its_open_ones_go_on() {
    let origins = [OriginServer::http(), OriginServer::http()];
    let [one, two] = origins.each_ref().map(OriginServer::backend);
    let service = Service::start(&format!("[pool.shop]\nservers = ['{one}', '{two}']"), &["shop"]);
    let client = service.stage.client(&service.courser, Version::Tls13);
    let mut open = [client.connect().unwrap(), client.connect().unwrap()];
    open.iter_mut().for_each(|connection| connection.get(10, false).unwrap());
    let drained = service.rows(&["drain", one]);
    assert_eq!(drained.len(), 1);
    assert_eq!(
        (&drained[0]["state"], &drained[0]["drained_by"][0], &drained[0]["connections"]),
        (&"draining".into(), &"operator".into(), &1.into()),
        "{drained:#?}"
    );
    (0..4).for_each(|_| assert!(service.get()));
    assert_eq!(origins.each_ref().map(OriginServer::accepted), [1, 5]);
    open.iter_mut().for_each(|connection| connection.get(10, true).unwrap());
    service.courser.wait_stderr_line(&format!("pool shop: server {one}: drained by the operator"));
    assert_eq!(service.rows(&["enable", one])[0]["state"], "starting");
    assert_eq!(service.rows(&["list"]).len(), 2);
}

#[test]
fn a_weight_is_set_and_a_weight_of_nothing_drains() {
    let origins = [OriginServer::http(), OriginServer::http()];
    let [one, two] = origins.each_ref().map(OriginServer::backend);
    let service = Service::start(&format!("[pool.shop]\nservers = ['{one}', '{two}']"), &["shop"]);
    assert_eq!(service.rows(&["weight", one, "25%"])[0]["weight_percent"], 25);
    (0..50).for_each(|_| assert!(service.get()));
    let accepted = origins[0].accepted();
    assert!((8..=12).contains(&accepted), "a fifth of 50, not {accepted}");
    let table = service.backend(&["weight", one, "0%"]).stdout;
    assert!(table.contains("draining") && table.contains("1 at 0%"), "{table}");
    (0..4).for_each(|_| assert!(service.get()));
    assert_eq!(origins[0].accepted(), accepted);
    let wrong = service.backend(&["weight", one, "lots"]);
    assert!(wrong.status.code() == Some(2) && wrong.stderr.contains("50%"), "{}", wrong.stderr);
}

#[test]
fn a_name_that_is_wrong_or_in_two_pools_is_refused_with_what_to_write() {
    let origin = OriginServer::http();
    let shop = format!("[pool.shop]\nservers = '{0}'\n[pool.api]\nservers = '{0}'", origin.backend());
    let service = Service::start(&shop, &["shop", "api"]);
    let refused = |name: &str| {
        let done = service.backend(&["drain", name]);
        assert_eq!(done.status.code(), Some(2), "{}", done.stderr);
        done.stderr
    };
    let several = refused(origin.backend());
    assert!(several.contains(&format!("`shop/{}`", origin.backend())), "{several}");
    let misspelt = refused("shopp/127.0.0.1:80");
    assert!(misspelt.contains("there is no server `shopp/127.0.0.1:80`"), "{misspelt}");
    let near = refused(&format!("shop{}", origin.backend()));
    assert!(near.contains("did you mean"), "{near}");
    assert_eq!(service.rows(&["drain", &format!("shop/{}", origin.backend())])[0]["pool"], "shop");
    let states: Vec<_> = service.rows(&["list"]).iter().map(|row| row["state"].clone()).collect();
    assert_eq!(states.iter().filter(|state| **state == "up").count(), 1, "{states:?}");
}

#[test]
fn what_the_operator_said_holds_over_a_reload_that_makes_the_pool_anew() {
    let origin = OriginServer::http();
    let pool = format!("[pool.shop]\nservers = '{}'", origin.backend());
    let service = Service::start(&pool, &["shop"]);
    service.rows(&["drain", origin.backend()]);
    service.rows(&["weight", origin.backend(), "50%"]);
    Service::write(
        &service.stage,
        &format!("{pool}\ncheck = {{ kind = 'tcp', interval = '50ms' }}"),
        &["shop"],
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
    let done = run(command.args(["reload", "--control"]).arg(&service.control));
    assert!(done.status.success(), "{}", done.stderr);
    eventually("the new check has run", || {
        let row = service.rows(&["list"]).remove(0);
        assert_eq!((&row["drained_by"][0], &row["weight_percent"]), (&"operator".into(), &50.into()));
        row["checks"][0]["seen"] == "connected"
    });
    assert_eq!(service.rows(&["enable", origin.backend()])[0]["state"], "starting");
}

#[test]
fn without_the_program_its_socket_is_asked_for() {
    let stage = Stage::new();
    let missing = stage.folder.join("none.sock");
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
    let done = run(command.args(["backend", "list", "--control"]).arg(missing));
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("no program has opened it"), "{}", done.stderr);
}

#[test]
fn an_ejected_server_is_listed_with_the_rest_of_its_time_and_the_status_counts_it() {
    let (origin, dead) = (OriginServer::http(), nobody());
    let pool = format!("[pool.shop]\nservers = ['{dead}', '{}']", origin.backend());
    let service = Service::start(&pool, &["shop"]);
    while service.courser.stderr().iter().all(|line| !line.contains("ejected for")) {
        assert!(service.get());
    }
    let rows = service.rows(&["list"]);
    let row = rows.iter().find(|row| row["server"] == dead).unwrap();
    assert_eq!(
        (&row["state"], &row["failures"], &row["ejections"]),
        (&"ejected".into(), &3.into(), &1.into())
    );
    assert!(row["ejected_ms"].as_u64().is_some_and(|left| left <= 5000), "{row}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
    let done = run(command.args(["fleet", "status", "--json", "--control"]).arg(&service.control));
    let status: Value = serde_json::from_str(&done.stdout).unwrap();
    let backends = &status["backends"];
    for (place, number) in
        [("/states/ejected", 1), ("/states/up", 1), ("/failures", 3), ("/retries", 3), ("/ejections", 1)]
    {
        assert_eq!(backends.pointer(place), Some(&number.into()), "{place} in {backends:#}");
    }
}

/// What of an agent's words HAProxy and courser make.
#[derive(Debug, PartialEq)]
struct Conclusion {
    is_up: bool,
    is_drained: bool,
    percent: u64,
    limit: u64,
}

#[test]
fn haproxy_and_courser_conclude_the_same_from_an_agents_words() {
    let Some(program) = require("haproxy") else { return };
    let (origin, text) = (OriginServer::http(), Arc::new(Mutex::new(String::from("up ready 100%\n"))));
    let [ours, theirs] = [(); 2].map(|()| Agent::start(&text));
    let pool = format!(
        "[pool.shop]\nservers = [{{ address = '{0}', weight = 100 }}]\n\
         check = [{{ kind = 'tcp', interval = '50ms' }}, {{ kind = 'agent', port = {1}, interval = '50ms' }}]",
        origin.backend(),
        ours.address.port()
    );
    let service = Service::start(&pool, &["shop"]);
    let socket = service.stage.folder.join("haproxy.sock");
    let configuration = format!(
        "global\n  stats socket {} level admin\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 5s\n  \
         timeout server 5s\nbackend shop\n  server one {} weight 100 check inter 50ms agent-check agent-port {} \
         agent-inter 50ms\n",
        socket.display(),
        origin.backend(),
        theirs.address.port()
    );
    let file = service.stage.folder.write("haproxy.cfg", configuration);
    let _haproxy = Process::start(Command::new(program).args(["-db", "-q", "-f"]).arg(file));
    eventually("HAProxy answers", || UnixStream::connect(&socket).is_ok());
    let haproxy = || {
        let ask = |request: &str| {
            let (mut stream, mut answer) = (UnixStream::connect(&socket).unwrap(), String::new());
            writeln!(stream, "{request}").unwrap();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let state = ask("show servers state shop");
        let state: Vec<_> = state.lines().nth(2).unwrap().split(' ').collect();
        let stat = ask("show stat shop 4 -1");
        let fields = stat.lines().next().unwrap().trim_start_matches("# ").split(',');
        let column = |name: &str| fields.clone().position(|field| field == name).unwrap();
        let line: Vec<_> = stat.lines().nth(1).unwrap().split(',').collect();
        let admin: u64 = state[6].parse().unwrap();
        Conclusion {
            // Maintenance stops the server: what the agent said of its health is not shown then.
            is_up: state[5] != "0" || admin & 1 != 0,
            is_drained: admin != 0,
            percent: state[7].parse().unwrap(),
            limit: line[column("slim")].parse().unwrap_or(0),
        }
    };
    let ours_now = || {
        let row = service.rows(&["list"]).remove(0);
        let number = |field: &str| row[field].as_u64().unwrap_or(0);
        let drained_by = row["drained_by"].as_array().unwrap();
        let checks = row["checks"].as_array().unwrap();
        assert!(checks.iter().all(|check| check["passed"] == true), "{row}");
        Conclusion {
            is_up: row["state"] != "down",
            is_drained: drained_by.iter().any(|by| by == "agent"),
            percent: number("weight_percent"),
            limit: number("max_connections"),
        }
    };
    for said in [
        "up 50%",
        "drain",
        "ready",
        "down # the disk is full",
        "up 75%,maxconn:30",
        "stopped",
        "UP",
        "fail",
        "up",
        "nonsense 20%",
        "maint",
        "ready up",
        "30% 40%",
        "down up",
        "up down",
        "up",
        "maxconn:0",
        "60%x",
        "+70%",
        "150%",
        "0%",
        "drain 80%",
        "ready\t100%",
        "up#not a word",
        "# down",
    ] {
        *text.lock().unwrap() = format!("{said}\n");
        for agent in [&ours, &theirs] {
            let before = agent.asked.load(Ordering::SeqCst);
            eventually("two more answers", || agent.asked.load(Ordering::SeqCst) > before + 2);
        }
        let mut seen = (haproxy(), ours_now());
        eventually(&format!("both conclude the same from {said:?}"), || {
            seen = (haproxy(), ours_now());
            seen.0 == seen.1
        });
        println!("{said:?}: {:?}", seen.0);
    }
}

/// An agent: answers each connection with the text.
struct Agent {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Agent {
    fn start(text: &Arc<Mutex<String>>) -> Self {
        let (listener, asked) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::<AtomicUsize>::default());
        let address = listener.local_addr().unwrap();
        let (text, count) = (Arc::clone(text), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream: TcpStream = stream.unwrap();
                let said = text.lock().unwrap().clone();
                let _ = stream.write_all(said.as_bytes());
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, asked }
    }
}
