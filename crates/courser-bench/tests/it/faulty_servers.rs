//! Servers that do one thing wrong: each is named by what it does, and an honest one is not.
//!
//! The machine may be busy with other tests. What a busy machine hides, the instrument has to say so: where a finding
//! rests on times, it is there or the verdict is inconclusive.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use courser_testkit::{Fault, FaultyServer, Process, Signal, free_port, leave_out};

use crate::support::{AT_ONCE, Balancer, Judged, bench, finished, judge, judge_at, url};

/// Findings that tell of a server, whatever the machine does.
const LIES: [&str; 8] = [
    "loss",
    "no-sessions",
    "few-sessions",
    "resumption-refused",
    "resumption-partial",
    "false-resumption",
    "reset-after-finished",
    "hello-retry-request",
];

/// SHA-256 of the thousand bytes that [`url`] asks for.
const SHA256: &str = "915e53a44c18b19bb06ba5b3f5fcaf1dc4651e8404c63425cfc6174e74659d87";

#[test]
fn an_honest_server_is_called_nothing() {
    for version in ["1.3", "1.2"] {
        let server = FaultyServer::start(Fault::None);
        let judged =
            judge("load", &server, &["--connection-rate", "40", "--tls", version, "--expect-sha256", SHA256]);
        let said: Vec<&str> = judged.ids().into_iter().filter(|id| LIES.contains(id)).collect();
        assert!(said.is_empty(), "{version}: {:#}", judged.run());
        let timed = ["delay-40ms", "stall-1s"].iter().any(|id| judged.has(id));
        assert!(!timed || judged.is_inconclusive(), "{version}: {:?}", judged.ids());
        // A probe first; the record is of the rest.
        let answered = judged.total("/requests/succeeded");
        assert!(answered > 0 && answered == judged.total("/requests/attempted"), "{:#}", judged.run());
        assert_eq!(judged.handshakes(|_| true), server.counts().handshakes - 1, "{version}");
        assert_eq!(judged.handshakes(|row| row["handshake"] != "full"), server.counts().resumed, "{version}");
    }
}

/// Whether a finding of this name and beginning is there; if the generator says that it cannot be trusted, it has a few
/// more tries.
fn named_unless_inconclusive(id: &str, says: impl Fn(&str) -> bool, run: impl Fn() -> Judged) {
    for _ in 0..3 {
        let judged = run();
        if judged.texts(id).any(&says) {
            return;
        }
        assert!(
            judged.is_inconclusive(),
            "no {id}, or it is wrong, and no doubt: {:#}",
            judged.run()["findings"]
        );
    }
    leave_out(format!("the machine is too busy for {id}, and courser-bench said so each time"));
}

#[test]
fn forty_milliseconds_more_are_a_delayed_acknowledgement() {
    let says = |text: &str| text.starts_with("delay: every answer comes 4");
    named_unless_inconclusive("delay-40ms", says, || {
        let server = FaultyServer::start(Fault::Late);
        judge("load", &server, &["--rate", "60", "--reuse", "1", "--duration", "2s"])
    });
}

#[test]
fn a_stall_of_a_tenth_of_the_connections_is_named_with_its_share() {
    let share = |text: &str| text.split(' ').nth(1).and_then(|share| share.parse::<f64>().ok());
    let says = |text: &str| share(text).is_some_and(|share| (7.0..=12.0).contains(&share));
    named_unless_inconclusive("stall-1s", says, || {
        let server = FaultyServer::start(Fault::Stall);
        judge("load", &server, &["--rate", "80", "--reuse", "1", "--duration", "2s"])
    });
}

#[test]
fn each_connection_that_is_dropped_is_counted() {
    let server = FaultyServer::start(Fault::Drop);
    // Every 2000th is dropped: one of those that come now, after the probe.
    for _ in 0..1990 {
        drop(TcpStream::connect(server.address()).unwrap());
    }
    let judged = judge("load", &server, &["--connection-rate", "40"]);
    assert_eq!((server.counts().faults, judged.failed_as("truncated-hello")), (1, 1), "{:#}", judged.run());
    assert_eq!(judged.total("/requests/failed"), 1, "{:#}", judged.run());
    let attempted = judged.total("/requests/attempted");
    let text = judged.text("loss");
    assert!(text.ends_with(&format!("of {attempted} attempts failed (truncated-hello 1)")), "{text}");
}

#[test]
fn a_server_without_tickets_is_one() {
    for version in ["1.3", "1.2"] {
        let server = FaultyServer::start(Fault::NeverResumes);
        let judged = judge("load", &server, &["--rate", "10", "--reuse", "4", "--tls", version]);
        assert!(judged.text("no-sessions").contains("every handshake was full"), "{version}");
        let offered = &judged.run()["totals"]["offered"];
        assert_eq!(offered["none"].as_u64(), Some(judged.handshakes(|_| true)), "{version}: {offered}");
        assert_eq!(judged.handshakes(|row| row["handshake"] != "full"), 0, "{version}");
        assert!(!judged.has("resumption-refused"), "{version}: nothing was offered");
    }
}

/// Two servers whose ticket keys differ, and each client comes to the other one next.
#[test]
fn tickets_that_nobody_takes_are_refused_resumptions() {
    for version in ["1.3", "1.2"] {
        let servers = [FaultyServer::start(Fault::None), FaultyServer::start(Fault::None)];
        let balancer = Balancer::start(servers.iter().map(FaultyServer::address).collect());
        let arguments = ["-c", "1", "--reuse", "4", "--tickets", "1", "--tls", version];
        let judged = judge_at("load", balancer.address(), &arguments);
        assert!(judged.text("resumption-refused").ends_with("0 % of them resumed"), "{version}");
        assert!(judged.advice("resumption-refused").contains("ticket keys differ"), "{version}");
        assert!(!judged.has("loss") && !judged.has("no-sessions"), "{version}: {:?}", judged.ids());
        assert_eq!(servers.iter().map(|server| server.counts().resumed).sum::<u64>(), 0, "{version}");
    }
}

#[test]
fn a_false_resumption_is_a_failure_of_its_own() {
    let server = FaultyServer::start(Fault::FalseResumption);
    let judged = judge("load", &server, &["--connection-rate", "40", "--reuse", "2", "--tls", "1.2"]);
    let faults = server.counts().faults;
    assert!(faults > 0 && judged.failed_as("false-resumption") == faults, "{faults}: {:#}", judged.run());
    assert!(judged.text("false-resumption").starts_with(&format!("false resumption: {faults} times")));
    assert_eq!(judged.classes(), ["false-resumption"]);
}

#[test]
fn a_reset_behind_the_finished_is_no_handshake() {
    for (verb, class) in [("handshake", "reset-confirmation"), ("load", "reset-answer")] {
        for version in ["1.3", "1.2"] {
            let server = FaultyServer::start(Fault::ResetAfterFinished);
            let judged = judge(verb, &server, &["--rate", "20", "--reuse", "1", "--tls", version]);
            let attempted = judged.total("/connections/attempted");
            assert_eq!(judged.classes(), [class], "{verb} {version}: {:#}", judged.run());
            assert_eq!(judged.failed_as(class), attempted, "{verb} {version}: {:#}", judged.run());
            assert_eq!(judged.total("/connections/succeeded"), 0, "{verb} {version}");
            let text = judged.text("reset-after-finished");
            assert!(text.starts_with(&format!("{attempted} connections")), "{verb} {version}: {text}");
        }
    }
}

#[test]
fn a_second_round_trip_is_told_with_its_share() {
    let server = FaultyServer::start(Fault::HelloRetry);
    let judged = judge("load", &server, &["--rate", "20", "--reuse", "1", "--groups", "P-256,X25519"]);
    assert_eq!(judged.handshakes(|row| row["retried"] == true), server.counts().faults - 1);
    assert!(judged.text("hello-retry-request").contains("100 % of the handshakes"), "{:#}", judged.run());
    assert_eq!(judged.handshakes(|row| row["group"] != "X25519"), 0, "{:#}", judged.run());
}

#[test]
fn wrong_answers_are_failures() {
    let right = ["--connection-rate", "20", "--expect-length", "1000", "--expect-sha256", SHA256];
    for (fault, class) in [
        (Fault::ShortBody, "wrong-answer"),
        (Fault::WrongByte, "wrong-answer"),
        (Fault::Truncate, "truncated-answer"),
    ] {
        let server = FaultyServer::start(fault);
        let judged = judge("load", &server, &right);
        let attempted = judged.total("/requests/attempted");
        assert_eq!(judged.classes(), [class], "{fault:?}: {:#}", judged.run());
        assert_eq!(judged.failed_as(class), attempted, "{fault:?}");
        assert_eq!(server.counts().faults, attempted + 1, "{fault:?}: all of them, and the probe");
    }
}

/// One of two servers has another object: whoever takes the first answer for the right one notices.
#[test]
fn answers_are_held_to_the_first_one() {
    let (honest, server) = (FaultyServer::start(Fault::None), FaultyServer::start(Fault::WrongByte));
    let balancer = Balancer::start(vec![honest.address(), server.address()]);
    let judged =
        judge_at("load", balancer.address(), &["--rate", "20", "--reuse", "1", "--expect-sha256", "first"]);
    let faults = server.counts().faults;
    assert!(faults > 0 && judged.failed_as("wrong-answer") == faults, "{faults}: {:#}", judged.run());
    assert_eq!(judged.total("/requests/succeeded"), honest.counts().answered - 1);
}

#[test]
fn a_server_that_keeps_silent_is_timed_out_where_it_is() {
    let server = FaultyServer::start(Fault::Silent);
    let judged = judge("load", &server, &["--rate", "20", "--timeout", "500ms"]);
    assert_eq!(judged.classes(), ["timeout-hello"], "{:#}", judged.run());
    let attempted = judged.total("/requests/attempted");
    assert_eq!(judged.failed_as("timeout-hello"), attempted);
    let text = judged.text("nothing-succeeded");
    assert!(text.starts_with(&format!("nothing succeeded: {attempted} attempts")), "{text}");
    assert!(judged.is_inconclusive(), "no success, and a verdict");
}

#[test]
fn what_is_under_way_at_the_end_of_the_drain_is_unfinished() {
    let server = FaultyServer::start(Fault::Silent);
    // The probe has as much time as the timeout says.
    let judged = judge("load", &server, &["--rate", "20", "--timeout", "2s", "--drain", "200ms"]);
    assert_eq!(judged.classes(), ["unfinished"], "{:#}", judged.run());
}

#[test]
fn a_window_in_which_nothing_begins_has_no_verdict() {
    let server = FaultyServer::start(Fault::Silent);
    let times = ["--timeout", "2s", "--warm-up", "300ms", "--ramp-up", "0", "--duration", "500ms"];
    let run = finished(&[&["load", &url(server.address()), "-c", "1", "--json"], &times[..]].concat());
    let judged = Judged::of(&run);
    assert_eq!(judged.total("/requests/attempted"), 0, "{:#}", judged.run());
    assert!(judged.has("nothing-attempted") && judged.is_inconclusive(), "{:#}", judged.run());
}

#[test]
fn each_address_is_tried_before_the_load() {
    let (server, dead) = (FaultyServer::start(Fault::None), format!("127.0.0.1:{}", free_port()));
    let url = url(server.address());
    for verb in [
        &["load", "--rate", "20", "--reuse", "4"][..],
        &["ramp", "--from", "10", "--to", "20"],
        &["search", "--rule", "avg<1s"],
        &["handshake", "--rate", "20"],
        &["idle", "-c", "2"],
    ] {
        let run = finished(&[verb, &[&url, "--also", &dead]].concat());
        assert_eq!((run.status.code(), run.stdout.as_str()), (Some(4), ""), "{run:?}");
        assert!(run.stderr.contains(&format!("error: {dead}: refused")), "{run:?}");
    }
}

/// A client that was never let in can have no session.
#[test]
fn connections_that_fail_are_not_blamed_on_tickets() {
    let servers = [FaultyServer::start(Fault::None), FaultyServer::start(Fault::PlainHttp)];
    let balancer = Balancer::start(servers.iter().map(FaultyServer::address).collect());
    let judged = judge_at("load", balancer.address(), &["-c", "3", "--reuse", "5"]);
    assert!(judged.failed_as("not-tls") > 0 && judged.handshakes(|_| true) > 0, "{:#}", judged.run());
    assert!(!judged.has("few-sessions") && !judged.has("no-sessions"), "{:?}", judged.ids());
}

#[test]
fn a_signature_by_another_key_is_noticed_without_roots() {
    for version in ["1.3", "1.2"] {
        let server = FaultyServer::start(Fault::WrongKey);
        let run = finished(
            &[&["load", &url(server.address()), "--rate", "20", "--tls", version], &AT_ONCE[..]].concat(),
        );
        assert_eq!((run.status.code(), run.stdout.as_str()), (Some(5), ""), "{version}: {run:?}");
        assert!(run.stderr.contains("the signature is not by the certificate's key"), "{version}: {run:?}");
    }
}

#[test]
fn http_on_the_port_is_no_tls() {
    let server = FaultyServer::start(Fault::PlainHttp);
    for verb in [&["load", "--rate", "20"][..], &["handshake"]] {
        let run = finished(&[verb, &[&url(server.address())], &AT_ONCE].concat());
        assert_eq!((run.status.code(), run.stdout.as_str()), (Some(5), ""), "{run:?}");
        assert!(run.stderr.contains("for HTTP in clear write http://"), "{run:?}");
    }
}

/// Findings of a generator that did not get what it needed of its processor.
const STARVED: [&str; 5] =
    ["schedule-lag", "descheduled", "rate-not-offered", "client-bound-thread", "client-bound-core"];

#[test]
fn a_generator_held_to_a_tenth_of_its_core_is_inconclusive() {
    for model in [["--rate", "20"], ["-c", "1"]] {
        let server = FaultyServer::start(Fault::None);
        let url = url(server.address());
        let mut process = bench(&[&["load", &url, "--duration", "2s"], &model[..], &AT_ONCE].concat());
        // The probe is through: the run begins.
        process.wait_stderr_line(&url);
        hold(&mut process);
        let judged = Judged::of(&process.finish());
        assert!(judged.is_inconclusive(), "{model:?}: {:#}", judged.run()["findings"]);
        let starved = judged.ids().iter().any(|id| STARVED.contains(id));
        assert!(starved, "{model:?}: {:#}", judged.run()["findings"]);
        assert!(judged.run()["verdict"]["inconclusive"].as_str().unwrap().contains("client-bound"));
    }
}

/// Lets a process run for a tenth of three seconds.
fn hold(process: &mut Process) {
    for _ in 0..30 {
        if !process.is_running() {
            return;
        }
        process.signal(Signal::SIGSTOP);
        thread::sleep(Duration::from_millis(90));
        process.signal(Signal::SIGCONT);
        thread::sleep(Duration::from_millis(10));
    }
}
