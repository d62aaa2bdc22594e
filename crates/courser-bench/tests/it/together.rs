//! Several generators that load one server together, and one record of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use courser_testkit::network::{self, sh};
use courser_testkit::{Finished, Folder, Process, leave_out, require};
use serde_json::{Map, Value, json};

use crate::counts::{Judge, Memory, Program};

/// Sessions of the whole schedule: 50 a second for 2 s.
const SESSIONS: u64 = 100;
const RATE: &str = "50";
const SCHEDULE: [&str; 9] =
    ["--reuse", "2", "--duration", "2s", "--warm-up", "0", "--ramp-up", "0", "--quiet"];

fn bench() -> Command {
    Command::new(env!("CARGO_BIN_EXE_courser-bench"))
}

fn server(ip: [u8; 4]) -> Option<(Judge, String)> {
    let server = Judge::start_on(ip, Program::Nginx, "1.3", Memory::Tickets)?;
    let url = format!("https://{}/", server.address);
    Some((server, url))
}

/// A generator that makes a part of a schedule and keeps `record`.
fn generator(mut command: Command, url: &str, [share, at]: [&str; 2], rate: &str, record: &Path) -> Process {
    command.args(["load", url, "--share", share, "--start-at", at, "--rate", rate]).args(SCHEDULE);
    Process::start(command.arg("--record").arg(record))
}

/// Soon, for all alike.
fn soon(seconds: u64) -> String {
    humantime::format_rfc3339_millis(SystemTime::now() + Duration::from_secs(seconds)).to_string()
}

fn measured(generator: Process) {
    let run = generator.finish();
    assert!(matches!(run.status.code(), Some(0 | 3)), "{run:?}");
}

fn merge(records: &[PathBuf]) -> Finished {
    Process::start(bench().arg("merge").args(records).arg("--json")).finish()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn generators_in_networks_of_their_own_add_up() {
    if network::enter_namespace("together::generators_in_networks_of_their_own_add_up") {
        add_up();
    }
}

fn add_up() {
    sh("ip addr add 10.77.0.1/32 dev lo");
    let machines = [1, 2].map(machine);
    let Some((_server, url)) = server([10, 77, 0, 1]) else { return };
    let (folder, at) = (Folder::new(), soon(4));
    let paths = [1, 2].map(|number| folder.join(&format!("{number}.json")));
    let generators = [0, 1].map(|index| {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &machines[index].pid().to_string()]);
        command.arg(env!("CARGO_BIN_EXE_courser-bench"));
        generator(command, &url, [&format!("{}/2", index + 1), &at], RATE, &paths[index])
    });
    generators.into_iter().for_each(measured);
    let merged = merge(&paths);
    assert!(matches!(merged.status.code(), Some(0 | 3)), "{merged:?}");
    let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
    is_the_sum(&merged, &paths.map(|path| read(&path)));
}

/// A network with one end in ours: its process holds it.
fn machine(number: u32) -> Process {
    let mut command = Command::new("unshare");
    let machine = Process::start(command.args(["--net", "sh", "-c", "echo made; exec sleep 60"]));
    machine.wait_stdout("its network", |lines| (!lines.is_empty()).then_some(()));
    let (pid, net) = (machine.pid(), format!("10.77.{number}"));
    sh(&format!(
        "ip link add g{number} type veth peer name eth0 netns {pid}
         ip addr add {net}.1/24 dev g{number}
         ip link set g{number} up
         nsenter --net --target {pid} sh -ec 'ip addr add {net}.2/24 dev eth0
           ip link set eth0 up; ip route add default via {net}.1'"
    ));
    machine
}

fn is_the_sum(merged: &Value, parts: &[Value; 2]) {
    let (whole, left, right) = (totals(merged), totals(&parts[0]), totals(&parts[1]));
    assert_eq!(whole["sessions"], json!(SESSIONS), "{whole:#}");
    assert_eq!([&left["sessions"], &right["sessions"]], [&json!(50), &json!(50)]);
    for field in ["sessions", "connections", "requests", "failures", "offered", "tickets_received", "alpn"] {
        assert_eq!(whole[field], sum(&left[field], &right[field]), "{field}");
    }
    assert_eq!(negotiated(merged), negotiated(&parts[0]) + negotiated(&parts[1]));
    assert!(times_counted(&whole["times"]["response_intended"]) > 0, "{whole:#}");
    for (name, times) in whole["times"].as_object().unwrap() {
        let count = |totals: &Value| times_counted(&totals["times"][name]);
        assert_eq!(times_counted(times), count(left) + count(right), "{name}");
    }
    for field in ["attempted", "succeeded", "full", "resumed"] {
        let of = |record| seconds(record, field);
        assert_eq!(of(merged), of(&parts[0]) + of(&parts[1]), "{field} of all seconds");
    }
    let sources: Vec<_> =
        merged["sources"].as_array().unwrap().iter().map(|source| &source["share"]).collect();
    assert_eq!(sources, [&json!({"k": 1, "n": 2}), &json!({"k": 2, "n": 2})]);
    let generators = merged["runs"][0]["generators"].as_array().unwrap();
    let labels: Vec<_> = generators.iter().map(|generator| generator["source"].as_str().unwrap()).collect();
    assert!(labels.len() == 2 && labels[0].ends_with("(1/2)") && labels[1].ends_with("(2/2)"), "{labels:?}");
}

fn totals(record: &Value) -> &Value {
    &record["runs"][0]["totals"]
}

/// Numbers added, objects field by field; what one has alone is as in that one.
fn sum(left: &Value, right: &Value) -> Value {
    let (Value::Object(left), Value::Object(right)) = (left, right) else {
        return json!(left.as_u64().unwrap_or(0) + right.as_u64().unwrap_or(0));
    };
    let zero = json!(0);
    let add = |name: &String| {
        (name.clone(), sum(left.get(name).unwrap_or(&zero), right.get(name).unwrap_or(&zero)))
    };
    Value::Object(left.keys().chain(right.keys()).map(add).collect::<Map<_, _>>())
}

fn negotiated(record: &Value) -> u64 {
    let kinds = totals(record)["negotiated"].as_array().unwrap();
    kinds.iter().map(|kind| kind["count"].as_u64().unwrap()).sum()
}

fn times_counted(times: &Value) -> u64 {
    times["count"].as_u64().unwrap_or(0)
}

fn seconds(record: &Value, field: &str) -> u64 {
    let seconds = record["runs"][0]["seconds"].as_array().unwrap();
    seconds.iter().map(|second| second[field].as_u64().unwrap()).sum()
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let Some((_server, url)) = server([127, 0, 0, 1]) else { return };
    let (folder, at) = (Folder::new(), soon(1));
    let paths = ["first", "second", "slower"].map(|name| folder.join(name));
    let generators = [
        generator(bench(), &url, ["1/2", &at], RATE, &paths[0]),
        generator(bench(), &url, ["2/2", &at], RATE, &paths[1]),
        generator(bench(), &url, ["2/2", &at], "20", &paths[2]),
    ];
    generators.into_iter().for_each(measured);
    let [first, second, slower] = paths;
    let refused = |records: &[PathBuf], why: &str| {
        let run = merge(records);
        assert!(run.status.code() == Some(2) && run.stderr.contains(why), "{why}: {run:?}");
    };
    refused(&[first.clone(), first.clone()], "two records of share 1/2");
    refused(&[first.clone(), second.clone(), second.clone()], "two records of share 2/2");
    refused(&[first.clone(), slower], "not the same experiment: experiment.load.rate is 50");
    assert!(matches!(merge(&[second, first]).status.code(), Some(0 | 3)), "the order does not matter");
}

/// The Job of packaging/kubernetes, as its containers would run it.
#[test]
fn the_pods_of_the_job_make_records_that_merge() {
    let Some(python) = require("python3") else { return };
    let job = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes/courser-bench-job.yaml");
    let print = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let parsed = Process::start(Command::new(python).args(["-c", print, job])).finish();
    if parsed.stderr.contains("ModuleNotFoundError") {
        return leave_out("python3 has no module yaml");
    }
    let documents: Value = serde_json::from_str(&parsed.stdout).unwrap();
    let [job] = documents.as_array().unwrap().as_slice() else { panic!("{documents:#}") };
    assert_eq!(job["spec"]["completionMode"], "Indexed");
    assert_eq!(job["spec"]["parallelism"], job["spec"]["completions"]);
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let Some((_server, url)) = server([127, 0, 0, 1]) else { return };
    let (folder, at) = (Folder::new(), soon(1));
    let pods = ["0", "1"].map(|index| (index, Process::start(&mut pod(container, &url, index, &at))));
    let paths = pods.map(|(index, pod)| {
        let run = pod.finish();
        assert!(run.status.success(), "no verdict is no failure of the pod: {run:?}");
        folder.write(index, run.stdout)
    });
    assert!(matches!(merge(&paths).status.code(), Some(0 | 3)));
}

fn pod(container: &Value, url: &str, index: &str, at: &str) -> Command {
    let words = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let (command, arguments) = (words(&container["command"]), words(&container["args"]));
    let program = Path::new(env!("CARGO_BIN_EXE_courser-bench")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut pod = Command::new(&command[0]);
    pod.args(&command[1..]).args(arguments);
    for variable in container["env"].as_array().unwrap() {
        pod.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
    }
    pod.env("PATH", path).env("JOB_COMPLETION_INDEX", index);
    // What a user sets.
    pod.env("URL", url).env("GENERATORS", "2").env("START", at);
    pod.env("LOAD", "--rate 20 --duration 1s --warm-up 0 --ramp-up 0");
    pod
}
