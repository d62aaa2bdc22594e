//! The run itself, for the benchmark and, shorter, for the tests.

mod judges;
mod report;
mod service;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use courser_testkit::{Offer, OpenLoad};

use self::judges::Judge;
pub(crate) use self::report::Report;
use self::report::{Sample, Tries};
use self::service::Service;

/// What is done how often.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) duration: Duration,
    /// Connections a second of each kind.
    pub(crate) rate: f64,
    pub(crate) reload_every: Duration,
    pub(crate) upgrade_every: Duration,
    /// How long a process that was replaced may drain.
    pub(crate) drain: Duration,
    /// Certificates are ordered from Pebble, and renewed that often.
    pub(crate) renew_every: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(60),
            rate: 20.0,
            reload_every: Duration::from_secs(1),
            upgrade_every: Duration::from_secs(10),
            drain: Duration::from_secs(8),
            renew_every: None,
        }
    }
}

/// Of the kinds of handshakes, with their names.
const OFFERS: [(&str, Offer); 4] = [
    ("full", Offer::Nothing),
    ("TLS 1.3, PSK", Offer::Psk),
    ("TLS 1.2, ticket", Offer::Ticket),
    ("TLS 1.2, session ID", Offer::SessionId),
];

/// Bytes of an answer.
pub(crate) const BYTES: usize = 2_000;

/// Loads the service, reloads and upgrades it meanwhile.
///
/// # Panics
/// When something cannot be had that has nothing to do with the service: a process, a port.
pub(crate) fn run(options: &Options) -> Report {
    let service = Service::start(options.drain, options.renew_every);
    service.upgrade().expect("it can be upgraded at rest");
    let (at_rest, issued) = (service.at_rest(), service.issued());
    let begun = Instant::now();
    let until = begun + options.duration;
    let (failures, samples) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let is_over = AtomicBool::new(false);
    let tried = |every, what: &'static str, again: &(dyn Fn() -> Result<(), String> + Sync)| {
        repeat(every, until, what, &failures, again)
    };
    let mut report = thread::scope(|scope| {
        let loads = OFFERS.map(|(name, offer)| {
            let address = format!("localhost:{}", service.address.port());
            let load = OpenLoad::start(address, offer, options.rate, BYTES, options.duration);
            (name, load.expect("a load can be made"))
        });
        let reloads = scope.spawn(|| tried(options.reload_every, "reload", &|| service.reload()));
        let upgrades = scope.spawn(|| tried(options.upgrade_every, "upgrade", &|| service.upgrade()));
        let judges = Judge::installed(&service);
        let tried = &tried;
        let judges = judges.map(|judge| {
            let name = judge.name;
            (name, scope.spawn(move || tried(Duration::from_secs(1), name, &|| judge.connect())))
        });
        let judges: Vec<_> = judges.collect();
        let relays = scope.spawn(|| relays(&service, options.drain, until, &failures));
        let sampler = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let sample = Sample { after: begun.elapsed(), held: service.held() };
                samples.lock().expect("no sampler panics").push(sample);
                thread::sleep(Duration::from_secs(1));
            }
        });
        let kinds = loads.map(|(name, load)| (name, load.finish().expect("the generator does not fail")));
        is_over.store(true, Ordering::Relaxed);
        sampler.join().expect("no sampler panics");
        let joined = |(name, judge): (_, thread::ScopedJoinHandle<'_, Tries>)| {
            (name, judge.join().expect("no judge panics"))
        };
        let mut tries = vec![
            ("reloads", reloads.join().expect("it does not panic")),
            ("upgrades", upgrades.join().expect("it does not panic")),
            ("relays", relays.join().expect("it does not panic")),
        ];
        tries.extend(judges.into_iter().map(joined));
        Report { kinds: kinds.into(), tries, ..Report::default() }
    });
    report.failed_orders = service.failed_orders();
    report.renewals = service.issued().zip(issued).map(|(after, before)| after - before);
    // An order or two may fall on an upgrade, and wait for the next process.
    let due = options.renew_every.map_or(0, |every| options.duration.as_secs() / every.as_secs().max(1));
    report.least_renewals = usize::try_from(due / 2).expect("hours have few seconds");
    service.upgrade().expect("it can be upgraded at rest");
    report.at_rest = [at_rest, service.at_rest()];
    report.left_over = service.left_over();
    report.failures = failures.into_inner().expect("nobody panics");
    report.samples = samples.into_inner().expect("nobody panics");
    report
}

/// Does it as often as it is due, up to an end. One that takes longer than its time is followed at once by the next.
fn repeat(
    every: Duration,
    until: Instant,
    what: &str,
    failures: &Mutex<Vec<String>>,
    again: &dyn Fn() -> Result<(), String>,
) -> Tries {
    let (mut tries, mut due) = (Tries::default(), Instant::now() + every);
    while due < until {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let begun = Instant::now();
        let result = again();
        tries.add(begun.elapsed(), result.is_ok());
        if let Err(why) = result {
            failures.lock().expect("nobody panics").push(format!("{what}: {why}"));
        }
        due = (due + every).max(Instant::now());
    }
    tries
}

/// A relay each second, which lasts nearly as long as a process may drain: none of them is cut.
fn relays(service: &Service, drain: Duration, until: Instant, failures: &Mutex<Vec<String>>) -> Tries {
    let lasts = drain.saturating_sub(Duration::from_secs(2)).max(drain / 2);
    let tries = Mutex::new(Tries::default());
    thread::scope(|scope| {
        while Instant::now() < until {
            scope.spawn(|| {
                let result = service.relay(lasts);
                tries.lock().expect("nobody panics").add(lasts, result.is_ok());
                if let Err(why) = result {
                    failures.lock().expect("nobody panics").push(format!("relay: {why}"));
                }
            });
            thread::sleep(Duration::from_secs(1));
        }
    });
    tries.into_inner().expect("nobody panics")
}
