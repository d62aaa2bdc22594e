//! Hosts that die, are restarted, cut off, and given new keys, under traffic: no handshake fails, and clients are
//! resumed again soon.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::Signal;
use courser_testkit::client::{Client, Connection};
use courser_testkit::network::enter_namespace;
use rustls::ClientConnection;
use serde_json::Value;

use super::hosts::{Fleet, Member};
use super::keygen;
use super::traffic::{HostExit, Traffic};
use crate::stage::eventually;
use crate::support::WAYS;

fn address(fleet: &Fleet, number: usize) -> SocketAddr {
    (fleet.host(number).ip(), 443).into()
}

/// Three hosts that hear each other, and clients at all of them.
fn busy(fleet: &Fleet) -> (Vec<Member>, Traffic) {
    let members: Vec<_> = (1..=3).map(|number| start(fleet, number)).collect();
    members.iter().for_each(|member| member.hears(2));
    let traffic = Traffic::start(&[1, 2, 3].map(|number| address(fleet, number)));
    traffic.is_well("their first visit");
    (members, traffic)
}

/// Pulls may take longer than usual: all hosts share the processors of one machine with the clients.
fn start(fleet: &Fleet, number: usize) -> Member {
    fleet.start(number, fleet.unicast(number).args(["--fleet-pull-timeout", "200ms"]))
}

#[test]
fn a_host_that_is_killed_comes_back_unnoticed() {
    if enter_namespace("fleet::churn::a_host_that_is_killed_comes_back_unnoticed") {
        let fleet = Fleet::new(3);
        let (mut members, traffic) = busy(&fleet);
        traffic.ends(address(&fleet, 2), HostExit::Killed);
        members[1].courser.signal(Signal::SIGKILL);
        traffic.is_well("a host was killed");
        members[1] = start(&fleet, 2);
        traffic.serves(address(&fleet, 2));
        traffic.is_well("it was started again");
    }
}

/// Clients in a hello, and clients that the kernel has accepted and the program has not: with sessions of another host.
#[test]
fn a_host_that_is_told_to_end_serves_whom_it_has_let_in() {
    if !enter_namespace("fleet::churn::a_host_that_is_told_to_end_serves_whom_it_has_let_in") {
        return;
    }
    let fleet = Fleet::new(2);
    let [first, mut second] = [1, 2].map(|number| start(&fleet, number));
    second.hears(1);
    let visitors = [WAYS, WAYS, WAYS].as_flattened().iter().map(|way| {
        let client = Client::new(address(&fleet, 1), way.version, EcdsaP256, way.resume);
        client.connect().unwrap().get(10, true).unwrap();
        client
    });
    let visitors: Vec<_> = visitors.collect();
    second.holds(3);
    let idle = second.courser.descriptors();
    let (early, late) = visitors.split_at(3);
    let early: Vec<_> = early.iter().map(|client| Begun::new(client, address(&fleet, 2))).collect();
    eventually("they are accepted", || second.courser.descriptors() >= idle + 3);
    second.courser.signal(Signal::SIGSTOP);
    let late: Vec<_> = late.iter().map(|client| Begun::new(client, address(&fleet, 2))).collect();
    second.courser.signal(Signal::SIGTERM);
    second.courser.signal(Signal::SIGCONT);
    second.courser.wait_stderr_line("draining");
    early.into_iter().chain(late).for_each(Begun::ends_resumed);
    assert!(second.courser.wait().success());
    drop(first);
}

/// A connection on which half a ClientHello has been sent.
struct Begun {
    session: ClientConnection,
    socket: TcpStream,
    rest: Vec<u8>,
}

impl Begun {
    fn new(client: &Client, host: SocketAddr) -> Self {
        let (mut session, mut socket) = (client.session(), TcpStream::connect(host).unwrap());
        let mut hello = Vec::new();
        session.write_tls(&mut hello).unwrap();
        let rest = hello.split_off(hello.len() / 2);
        socket.write_all(&hello).unwrap();
        Self { session, socket, rest }
    }

    fn ends_resumed(mut self) {
        self.socket.write_all(&self.rest).unwrap();
        let mut connection = Connection::complete(self.session, self.socket).unwrap();
        connection.get(10, true).unwrap();
        assert!(connection.is_resumed());
    }
}

#[test]
fn a_fleet_is_restarted_one_by_one_unnoticed() {
    if enter_namespace("fleet::churn::a_fleet_is_restarted_one_by_one_unnoticed") {
        let fleet = Fleet::new(3);
        let (mut members, traffic) = busy(&fleet);
        for (index, number) in [1, 2, 3].into_iter().enumerate() {
            restart(&fleet, &mut members[index], number, &traffic);
        }
    }
}

#[test]
fn a_fleet_is_upgraded_one_by_one_unnoticed() {
    if enter_namespace("fleet::churn::a_fleet_is_upgraded_one_by_one_unnoticed") {
        let fleet = Fleet::new(3);
        let (members, traffic) = busy(&fleet);
        for (index, member) in members.iter().enumerate() {
            let done = member.upgrade();
            assert!(done.status.success(), "{}", done.stderr);
            members.iter().for_each(|member| member.hears(2));
            traffic.is_well(&format!("host {} was upgraded", index + 1));
        }
        for member in &members {
            let status = member.status();
            let refused = status["messages"]["refused"].as_object().expect("what is refused is counted");
            assert!(!refused.contains_key("replayed") && !refused.contains_key("forged"), "{refused:?}");
        }
    }
}

/// Restarts a host in order, with clients at it.
#[track_caller]
fn restart(fleet: &Fleet, member: &mut Member, number: usize, traffic: &Traffic) {
    traffic.ends(address(fleet, number), HostExit::InOrder);
    member.courser.signal(Signal::SIGTERM);
    assert!(member.courser.wait().success());
    // To the end of its log.
    let _ = member.courser.try_wait_stdout(|_| None::<()>);
    let unserved = |line: &&Value| line["close_reason"] != "done";
    let lines = member.courser.connections_json(1);
    assert_eq!(lines.iter().find(unserved), None, "of host {number}");
    *member = start(fleet, number);
    traffic.serves(address(fleet, number));
    traffic.is_well(&format!("host {number} was restarted"));
}

#[test]
fn a_host_that_is_cut_off_and_let_back_in_goes_on() {
    if enter_namespace("fleet::churn::a_host_that_is_cut_off_and_let_back_in_goes_on") {
        let fleet = Fleet::new(3);
        let (members, traffic) = busy(&fleet);
        traffic.leave(address(&fleet, 3));
        fleet.host(3).unplug();
        traffic.is_well("a host was cut off");
        fleet.host(3).plug_in();
        members[2].hears_something_new();
        traffic.join(address(&fleet, 3));
        traffic.is_well("it was let back in");
    }
}

#[test]
fn a_fleet_is_given_a_new_key_unnoticed() {
    if enter_namespace("fleet::churn::a_fleet_is_given_a_new_key_unnoticed") {
        let mut fleet = Fleet::new(3);
        let (mut members, traffic) = busy(&fleet);
        let (old, new) = (fleet.key.clone(), keygen(fleet.site.folder.path(), "new.key"));
        for (first, second) in [(&old, Some(&new)), (&new, Some(&old)), (&new, None)] {
            fleet.key.clone_from(first);
            fleet.second_key = second.cloned();
            for (index, number) in [1, 2, 3].into_iter().enumerate() {
                restart(&fleet, &mut members[index], number, &traffic);
            }
        }
    }
}

#[test]
fn keys_roll_under_traffic_unnoticed() {
    if !enter_namespace("fleet::churn::keys_roll_under_traffic_unnoticed") {
        return;
    }
    let fleet = Fleet::new(3);
    // A fleet whose next epoch begins in 25 seconds: its first one began 35 seconds ago, and each has 60.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let changed: Vec<String> = fs::read_to_string(&fleet.key)
        .unwrap()
        .lines()
        .map(|line| match line.split(' ').next() {
            Some("origin") => format!("origin = {}", now - 35),
            Some("epoch-seconds") => "epoch-seconds = 60".to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    fs::write(&fleet.key, changed.join("\n") + "\n").unwrap();
    let (members, traffic) = busy(&fleet);
    let epoch = |member: &Member| member.status()["keys"][0]["epoch"].as_u64();
    assert_eq!(epoch(&members[0]), Some(0), "the traffic began too late");
    traffic.goes_on_until(|| members.iter().all(|member| epoch(member) == Some(1)));
    assert_eq!(traffic.is_well("the keys rolled"), 0, "a session was lost over the roll");
}
