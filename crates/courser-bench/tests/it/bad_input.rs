//! What cannot be had is refused with a reason and an exit code; what was measured until something went wrong is kept.

use std::fs;
use std::process::Command;

use courser_testkit::ca::TestCa;
use courser_testkit::{
    Fault, FaultyServer, Finished, Folder, Process, Signal, free_port, leave_out, require,
};
use serde_json::Value;

use crate::support::{AT_ONCE, Judged, bench, finished, url};

/// Runs that end with this code, say all of this, and print nothing where results go.
fn refused(arguments: &[&str], code: i32, said: &[&str]) {
    let run = finished(arguments);
    assert_eq!((run.status.code(), run.stdout.as_str()), (Some(code), ""), "{arguments:?}: {run:?}");
    for part in said {
        assert!(run.stderr.contains(part), "{arguments:?}: no {part:?} in {}", run.stderr);
    }
    assert!(run.stderr.starts_with("error: "), "{arguments:?}: {run:?}");
}

#[test]
fn a_target_that_is_not_there() {
    let nobody = format!("127.0.0.1:{}", free_port());
    for verb in ["handshake", "idle", "load"] {
        let target = if verb == "load" { format!("https://{nobody}/") } else { nobody.clone() };
        refused(&[verb, &target, "-c", "1"], 4, &[&nobody, "is it running, and is the port right?"]);
    }
    refused(&["load", "https://nobody.invalid/", "-c", "1"], 4, &["nobody.invalid: "]);
}

#[test]
fn a_certificate_of_somebody_else() {
    let (liar, folder) = (FaultyServer::start(Fault::None), Folder::new());
    let others = TestCa::new().write_root(&folder);
    let url = url(liar.address());
    let arguments = ["load", &url, "-c", "1", "--engine", "real", "--ca", others.to_str().unwrap()];
    refused(&arguments, 5, &["give the right --ca and --sni"]);
    // What it was refused for is the certificate: without it the same client is content.
    let trusting =
        [&["load", &url, "-c", "1", "--engine", "real", "--duration", "1s"], &AT_ONCE[..]].concat();
    let judged = Judged::of(&finished(&trusting));
    assert!(judged.classes().is_empty() && judged.total("/requests/succeeded") > 0, "{:#}", judged.run());
}

#[test]
fn a_server_with_nothing_in_common() {
    // Of TLS 1.2 alone, and honest to those who never come back.
    let liar = FaultyServer::start(Fault::FalseResumption);
    let said = ["courser-bench inspect", "--tls"];
    refused(&["handshake", &liar.address().to_string(), "--tls", "1.3"], 5, &said);
}

#[test]
fn names_that_nobody_knows() {
    let load = ["load", "https://127.0.0.1:1/", "-c", "1"];
    let wrong = |flag, name| [&load[..], &[flag, name]].concat();
    refused(&wrong("--suites", "TLS_AES_128_GCM_SHA265"), 2, &["nearest that is: TLS_AES_128_GCM_SHA256"]);
    refused(&wrong("--groups", "X25518"), 2, &["\"X25518\"", "nearest that is: X25519"]);
    refused(&wrong("--tls", "1.4"), 2, &["version \"1.4\" is not known"]);
    refused(&wrong("--ca", "/nowhere/ca.pem"), 2, &["/nowhere/ca.pem"]);
    refused(&wrong("--expect-sha256", "abc"), 2, &["64 hexadecimal digits"]);
}

#[test]
fn a_rule_is_refused_at_its_place() {
    let search = ["search", "https://127.0.0.1:1/", "--rule"];
    let rule = |text| [&search[..], &[text]].concat();
    refused(&rule("avg<100ms,p99<<50ms"), 2, &["column 15: `<50ms`"]);
    refused(&rule("mean>1s"), 2, &["column 1"]);
}

#[test]
fn a_command_line_that_makes_no_sense() {
    for (arguments, said) in [
        (&["load", "ftp://a/", "-c", "1"][..], "write https://host:port/path or host:port"),
        (&["load", "https://a:99999/", "-c", "1"], "invalid port"),
        (&["load", "https://a/"], "--rate"),
        (&["load", "https://a/", "--rate", "0"], "a number above 0"),
        (&["load", "https://a/", "--rate", "many"], "a number above 0"),
        (&["load", "https://a/", "--rate", "1", "-c", "1"], "cannot be used with"),
        (&["load", "https://a/", "--rate", "1", "--duration", "10"], "write 10s"),
        (&["load", "127.0.0.1:1", "--rate", "1"], "has no requests"),
        (&["handshake", "http://127.0.0.1:1"], "a handshake needs TLS"),
        (&["load", "https://a/", "--rate", "1", "--json", "--ndjson"], "cannot be used with"),
    ] {
        refused(arguments, 2, &[said]);
    }
}

#[test]
fn a_record_that_cannot_be_kept_is_printed_all_the_same() {
    let (liar, folder) = (FaultyServer::start(Fault::None), Folder::new());
    let path = folder.join("missing").join("record.json");
    let url = url(liar.address());
    let keep = ["--duration", "1s", "--record", path.to_str().unwrap()];
    let run = finished(&[&["load", &url, "-c", "1"], &AT_ONCE[..], &keep].concat());
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(run.stderr.contains(path.to_str().unwrap()), "{run:?}");
    let record: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(record["runs"][0]["totals"]["requests"]["succeeded"].as_u64() > Some(0), "{record:#}");
}

#[test]
fn ctrl_c_keeps_what_there_is() {
    let (liar, folder) = (FaultyServer::start(Fault::None), Folder::new());
    let path = folder.join("cut.json");
    let url = url(liar.address());
    let keep = ["--warm-up", "0", "--ramp-up", "0", "--record", path.to_str().unwrap()];
    let process = bench(&[&["load", &url, "--rate", "20", "--duration", "30s"], &keep[..]].concat());
    process.wait_stderr_line("   1 s steady");
    process.signal(Signal::SIGINT);
    // Which waits for less than the thirty seconds.
    let run = process.finish();
    assert_eq!(run.status.code(), Some(6), "{run:?}");
    assert!(run.stdout.lines().any(|line| line.starts_with("CUT       Ctrl-C")), "{run:?}");
    let record: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(record["cut"], "Ctrl-C");
    let run = &record["runs"][0];
    let seconds = run["seconds"].as_array().unwrap();
    assert!((2..25).contains(&seconds.len()), "{}", seconds.len());
    assert!(run["findings"].as_array().unwrap().iter().any(|finding| finding["id"] == "cut"), "{run:#}");
    assert!(run["totals"]["window_us"].as_u64() < Some(25_000_000), "{}", run["totals"]["window_us"]);
    assert_eq!(run["totals"]["requests"]["attempted"].as_u64().unwrap(), sum(seconds, "attempted"));
}

fn sum(seconds: &[Value], field: &str) -> u64 {
    seconds.iter().map(|second| second[field].as_u64().unwrap()).sum()
}

#[test]
fn a_line_of_json_a_second() {
    let liar = FaultyServer::start(Fault::None);
    let url = url(liar.address());
    let time = ["--duration", "3s", "--warm-up", "0", "--ramp-up", "0", "--ndjson"];
    let run = finished(&[&["load", &url, "--rate", "10"], &time[..]].concat());
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seconds: Vec<u64> = lines.iter().map(|line| line["second"].as_u64().unwrap()).collect();
    let one_each: Vec<u64> = (0..).take(lines.len()).collect();
    assert!(seconds == one_each && seconds.len() >= 3, "{seconds:?}");
    assert!(lines.iter().all(|line| line["type"] == "second" && line["run"] == "load"), "{lines:#?}");
    assert!(lines[..3].iter().all(|line| line["phase"] == "steady"), "{lines:#?}");
    // A probe first, which is of no second.
    assert_eq!(sum(&lines, "succeeded"), liar.counts().answered - 1, "{lines:#?}");
}

#[test]
fn a_rate_that_cannot_be_made_is_no_result() {
    let liar = FaultyServer::start(Fault::None);
    let url = url(liar.address());
    // The liar has a thread for each connection: not too many of them.
    let much = ["--rate", "100k", "--threads", "1", "--in-flight", "50", "--duration", "1s", "--drain", "2s"];
    let judged = Judged::of(&finished(&[&["load", &url], &AT_ONCE[..], &much].concat()));
    assert!(judged.is_inconclusive(), "{:#}", judged.run()["findings"]);
    assert!(judged.text("rate-not-offered").contains("of the arrivals that were planned"));
    assert!(judged.advice("rate-not-offered").contains("a lower rate"));
}

/// Ten local ports for twenty clients that keep their connections. In a network of its own, which needs root.
#[test]
fn ports_that_run_out_are_named_as_what_they_are() {
    let (Some(unshare), Some(_)) = (require("unshare"), require("ip")) else { return };
    let folder = Folder::new();
    let script = folder.write("ports.sh", PORTS);
    let program = env!("CARGO_BIN_EXE_courser-bench");
    let run = Process::start(
        Command::new(unshare).args(["--net", "sh", "-e"]).arg(script).arg(program).current_dir(folder.path()),
    );
    let run = run.finish();
    if is_forbidden(&run) {
        leave_out(format!("no network of our own: {}", run.stderr));
        return;
    }
    let judged = Judged::of(&run);
    assert!(judged.is_inconclusive() && judged.failed_as("no-local-port") > 0, "{:#}", judged.run());
    assert!(judged.text("no-local-port").starts_with("no-local-port: "));
    let advice = judged.advice("no-local-port");
    assert!(advice.contains("--source") && advice.contains("ip_local_port_range"), "{advice}");
}

/// An origin, and a load on it with hardly any port.
const PORTS: &str = "\
ip link set lo up
echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range
mkfifo told
\"$1\" origin --listen 127.0.0.1:8000 > told &
exec 3< told
read -r line <&3
status=0
\"$1\" load http://127.0.0.1:8000/ -c 20 --keepalive --duration 1s --warm-up 0 --ramp-up 0 --json || status=$?
kill $!
exit $status
";

fn is_forbidden(run: &Finished) -> bool {
    run.stdout.is_empty()
        && ["Operation not permitted", "Permission denied", "Read-only"]
            .iter()
            .any(|why| run.stderr.contains(why))
}
