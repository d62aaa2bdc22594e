//! Searches on simulated servers whose knees are known.

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::Histogram;
use crate::interval::float;
use crate::simulate::{exponential, normal};

/// A server with one worker and exponential service times, that differs a little from trial to trial and now and then
/// has a bad one.
struct Server {
    rng: Rng,
    /// Requests a second, on average over trials.
    capacity: f64,
    noise: f64,
    hiccups: f64,
}

/// Requests that wait longer fail.
const PATIENCE: f64 = 1.0;

impl Server {
    fn new(seed: u64, capacity: f64) -> Self {
        Self { rng: Rng::with_seed(seed), capacity, noise: 0.005, hiccups: 0.02 }
    }

    /// Response times and failures of a trial, each request simulated (Lindley's recursion).
    fn serve(&mut self, trial: &Trial) -> (Histogram, u64) {
        let mut capacity = self.capacity * (self.noise * normal(&mut self.rng)).exp();
        if self.rng.f64() < self.hiccups {
            capacity *= 0.7;
        }
        let (mut response, mut failed) = (Histogram::default(), 0);
        let (mut now, mut free) = (0.0_f64, 0.0_f64);
        while now < trial.length().as_secs_f64() {
            now += exponential(&mut self.rng) / trial.rate;
            let wait = (free - now).max(0.0);
            let counted = now >= trial.warm_up.as_secs_f64();
            if wait > PATIENCE {
                failed += u64::from(counted);
                continue;
            }
            let service = exponential(&mut self.rng) / capacity;
            free = now + wait + service;
            if counted {
                response.record(Duration::from_secs_f64(wait + service));
            }
        }
        (response, failed)
    }
}

fn run(search: &mut Search, server: &mut Server) -> usize {
    let mut trials = 0;
    while let Step::Trial(trial) = search.step() {
        let (response, failed) = server.serve(&trial);
        report(search, &trial, &response, failed);
        trials += 1;
        assert!(trials <= MOST_TRIALS);
    }
    trials
}

fn report(search: &mut Search, trial: &Trial, response: &Histogram, failed: u64) {
    let succeeded = response.count();
    search.report(&Observation {
        attempted: succeeded + failed,
        succeeded,
        failed,
        offered: trial.rate,
        achieved: float(succeeded) / trial.measure.as_secs_f64(),
        response,
    });
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
#[ignore]
fn tuning() {
    let mut covered = [0.0; 2];
    let (mut most, mut time, mut precise, mut confirmed, mut mean_time) = (0, Duration::ZERO, 0, 0, 0.0);
    let mut bias = [0.0; 2];
    let n = 200;
    for seed in 0..n {
        let mut rng = Rng::with_seed(seed);
        let capacity = 300.0 * (rng.f64() * 10_f64.ln()).exp();
        let mut server = Server::new(seed + 77, capacity);
        let truth = [capacity - 10.0, capacity - 46.05];
        let mut search =
            Search::new(rules(&["avg<100ms,loss<0.1%", "p99<100ms"]), Scope::new(100.0, 100_000.0)).unwrap();
        let trials = run(&mut search, &mut server);
        most = most.max(trials);
        time = time.max(search.time_spent());
        mean_time += search.time_spent().as_secs_f64();
        for (k, found) in search.findings().iter().enumerate() {
            if let Finding::Maximum { rate, interval, precise: p, confirmation } = &found.finding {
                covered[k] += f64::from(interval.contains(truth[k]));
                bias[k] += rate / truth[k] - 1.0;
                precise += usize::from(*p);
                confirmed += usize::from(matches!(confirmation, Confirmation::At(_)));
                if !interval.contains(truth[k]) {
                    println!("{k} cap {capacity:.0} truth {:.0} {interval:?} {p} {confirmation:?}", truth[k]);
                }
            } else {
                println!("{:?} {:?}", found.finding, truth);
            }
        }
    }
    println!(
        "covered {covered:?} bias {bias:?} of {n}; precise {precise} confirmed {confirmed} most trials {most} longest {time:?} mean {}",
        mean_time / n as f64
    );
}
