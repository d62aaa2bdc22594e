//! What the design promises, measured: how many clients resume on a host other than the one that they came from.

use std::time::Duration;

use courser_fleet::{Refusal, StateTransferStatus};
use courser_session::{Lifespan, ResumptionFailure};

use super::host::{Host, Settings};
use super::ledger::Violation;
use super::network::{Recorded, Weather, index};
use super::sabotage::Sabotage;
use super::story::{Twist, right_clock};
use super::workload::{Workload, byte};
use super::world::{Event, World};
use super::{HOSTS, held};
use crate::{Random, policy};

/// A calm world without a story, whose hosts know each other.
fn calm_world(seed: u64, clocks: impl Fn(usize) -> i64, cache_bytes: usize) -> World {
    let lifetime = Duration::from_secs(600);
    let settings = Settings { lifetime, cache_bytes, epoch_seconds: 8 * 3600, secrets: vec![1] };
    let host = |number| Host::new(number, number % 2 == 0, clocks(number), settings.clone());
    acquainted(seed, (0..HOSTS).map(host).collect())
}

fn acquainted(seed: u64, hosts: Vec<Host>) -> World {
    let mut world = World::new(seed, hosts, Workload::NONE, Sabotage::None);
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
    let status = host.member.as_ref().map(|member| member.status(host.now(world.time)).state_transfer);
    assert_eq!(status, Some(StateTransferStatus::Done));
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

/// The host in [`world_with_a_clock_off`] whose clock is.
const ODD: usize = 3;

/// Three hosts whose clocks are right to a second, and one whose clock is off by so much.
fn world_with_a_clock_off(off_ms: i64, ratchets: bool, epoch_seconds: u64) -> World {
    let lifetime = Duration::from_secs(600);
    let settings = Settings { lifetime, cache_bytes: 1 << 20, epoch_seconds, secrets: vec![1] };
    let clocks = [(false, -1000), (true, 0), (false, 1000), (ratchets, off_ms)];
    let host = |(number, (ratchets, clock))| Host::new(number, ratchets, clock, settings.clone());
    let mut world = acquainted(7, clocks.into_iter().enumerate().map(host).collect());
    // What has to reach whom is the tests' affair.
    world.calm_since = None;
    world
}

/// What becomes of a ticket of one host at another.
fn ticket(world: &mut World, from: usize, to: usize) -> Result<(), ResumptionFailure> {
    let nonce = std::array::from_fn(|_| byte(&mut world.random));
    let (maker, opener) = (&world.hosts[from], &world.hosts[to]);
    let (made, now) = (maker.wall(world.time), opener.wall(world.time));
    let lifespan = Lifespan::new(made, maker.settings.lifetime);
    let ticket = maker.ticketer.seal(&policy("a"), lifespan, b"a state", nonce, made);
    opener.ticketer.open(&policy("a"), &ticket.expect("it begins to live"), now).map(drop)
}

/// How far one host takes another one's clock to be ahead, and whether it says that this is too much.
fn clock_of(world: &World, other: usize, by: usize) -> (i64, bool) {
    let host = &world.hosts[by];
    let status = host.member.as_ref().expect("it is up").status(host.now(world.time));
    let name = Some(world.hosts[other].name.as_str());
    let peer = status.peers.iter().find(|peer| peer.name.as_deref() == name).expect("they know each other");
    (peer.clock_ahead_ms, peer.is_clock_off)
}

#[test]
fn clocks_may_differ_by_a_minute_and_beyond_that_a_host_is_named_and_gives_nothing() {
    for off in [1, 30, 50, 58, 62, 70, 120, 3600].into_iter().flat_map(|off| [off, -off]) {
        let mut world = world_with_a_clock_off(off * 1000, off > 0, 8 * 3600);
        let is_near = off.abs() <= 60;
        let (theirs, ours) = (make(&mut world, ODD), make(&mut world, 1));
        pass(&mut world, 100);
        for host in 0..ODD {
            assert_eq!(resumes(&mut world, host, theirs), is_near, "pushed by the one that is {off} s off");
            assert!(resumes(&mut world, host, ours), "the others go on beside one that is {off} s off");
            look_at_the_clock(&mut world, host, ODD);
            look_at_the_clock(&mut world, ODD, host);
        }
        assert_eq!(resumes(&mut world, ODD, ours), is_near, "pushed to the one that is {off} s off");
        if !is_near {
            nothing_is_taken(&mut world, theirs, ours);
        }
    }
}

/// A host knows how far the clock of another one is off, names it if that is too far, and takes its tickets as far as they
/// live by its own clock.
fn look_at_the_clock(world: &mut World, host: usize, other: usize) {
    let differ = world.hosts[other].clock_ms - world.hosts[host].clock_ms;
    let (ahead, is_named) = clock_of(world, other, host);
    assert!((ahead - differ).abs() < 100, "{ahead} ms for {differ} ms");
    assert_eq!(is_named, differ.abs() > 60_000, "a clock {differ} ms ahead");
    let expected = match differ {
        ..=-600_000 => Err(ResumptionFailure::Expired),
        -599_999..=60_000 => Ok(()),
        60_001.. => Err(ResumptionFailure::NotYetValid),
    };
    assert_eq!(ticket(world, other, host), expected, "a clock {differ} ms ahead");
}

/// Nor is anything taken from the one with the wrong clock that was asked for, nor a deletion.
fn nothing_is_taken(world: &mut World, theirs: usize, ours: usize) {
    expect(world.pull(ODD, ours));
    (0..ODD).for_each(|host| expect(world.pull(host, theirs)));
    let (id, now) = (world.ledger.made[ours].session.id, world.hosts[ODD].now(world.time));
    world.hosts[ODD].member.as_mut().expect("it is up").delete(&id, now);
    expect(world.settle(ODD));
    pass(world, 1500);
    assert!(!resumes(world, ODD, ours));
    for host in 0..ODD {
        assert!(!resumes(world, host, theirs) && resumes(world, host, ours));
        let host = &world.hosts[host];
        let status = host.member.as_ref().expect("it is up").status(host.now(world.time));
        assert!(status.refused.get(Refusal::ClockSkew) > 0 && status.received.deleted == 0, "{status:?}");
    }
}

#[test]
fn clocks_that_differ_by_less_than_a_minute_lose_nothing_while_keys_roll() {
    for off in [-58_000, 58_000] {
        for ratchets in [true, false] {
            let mut world = world_with_a_clock_off(off, ratchets, 60);
            for _ in 0..300 {
                let (theirs, ours) = (make(&mut world, ODD), make(&mut world, 1));
                pass(&mut world, 500);
                for host in 0..ODD {
                    let time = world.time;
                    assert!(resumes(&mut world, host, theirs), "{off} ms off, at {time} ms");
                    assert_eq!(ticket(&mut world, ODD, host), Ok(()), "{off} ms off, at {time} ms");
                    assert_eq!(ticket(&mut world, host, ODD), Ok(()), "{off} ms off, at {time} ms");
                }
                assert!(resumes(&mut world, ODD, ours), "{off} ms off, at {} ms", world.time);
            }
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
