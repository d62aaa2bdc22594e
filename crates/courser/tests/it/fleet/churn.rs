//! Hosts that die, are restarted, cut off, and given new keys, under traffic: no handshake fails, and clients are
//! resumed again soon.

use std::fs;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use courser_testkit::Signal;
use courser_testkit::network::inside;

use super::hosts::{Fleet, Member};
use super::keygen;
use super::traffic::Traffic;

fn address(fleet: &Fleet, number: usize) -> SocketAddr {
    (fleet.host(number).ip(), 443).into()
}

/// Three hosts that hear each other, and clients at all of them.
fn busy(fleet: &Fleet) -> (Vec<Member>, Traffic) {
    let members: Vec<_> = (1..=3).map(|number| start(fleet, number)).collect();
    members.iter().for_each(|member| member.hears(2));
    let traffic = Traffic::start(&[1, 2, 3].map(|number| address(fleet, number)));
    traffic.is_well();
    (members, traffic)
}

/// Pulls may take longer than usual: all hosts share the processors of one machine with the clients.
fn start(fleet: &Fleet, number: usize) -> Member {
    fleet.start(number, fleet.unicast(number).args(["--fleet-pull-timeout", "200ms"]))
}

#[test]
fn a_host_that_is_killed_comes_back_unnoticed() {
    if inside("fleet::churn::a_host_that_is_killed_comes_back_unnoticed") {
        let fleet = Fleet::new(3);
        let (mut members, traffic) = busy(&fleet);
        traffic.leave(address(&fleet, 2));
        members[1].courser.signal(Signal::SIGKILL);
        traffic.is_well();
        members[1] = start(&fleet, 2);
        traffic.join(address(&fleet, 2));
        traffic.is_well();
    }
}

#[test]
fn a_fleet_is_restarted_one_by_one_unnoticed() {
    if inside("fleet::churn::a_fleet_is_restarted_one_by_one_unnoticed") {
        let fleet = Fleet::new(3);
        let (mut members, traffic) = busy(&fleet);
        for (index, number) in [1, 2, 3].into_iter().enumerate() {
            restart(&fleet, &mut members[index], number, &traffic);
        }
    }
}

/// Takes a host out, restarts it in order, and puts it back.
fn restart(fleet: &Fleet, member: &mut Member, number: usize, traffic: &Traffic) {
    traffic.leave(address(fleet, number));
    member.courser.signal(Signal::SIGTERM);
    member.courser.wait();
    *member = start(fleet, number);
    traffic.join(address(fleet, number));
    traffic.is_well();
}

#[test]
fn a_host_that_is_cut_off_and_let_back_in_goes_on() {
    if inside("fleet::churn::a_host_that_is_cut_off_and_let_back_in_goes_on") {
        let fleet = Fleet::new(3);
        let (members, traffic) = busy(&fleet);
        traffic.leave(address(&fleet, 3));
        fleet.host(3).unplug();
        traffic.is_well();
        fleet.host(3).plug_in();
        members[2].hears(2);
        traffic.join(address(&fleet, 3));
        traffic.is_well();
    }
}

#[test]
fn a_fleet_is_given_a_new_key_unnoticed() {
    if inside("fleet::churn::a_fleet_is_given_a_new_key_unnoticed") {
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
    if !inside("fleet::churn::keys_roll_under_traffic_unnoticed") {
        return;
    }
    let fleet = Fleet::new(3);
    // A fleet whose next epoch begins in a few seconds: its first one began 50 seconds ago, and each has 60.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let changed: Vec<String> = fs::read_to_string(&fleet.key)
        .unwrap()
        .lines()
        .map(|line| match line.split(' ').next() {
            Some("origin") => format!("origin = {}", now - 50),
            Some("epoch-seconds") => "epoch-seconds = 60".to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    fs::write(&fleet.key, changed.join("\n") + "\n").unwrap();
    let (members, traffic) = busy(&fleet);
    let rolled = |member: &Member| {
        member.wait("the next epoch", |status| (status["keys"][0]["epoch"].as_u64()? >= 1).then_some(()));
    };
    members.iter().for_each(rolled);
    traffic.is_well();
}
