//! How long handshakes take while sessions of others come in.

use std::{
    io,
    net::UdpSocket,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use courser_testkit::{
    KeyType,
    client::{Client, Resume, Version},
};

use crate::{
    hosts, median,
    options::Options,
    others::Others,
    program::{Stage, free},
    there_and_back,
};

/// Hosts that make sessions.
const SENDERS: u8 = 5;

/// Handshakes under way at most; later ones wait, and their wait is on the clock.
const THREADS: usize = 16;

const NAMES: [&str; 2] = ["without", "with"];

/// A line of the table: what, how it is got, what is wanted of the difference.
type Line = (&'static str, fn(&Times) -> f64, &'static str);

/// Of the handshakes of one sample, in milliseconds.
#[derive(Clone, Copy)]
struct Times {
    p50: f64,
    p99: f64,
    longest: f64,
}

pub(crate) fn measure(stage: &Stage, options: &Options) -> io::Result<()> {
    let own = free(0)?;
    // Bound as long as this lasts, and never read.
    let nobody = UdpSocket::bind(hosts::loopback(0))?;
    let host = stage.start("receiver", stage.member("receiver", own, &[]).args(["--tls-versions", "1.3"]))?;
    let key = stage.key().display().to_string();
    let mut senders =
        [Others::hosts(SENDERS, nobody.local_addr()?, &key)?, Others::hosts(SENDERS, own, &key)?];
    host.hears(usize::from(SENDERS))?;
    let client = Client::new(host.courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Never);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..options.rounds {
        for at in there_and_back(round) {
            let (sample, made) = sample(&client, &mut senders[at], options)?;
            let Times { p50, p99, longest } = sample;
            let (round, rounds) = (round + 1, options.rounds);
            eprintln!(
                "latency round {round} of {rounds}, {}: p50 {p50:.2} p99 {p99:.2} longest {longest:.1} ms, {made} sessions",
                NAMES[at]
            );
            times[at].push(sample);
        }
    }
    eprintln!("it holds {} sessions", host.sessions()?);
    table(&times, options);
    Ok(())
}

fn table(times: &[Vec<Times>; 2], options: &Options) {
    let of = |at: usize, value: fn(&Times) -> f64| median(&times[at].iter().map(value).collect::<Vec<_>>());
    println!(
        "full TLS 1.3 handshakes, {} a second; with and without {} sessions a second coming in: ms",
        options.rate, options.received
    );
    println!("          without     with  difference  wanted");
    let rows: [Line; 3] = [
        ("p50", |times| times.p50, ""),
        ("p99", |times| times.p99, "1"),
        ("longest", |times| times.longest, ""),
    ];
    for (name, value, wanted) in rows {
        let (without, with) = (of(0, value), of(1, value));
        println!("{name:8}  {without:7.3}  {with:7.3}  {:10.3}  {wanted:>6}", with - without);
    }
}

/// Times, and how many sessions the senders made meanwhile.
fn sample(client: &Client, senders: &mut Others, options: &Options) -> io::Result<(Times, u64)> {
    let length = Duration::from_secs(options.seconds.into());
    thread::scope(|scope| {
        let making = scope.spawn(|| senders.make(options.received, length));
        let times = handshakes(client, options);
        let made = making.join().map_err(|_| io::Error::other("the senders' thread panicked"))??;
        Ok((times?, made))
    })
}

/// Handshakes at a steady rate, timed from when each was due.
fn handshakes(client: &Client, options: &Options) -> io::Result<Times> {
    let (start, next, count) = (Instant::now(), AtomicU32::new(0), options.rate * options.seconds);
    let interval = Duration::from_secs(1) / options.rate;
    let work = || {
        let mut times = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(times);
            }
            let due = start + interval * number;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let connection = client.connect()?;
            times.push(due.elapsed());
            connection.close()?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for thread in threads {
            let times: io::Result<Vec<Duration>> =
                thread.join().map_err(|_| io::Error::other("a client's thread panicked"))?;
            all.extend(times?);
        }
        Ok(Times::of(all))
    })
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let last = times.len() - 1;
        let at = |percent: usize| times[last * percent / 100].as_secs_f64() * 1e3;
        Self { p50: at(50), p99: at(99), longest: at(100) }
    }
}
