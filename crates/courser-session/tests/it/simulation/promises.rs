//! What the design promises, measured: how many clients resume on a host other than the one that they came from.

use std::time::Duration;

use courser_session::fleet::WarmUpStatus;

use super::host::{Host, Settings};
use super::ledger::Violation;
use super::network::{Recorded, Weather, index};
use super::sabotage::Sabotage;
use super::story::{Twist, right_clock};
use super::workload::Workload;
use super::world::{Event, World};
use super::{HOSTS, held};
use crate::Random;

/// A calm world without a story, whose hosts know each other.
fn calm_world(seed: u64, clocks: impl Fn(usize) -> i64, cache_bytes: usize) -> World {
    let lifetime = Duration::from_secs(600);
    let settings = Settings { lifetime, cache_bytes, epoch_seconds: 8 * 3600, secrets: vec![1] };
    let host = |number| Host::new(number, number % 2 == 0, clocks(number), settings.clone());
    let mut world = World::new(seed, (0..HOSTS).map(host).collect(), Workload::NONE, Sabotage::None);
    pass(&mut world, 3000);
    world
}

fn right(number: usize) -> i64 {
    right_clock(Random(number as u64).next())
}

fn pass(world: &mut World, ms: u64) {
    let end = world.time + ms;
    expect(world.run_until(end));
}

fn expect<T>(outcome: Result<T, Violation>) -> T {
    outcome.unwrap_or_else(|Violation(what)| panic!("{what}"))
}

fn make(world: &mut World, host: usize) -> usize {
    expect(world.make(host))
}

fn resumes(world: &mut World, host: usize, session: usize) -> bool {
    let policy = world.ledger.made[session].session.policy;
    expect(world.resume(host, session, &policy)).is_ok()
}

/// Of a thousand clients that return to a host other than the one they came from, how many resume without a pull: of a
/// thousand sessions, each of which returns to each of the other hosts.
fn resumed_of_1000(loss: u64) -> u64 {
    let mut world = calm_world(loss, right, 8 << 20);
    world.network.weather = Weather::losing(loss, HOSTS);
    world.calm_since = None;
    let mut resumed = 0;
    for _ in 0..20 {
        let sessions: Vec<_> = (0..50).map(|_| some_session(&mut world)).collect();
        pass(&mut world, 100);
        for (maker, session) in sessions {
            let elsewhere = (0..HOSTS).filter(|host| *host != maker);
            resumed += elsewhere.filter(|host| resumes(&mut world, *host, session)).count() as u64;
        }
    }
    resumed / (HOSTS as u64 - 1)
}

/// A session that is made on any host, and its maker. Half of those that share a moment share a datagram.
fn some_session(world: &mut World) -> (usize, usize) {
    let pause = world.random.below(3);
    pass(world, pause);
    let maker = index(&mut world.random, HOSTS);
    (maker, make(world, maker))
}

#[test]
fn without_loss_99_of_100_resume_elsewhere() {
    let resumed = resumed_of_1000(0);
    assert!(resumed >= 990, "{resumed} of 1000");
}

#[test]
fn with_loss_as_many_resume_as_are_told_less_two_points() {
    for loss in [10, 100, 250, 500] {
        let resumed = resumed_of_1000(loss);
        assert!(resumed + 20 >= 1000 - loss, "{resumed} of 1000 with {} % of loss", loss / 10);
    }
}

#[test]
fn a_host_that_starts_empty_has_everything_soon_and_asks_until_then() {
    let mut world = calm_world(1, right, 8 << 20);
    let sessions: Vec<_> = (0..400).map(|_| some_session(&mut world).1).collect();
    pass(&mut world, 1000);
    expect(world.twist(Twist::Start { host: 9, is_cold: true }));
    pass(&mut world, 100);
    for session in &sessions[..50] {
        expect(world.pull(9, *session));
    }
    pass(&mut world, 100);
    let pulled = sessions[..50].iter().filter(|session| resumes(&mut world, 9, **session)).count();
    assert!(pulled >= 47, "{pulled} of 50 are pulled within 200 ms of a start");
    pass(&mut world, 4000);
    let host = &world.hosts[9];
    let status = host.member.as_ref().map(|member| member.status(host.now(world.time)).warm_up);
    assert_eq!(status, Some(WarmUpStatus::Done));
    let (here, there) = (held(&host.cache, host.wall(world.time)).len(), sessions.len());
    assert!(here == there, "{here} of {there} sessions");
}

#[test]
fn a_fleet_that_is_restarted_host_by_host_goes_on() {
    let mut world = calm_world(2, right, 8 << 20);
    let sessions: Vec<_> = (0..200).map(|_| some_session(&mut world).1).collect();
    pass(&mut world, 1000);
    for host in 0..HOSTS {
        world.hosts[host].stop();
        pass(&mut world, 500);
        expect(world.twist(Twist::Start { host, is_cold: true }));
        pass(&mut world, 4000);
    }
    for host in 0..HOSTS {
        let resumed = sessions.iter().filter(|session| resumes(&mut world, host, **session)).count();
        assert!(resumed == 200, "{resumed} of 200 on host {host}, though no host lived through it");
    }
}

#[test]
fn a_host_that_starts_with_its_clock_set_back_is_believed_after_ten_seconds() {
    let mut world = calm_world(5, right, 8 << 20);
    world.hosts[7].clock_ms -= 20_000;
    expect(world.twist(Twist::Start { host: 7, is_cold: true }));
    pass(&mut world, 12_000);
    let session = make(&mut world, 7);
    pass(&mut world, 100);
    assert!((0..HOSTS).all(|host| resumes(&mut world, host, session)));
}

#[test]
fn recordings_from_before_a_restart_revive_nothing() {
    let mut world = calm_world(6, right, 8 << 20);
    let session = make(&mut world, 1);
    pass(&mut world, 100);
    let heard = |recorded: &&Recorded| recorded.to == 2;
    let recordings: Vec<_> = world.network.recordings().filter(heard).cloned().collect();
    expect(world.delete_on(session, 1));
    pass(&mut world, 100);
    expect(world.twist(Twist::Start { host: 2, is_cold: true }));
    pass(&mut world, 3000);
    for Recorded { to, from, bytes } in recordings {
        world.after(1, Event::Arrive { to, from, bytes, is_altered: false });
    }
    pass(&mut world, 100);
    assert!(!resumes(&mut world, 2, session), "it was deleted, but the host has forgotten that");
}

#[test]
fn a_host_with_a_clock_an_hour_off_is_named_and_changes_nothing() {
    const HOUR_MS: i64 = 3_600_000;
    for off in [-HOUR_MS, HOUR_MS] {
        let mut world = calm_world(3, |number| if number == 5 { off } else { right(number) }, 8 << 20);
        for _ in 0..200 {
            some_session(&mut world);
        }
        pass(&mut world, 3000);
        expect(world.audit_all());
        for host in world.hosts.iter().filter(|host| host.number != 5) {
            let status = host.member.as_ref().expect("it is up").status(host.now(world.time));
            let peer = status.peers.iter().find(|peer| peer.name.as_deref() == Some("host-5"));
            let ahead =
                peer.filter(|peer| peer.is_clock_off).map(|peer| peer.clock_ahead_ms - (off - host.clock_ms));
            assert!(ahead.is_some_and(|difference| difference.abs() < 100), "{}: {peer:?}", host.name);
        }
    }
}

#[test]
fn a_host_that_floods_the_fleet_flushes_nothing_that_is_in_use() {
    let mut world = calm_world(4, right, 256 << 10);
    world.calm_since = None;
    let ours: Vec<_> = (0..100).map(|_| make(&mut world, 1)).collect();
    assert!(ours.iter().all(|session| resumes(&mut world, 1, *session)), "all are in use");
    for _ in 0..100 {
        for _ in 0..50 {
            make(&mut world, 2);
        }
        pass(&mut world, 10);
    }
    let taken = world.hosts[1].cache.stats();
    assert!(taken.evicted_probation > 1000, "the flood came: {taken:?}");
    assert!(ours.iter().all(|session| resumes(&mut world, 1, *session)), "a session in use was flushed");
    assert_eq!(taken.evicted_protected, 0);
}
