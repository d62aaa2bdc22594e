//! Loads, and what is served of them.

use std::time::Duration;

use courser_overload::Change;

use crate::simulation::{ANYWHERE, Costs, ECDSA, Load, RSA, SLOW, Simulation};

fn times(costs: Costs, factor: f64) -> Load {
    Load { rate: costs.capacity() * factor, ..ANYWHERE }
}

#[test]
fn goodput_stays_however_much_is_offered() {
    for (costs, factor, least) in
        [(RSA, 1.5, 0.93), (RSA, 3.0, 0.93), (RSA, 10.0, 0.90), (ECDSA, 3.0, 0.85), (ECDSA, 10.0, 0.75)]
    {
        for mut simulation in Simulation::each(costs, 1) {
            simulation.run(20_000, &[times(costs, factor)]);
            let goodput = simulation.goodput(150);
            simulation.assert(goodput > least, &format!("goodput {goodput:.3} at {factor}x"));
            let wait = simulation.groups[0].mean_wait();
            simulation.assert(wait < Duration::from_millis(120), &format!("mean wait {wait:?} at {factor}x"));
        }
    }
}

#[test]
fn who_is_served_has_not_waited_long() {
    for (costs, factor, least) in [
        (RSA, 1.5, 0.93),
        (RSA, 3.0, 0.93),
        (RSA, 10.0, 0.9),
        (SLOW, 4.0, 0.9),
        (SLOW, 12.0, 0.9),
        (ECDSA, 3.0, 0.85),
    ] {
        for mut simulation in Simulation::each(costs, 1) {
            simulation.run(5_000, &[times(costs, factor)]);
            simulation.groups.fill_with(Default::default);
            simulation.run(20_000, &[times(costs, factor)]);
            let p99 = simulation.groups[0].wait_of_all_but(1);
            simulation.assert(p99 < Duration::from_millis(200), &format!("p99 {p99:?} at {factor}x"));
            let goodput = simulation.goodput(200);
            simulation.assert(goodput > least, &format!("goodput {goodput:.3} at {factor}x"));
        }
    }
}

#[test]
fn clients_that_come_again_do_not_make_it_swing() {
    for (costs, factor) in [(RSA, 3.0), (RSA, 10.0), (SLOW, 3.0), (SLOW, 10.0)] {
        for mut simulation in Simulation::each(costs, 1) {
            let load = Load { patience_ms: 5_000, ..times(costs, factor) };
            simulation.run(10_000, &[load]);
            simulation.groups.fill_with(Default::default);
            let (mut least, mut most) = (1.0_f64, 0.0_f64);
            for _ in 0..200 {
                simulation.run(100, &[load]);
                least = least.min(simulation.share_let_in());
                most = most.max(simulation.share_let_in());
            }
            simulation.assert(most < least * 3.0, &format!("it let in from {least:.3} to {most:.3}"));
            let goodput = simulation.goodput(200);
            simulation.assert(goodput > 0.85, &format!("goodput {goodput:.3}"));
        }
    }
}

/// Clients stay until their SYN is repeated, and a little longer: each share that grows lets some of them in.
#[test]
fn who_was_refused_is_hardly_ever_let_in_by_the_next_syn() {
    let mut all = Vec::new();
    for (costs, factor) in [(RSA, 3.0), (RSA, 10.0), (SLOW, 3.0), (SLOW, 10.0)] {
        for mut simulation in Simulation::each(costs, 1) {
            let load = Load { patience_ms: 1_500, ..times(costs, factor) };
            simulation.run(5_000, &[load]);
            simulation.groups.fill_with(Default::default);
            simulation.run(40_000, &[load]);
            let late = simulation.groups[0].part_slower_than(Duration::from_millis(900));
            // One that swings by chance is one of many.
            simulation.assert(late < 0.1, &format!("{late:.3} of those served have come again at {factor}x"));
            all.push(late);
        }
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean < 0.03, "{mean:.3} of those served have come again: {all:?}");
}

#[test]
fn a_burst_that_can_be_cleared_is_served_whole() {
    for mut simulation in Simulation::each(ECDSA, 1) {
        simulation.burst(3_000, &ANYWHERE);
        simulation.run(3_000, &[]);
        simulation.assert(simulation.groups[0].served == 3_000 && simulation.changes.is_empty(), "a burst");
    }
}

#[test]
fn a_burst_that_cannot_is_served_for_as_long_as_clients_wait() {
    for mut simulation in Simulation::each(RSA, 1) {
        simulation.burst(3_000, &ANYWHERE);
        simulation.run(3_000, &[]);
        let served = f64::from(simulation.groups[0].served) / RSA.capacity();
        simulation.assert(served > 0.9, &format!("{served:.3} of a second's worth"));
    }
}

#[test]
fn below_capacity_nobody_is_refused() {
    for factor in [0.5, 0.9] {
        for mut simulation in Simulation::each(RSA, 1) {
            simulation.run(20_000, &[times(RSA, factor)]);
            simulation.assert(simulation.changes.is_empty() && simulation.refused == 0, "no overload");
        }
    }
}

#[test]
fn it_is_over_soon_after_the_load_is_gone() {
    for mut simulation in Simulation::each(RSA, 1) {
        simulation.run(10_000, &[times(RSA, 10.0)]);
        simulation.run(4_000, &[times(RSA, 0.5)]);
        simulation.assert(!simulation.is_overload(), "4 s later");
        simulation.refused = 0;
        simulation.run(10_000, &[times(RSA, 0.5)]);
        simulation.assert(simulation.refused == 0, "refusals 5 s after the load is gone");
    }
}

#[test]
fn it_is_over_though_the_worker_never_rests() {
    for mut simulation in Simulation::each(RSA, 1) {
        simulation.is_relaying = true;
        simulation.run(10_000, &[times(RSA, 1.8)]);
        let share = simulation.share_let_in();
        simulation.assert(share > 0.667 && share < 1.0, "a share that does not grow by itself");
        simulation.run(5_000, &[times(RSA, 0.5)]);
        simulation.assert(!simulation.is_overload(), "5 s later");
        simulation.refused = 0;
        simulation.run(10_000, &[times(RSA, 0.5)]);
        simulation.assert(simulation.refused == 0, "refusals after the load is gone");
    }
}

#[test]
fn ramps_and_steps_are_followed() {
    for mut simulation in Simulation::each(RSA, 1) {
        let factors = (1..=40).map(|tenth| f64::from(tenth) / 4.0);
        let all: Vec<_> =
            factors.clone().chain(factors.rev()).chain([0.3, 8.0, 0.3, 2.0, 6.0, 1.1]).collect();
        for factor in all {
            simulation.run(1_000, &[times(RSA, factor)]);
            if factor > 1.5 {
                let goodput = simulation.goodput(8);
                simulation
                    .assert(goodput > 0.75, &format!("goodput {goodput:.3} in the second of {factor}x"));
            }
        }
        simulation.run(6_000, &[times(RSA, 0.5)]);
        simulation.assert(!simulation.is_overload(), "it sticks");
        let begun = simulation.changes.iter().filter(|(_, change)| *change == Change::Began).count();
        simulation.assert(begun <= 6, &format!("overload began {begun} times"));
    }
}

#[test]
fn one_network_takes_nothing_from_the_others() {
    for hosts in [256, 1] {
        for mut simulation in Simulation::each(RSA, 2) {
            let quiet = times(RSA, 0.5);
            let noisy = Load { network: 0x0b01_0200, hosts, ..times(RSA, 20.0) };
            simulation.run(5_000, &[quiet, noisy]);
            simulation.groups.fill_with(Default::default);
            simulation.run(10_000, &[quiet, noisy]);
            let [quiet, noisy] = [0, 1].map(|group| simulation.groups[group].clone());
            simulation
                .assert(quiet.part_served() > 0.98, &format!("{:.3} of the others", quiet.part_served()));
            simulation
                .assert(quiet.mean_wait() < Duration::from_millis(50), &format!("{:?}", quiet.mean_wait()));
            let rest = f64::from(noisy.served) / 10.0 / RSA.capacity();
            simulation.assert(rest > 0.35, &format!("it gets {rest:.3} of the capacity, what is left"));
        }
    }
}

#[test]
fn a_lone_network_may_use_everything() {
    for mut simulation in Simulation::each(RSA, 1) {
        simulation.run(15_000, &[Load { hosts: 1, ..times(RSA, 3.0) }]);
        let goodput = simulation.goodput(100);
        simulation.assert(goodput > 0.93, &format!("goodput {goodput:.3}"));
    }
}

#[test]
fn known_visitors_get_in() {
    for mut simulation in Simulation::each(RSA, 2) {
        let known = Load { known: true, network: 0x0b00_0000, ..times(RSA, 0.45) };
        simulation.run(5_000, &[known, times(RSA, 5.0)]);
        simulation.groups.fill_with(Default::default);
        simulation.run(10_000, &[known, times(RSA, 5.0)]);
        let known = simulation.groups[0].clone();
        simulation.assert(known.part_served() > 0.95, &format!("{:.3} of those known", known.part_served()));
    }
}
