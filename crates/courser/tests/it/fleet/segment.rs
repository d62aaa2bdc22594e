//! Sessions on every host of a segment: by unicast, by multicast, by IPv6; what the wire shows of them; and hosts that
//! are not what they should be.

use std::fs;
use std::process::Command;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::network::enter_namespace;
use courser_testkit::{Process, Signal, leave_out, require};

use super::hosts::{Fleet, Member};
use super::keygen;
use crate::resumption::visitor::Visitor;
use crate::stage::eventually;
use crate::support::{PSK, SESSION_ID, TICKET, WAYS, line, text};

/// A session made at the first host is resumed at each of the others, in each way.
fn resumes_everywhere(fleet: &Fleet, members: &[Member]) {
    members.iter().for_each(|member| member.hears(members.len() - 1));
    for (index, way) in WAYS.into_iter().enumerate() {
        let visitor = Visitor::new(&fleet.site, way);
        if visitor.come(&members[0].courser, "").is_none() {
            return;
        }
        for member in &members[1..] {
            if way.session == SESSION_ID.session {
                member.holds(1);
            }
            visitor.is_resumed(&member.courser, "");
            assert_eq!(line(&member.courser, index + 1)["session"], way.session);
        }
    }
    let status = members[1].status();
    assert_eq!(status["handshakes"]["remote_sessions"], 1, "{status:#}");
}

#[test]
fn sessions_are_resumed_on_every_host_by_unicast() {
    if enter_namespace("fleet::segment::sessions_are_resumed_on_every_host_by_unicast") {
        let fleet = Fleet::new(4);
        let member = |number| fleet.start(number, fleet.unicast(number).arg("--no-fleet-pull"));
        resumes_everywhere(&fleet, &[1, 2, 3, 4].map(member));
    }
}

#[test]
fn sessions_are_resumed_on_every_host_by_multicast() {
    if enter_namespace("fleet::segment::sessions_are_resumed_on_every_host_by_multicast") {
        let fleet = Fleet::new(3);
        let setup = |number| fleet.multicast(number, "239.1.1.1:8888").arg("--no-fleet-pull");
        resumes_everywhere(&fleet, &[1, 2, 3].map(|number| fleet.start(number, setup(number))));
    }
}

#[test]
fn sessions_are_resumed_on_every_host_by_multicast_over_ipv6() {
    if enter_namespace("fleet::segment::sessions_are_resumed_on_every_host_by_multicast_over_ipv6") {
        let fleet = Fleet::new(3);
        let setup = |number| fleet.multicast(number, "[ff15::8888]:8888").arg("--no-fleet-pull");
        resumes_everywhere(&fleet, &[1, 2, 3].map(|number| fleet.start(number, setup(number))));
    }
}

#[test]
fn sessions_are_resumed_on_every_host_by_unicast_over_ipv6() {
    if enter_namespace("fleet::segment::sessions_are_resumed_on_every_host_by_unicast_over_ipv6") {
        let fleet = Fleet::new(2);
        let address = |number| format!("[{}]:8888", fleet.host(number).ip6());
        let setup = |number, other| {
            fleet.alone(number).args(["--fleet-listen", &address(number), "--fleet-peer", &address(other)])
        };
        resumes_everywhere(&fleet, &[fleet.start(1, setup(1, 2)), fleet.start(2, setup(2, 1))]);
    }
}

#[test]
fn a_host_that_joins_late_is_given_what_the_others_have() {
    if !enter_namespace("fleet::segment::a_host_that_joins_late_is_given_what_the_others_have") {
        return;
    }
    let fleet = Fleet::new(2);
    let first = fleet.start(1, fleet.unicast(1));
    let visitors: Vec<_> = (0..20).map(|_| Visitor::new(&fleet.site, SESSION_ID)).collect();
    for visitor in &visitors {
        if visitor.come(&first.courser, "").is_none() {
            return;
        }
    }
    let second = fleet.start(2, fleet.unicast(2).arg("--no-fleet-pull"));
    second.holds(20);
    // All wrote the same file: it has the last session.
    visitors[19].is_resumed(&second.courser, "");
}

#[test]
fn a_host_that_was_cut_off_asks_for_what_it_missed() {
    if !enter_namespace("fleet::segment::a_host_that_was_cut_off_asks_for_what_it_missed") {
        return;
    }
    let fleet = Fleet::new(2);
    // A patient pull: the machine that tests run on is busy.
    let member = |number| fleet.start(number, fleet.unicast(number).args(["--fleet-pull-timeout", "1s"]));
    let first = member(1);
    let visitor = Visitor::new(&fleet.site, SESSION_ID);
    if visitor.come(&first.courser, "").is_none() {
        return;
    }
    let second = member(2);
    second
        .wait("its state transfer", |status| (status["messages"]["state_transfer"] == "done").then_some(()));
    let sent = |status: &serde_json::Value| status["messages"]["sent"]["sessions"].as_u64();
    let come_unheard = || {
        fleet.host(2).unplug();
        let before = sent(&first.status());
        visitor.come(&first.courser, "");
        // Not before it has left: its thread may be late, and the client is gone by then.
        first.wait("the session's message", |status| (sent(status) > before).then_some(()));
        fleet.host(2).plug_in();
    };
    come_unheard();
    second.hears_something_new();
    assert_eq!(second.status()["cache"]["sessions"], 1, "it has the session from before it was cut off");
    visitor.is_resumed(&second.courser, "");
    // Nobody has what died with its host: a full handshake, after everybody was asked.
    come_unheard();
    second.hears_something_new();
    first.courser.signal(Signal::SIGKILL);
    visitor.is_not_resumed(&second.courser, "");
    let miss = &line(&second.courser, 2)["not_resumed"];
    assert!(miss == "pull_timeout" || miss == "not_found_remotely", "{miss}");
    let pulls = &second.status()["messages"]["pulls"];
    assert_eq!((&pulls["sent"], &pulls["found"]), (&2.into(), &1.into()), "{pulls:#}");
}

#[test]
fn the_wire_shows_no_secret() {
    if !enter_namespace("fleet::segment::the_wire_shows_no_secret") {
        return;
    }
    let Some(tcpdump) = require("tcpdump") else { return };
    let fleet = Fleet::new(2);
    let (capture, keys) = (fleet.site.folder.join("capture.pcap"), fleet.site.folder.join("keys.log"));
    let mut command = Command::new(tcpdump);
    let command = command.args(["-i", "br0", "-U", "--immediate-mode", "-Z", "root", "-w", text(&capture)]);
    let dump = Process::start(command.args(["udp", "port", "8888"]));
    if dump
        .try_wait_stderr(|lines| lines.iter().find(|line| line.contains("listening on br0")).cloned())
        .is_err()
    {
        return leave_out(format!("tcpdump cannot listen here: {:?}", dump.stderr()));
    }
    let members = [1, 2].map(|number| fleet.start(number, fleet.unicast(number)));
    members.iter().for_each(|member| member.hears(1));
    let visitor = Visitor::new(&fleet.site, SESSION_ID);
    if visitor.come(&members[0].courser, &format!("-keylogfile {}", keys.display())).is_none() {
        return;
    }
    members[1].holds(1);
    visitor.is_resumed(&members[1].courser, "");
    let shows = |bytes: &[u8]| contains(&fs::read(&capture).unwrap(), bytes);
    eventually("the message with the session is captured", || shows(NEW));
    dump.signal(Signal::SIGINT);
    dump.wait_stderr_line("packets captured");
    drop(dump);
    // What may be seen is found where the secrets are looked for.
    let fleet_id = members[1].wait("its key", |status| status["keys"][0]["fleet"].as_str().map(unhex));
    assert!(shows(&[NEW, &fleet_id].concat()));
    let log = fs::read_to_string(&keys).unwrap();
    let master = log.split_whitespace().last().unwrap();
    assert_eq!(master.len(), 96, "a master secret in hexadecimal digits: {log}");
    let id = session_id(&visitor);
    for secret in [master, &id] {
        let bytes = unhex(secret);
        assert!(!shows(&bytes[..16]) && !shows(&bytes[bytes.len() - 16..]), "{secret} is on the wire");
    }
}

/// How a message with new sessions begins, in the clear: `CRSR`, version 2, type 1.
const NEW: &[u8] = b"CRSR\x02\x01";

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// The ID in the session that was saved, in hexadecimal digits.
fn session_id(visitor: &Visitor) -> String {
    let mut command = Command::new("openssl");
    let command = command.args(["sess_id", "-noout", "-text", "-in", text(&visitor.session)]);
    let said = Process::start(command).finish();
    let id = said.stdout.lines().find_map(|line| line.trim().strip_prefix("Session-ID: "));
    id.unwrap_or_else(|| panic!("{said:?}")).to_owned()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn who_watches_sees_each_message_and_no_session() {
    if !enter_namespace("fleet::segment::who_watches_sees_each_message_and_no_session") {
        return;
    }
    let fleet = Fleet::new(2);
    let members = [1, 2].map(|number| fleet.start(number, fleet.unicast(number)));
    members.iter().for_each(|member| member.hears(1));
    let watch = members[1].watch();
    watch.wait_stdout("a heartbeat", |lines| {
        lines.iter().any(|line| line.contains("heartbeat")).then_some(())
    });
    let visitor = Visitor::new(&fleet.site, SESSION_ID);
    if visitor.come(&members[0].courser, "").is_none() {
        return;
    }
    let line =
        watch.wait_stdout("the session", |lines| lines.iter().find(|line| line.contains(" new, ")).cloned());
    let from = format!("received from {}:8888: new, 1 sessions, ", fleet.host(1).ip());
    assert!(line.contains(&from), "{line}");
    let id = session_id(&visitor).to_lowercase();
    assert!(
        watch.stdout().iter().all(|line| !line.to_lowercase().contains(&id[..8])),
        "{:?}",
        watch.stdout()
    );
}

#[test]
fn a_host_of_another_fleet_is_counted_and_changes_nothing() {
    if !enter_namespace("fleet::segment::a_host_of_another_fleet_is_counted_and_changes_nothing") {
        return;
    }
    let mut fleet = Fleet::new(2);
    let first = fleet.start(1, fleet.unicast(1));
    fleet.key = keygen(fleet.site.folder.path(), "another.key");
    let second = fleet.start(2, fleet.unicast(2));
    let refused = |status: &serde_json::Value| status["messages"]["refused"]["other_fleet"]["count"].as_u64();
    first.wait("a refusal", refused);
    second.wait("a refusal", refused);
    first.courser.wait_stderr_line("is refused: of another fleet");
    let visitor = Visitor::new(&fleet.site, SESSION_ID);
    if visitor.come(&first.courser, "").is_some() {
        assert_eq!(second.status()["cache"]["sessions"], 0);
        visitor.is_not_resumed(&second.courser, "");
    }
}

#[test]
fn a_host_whose_clock_is_an_hour_off_is_named_and_serves_on() {
    if !enter_namespace("fleet::segment::a_host_whose_clock_is_an_hour_off_is_named_and_serves_on") {
        return;
    }
    let Some(_) = require("faketime") else { return };
    let fleet = Fleet::new(2);
    let first = fleet.start(1, fleet.unicast(1));
    // As faketime itself does; the loader puts the folder of the architecture's libraries in place of `$LIB`.
    let late = fleet.unicast(2).env("LD_PRELOAD", "/usr/$LIB/faketime/libfaketime.so.1");
    let second = fleet.start(2, late.env("FAKETIME", "+1h").env("FAKETIME_DONT_FAKE_MONOTONIC", "1"));
    first.wait("a refusal", |status| status["messages"]["refused"]["clock_skew"]["count"].as_u64());
    let peer = first.wait("the peer", |status| status["messages"]["peers"].get(0).cloned());
    assert_eq!((&peer["name"], &peer["is_clock_off"]), (&"host-2".into(), &true.into()), "{peer:#}");
    first.courser.wait_stderr_line("a clock is wrong");
    let visitor = Visitor::new(&fleet.site, SESSION_ID);
    if visitor.come(&second.courser, "").is_some() {
        visitor.is_not_resumed(&first.courser, "");
        visitor.is_resumed(&second.courser, "");
    }
}

#[test]
fn an_interface_that_does_not_exist_is_told_with_those_that_do() {
    if !enter_namespace("fleet::segment::an_interface_that_does_not_exist_is_told_with_those_that_do") {
        return;
    }
    let fleet = Fleet::new(1);
    let setup = fleet.alone(1).args(["--fleet-listen", "239.1.1.1:8888", "--fleet-interface", "eth7"]);
    let ended = setup.launch().finish();
    assert!(matches!(ended.status.code(), Some(1 | 2)), "{ended:?}");
    assert!(ended.stderr.contains("eth7") && ended.stderr.contains("eth0"), "{}", ended.stderr);
}

#[test]
fn tickets_need_no_message_and_survive_total_loss() {
    if !enter_namespace("fleet::segment::tickets_need_no_message_and_survive_total_loss") {
        return;
    }
    let fleet = Fleet::new(2);
    let members = [1, 2].map(|number| fleet.start(number, fleet.unicast(number)));
    fleet.segment.hosts().iter().for_each(|host| host.drop_packets(1.0));
    for way in [TICKET, PSK] {
        let visitor = Visitor::new(&fleet.site, way);
        if visitor.come(&members[0].courser, "").is_none() {
            return;
        }
        visitor.is_resumed(&members[1].courser, "");
    }
}

/// Sessions that are made while packets are lost.
const MADE: u64 = 120;

#[test]
fn as_many_sessions_arrive_as_packets_do() {
    if !enter_namespace("fleet::segment::as_many_sessions_arrive_as_packets_do") {
        return;
    }
    let fleet = Fleet::new(2);
    let start = |number| fleet.start(number, fleet.unicast(number).arg("--no-fleet-pull"));
    let address = (fleet.host(1).ip(), 443).into();
    let visit = || {
        let client = Client::new(address, Version::Tls12, EcdsaP256, Resume::SessionId);
        client.connect().unwrap().get(10, true).unwrap();
    };
    let first = start(1);
    visit();
    let second = start(2);
    // From now on nothing comes but what is pushed.
    second
        .wait("its state transfer", |status| (status["messages"]["state_transfer"] == "done").then_some(()));
    fleet.host(2).drop_packets(0.3);
    (0..MADE).for_each(|_| visit());
    // One heartbeat after the last session, what has not come does not come.
    let sent = |status: &serde_json::Value| status["messages"]["sent"]["messages"].as_u64();
    let after = first.wait("its messages", sent) + 3;
    first.wait("a heartbeat", |status| sent(status).filter(|sent| *sent >= after));
    let arrived = second.status()["cache"]["sessions"].as_u64().unwrap() - 1;
    // Each session is a packet of its own here. 0.7 of 120 are 84; five standard deviations are 25.
    assert!((59..=109).contains(&arrived), "{arrived} of {MADE} with 30 % loss");
}
