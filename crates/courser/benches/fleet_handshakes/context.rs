//! Instructions of the worker per connection, with sharing and without.

use std::{fs, io, net::SocketAddr};

use courser_testkit::{
    KeyType,
    client::{Client, Resume, Version},
    courser::Setup,
    require,
};

use crate::{
    median,
    options::Options,
    program::{Stage, free},
    there_and_back,
};

/// Connections of the shorter of the two runs whose difference is taken; by then caches and allocator are warm.
const WARM: u32 = 50;

const ANSWER: usize = 1024;

/// A file whose code runs on no other thread.
const ONLY_WORKER: &str = "courser-proxy/src/relay.rs";

const CASES: [(&str, Version, Resume); 5] = [
    ("TLS 1.3 full", Version::Tls13, Resume::Never),
    ("TLS 1.3 PSK", Version::Tls13, Resume::Ticket),
    ("TLS 1.2 full", Version::Tls12, Resume::Never),
    ("TLS 1.2 ticket", Version::Tls12, Resume::Ticket),
    ("TLS 1.2 session ID", Version::Tls12, Resume::SessionId),
];

pub(crate) fn measure(stage: &Stage, options: &Options) -> io::Result<()> {
    if require("valgrind").is_none() {
        return Ok(());
    }
    println!("instructions of the worker's thread per connection, with a request");
    println!("case                   alone  in a fleet  difference  spread");
    for (name, version, resume) in CASES {
        let client = |address| Client::new(address, version, KeyType::EcdsaP256, resume);
        let mut costs = [Vec::new(), Vec::new()];
        for round in 0..options.rounds {
            eprintln!("context round {} of {}, {name}", round + 1, options.rounds);
            for at in there_and_back(round) {
                let setup = || if at == 0 { Ok(stage.alone()) } else { member(stage) };
                costs[at].push(per_connection(stage, options.counted, &setup, client)?);
            }
        }
        let spread = costs.each_ref().map(|costs| spread(costs)).into_iter().fold(0.0, f64::max);
        let [alone, in_fleet] = costs.map(|costs| median(&costs));
        println!("{name:18}  {alone:8.0}    {in_fleet:8.0}  {:10.0}  {spread:6.0}", in_fleet - alone);
    }
    println!("spread: of the rounds of one kind; a difference that is smaller is none that was seen");
    Ok(())
}

fn member(stage: &Stage) -> io::Result<Setup> {
    Ok(stage.member("context", free(0)?, &[free(1)?]))
}

fn spread(values: &[f64]) -> f64 {
    let (low, high) = (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
    high.zip(low).map_or(0.0, |(high, low)| high - low)
}

fn per_connection(
    stage: &Stage,
    counted: u32,
    setup: &dyn Fn() -> io::Result<Setup>,
    client: impl Fn(SocketAddr) -> Client,
) -> io::Result<f64> {
    let fewer = count(stage, setup()?, &client, WARM)?;
    let more = count(stage, setup()?, &client, WARM + counted)?;
    Ok((more - fewer) as f64 / f64::from(counted))
}

/// Instructions of the worker's thread.
fn count(
    stage: &Stage,
    setup: Setup,
    client: impl Fn(SocketAddr) -> Client,
    connections: u32,
) -> io::Result<i64> {
    let folder = stage.folder().join("callgrind");
    fs::create_dir_all(&folder)?;
    let out = format!("--callgrind-out-file={}/out", folder.display());
    let mut courser =
        setup.under(&["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", &out]).start();
    let client = client(courser.address());
    for _ in 0..connections {
        client.connect()?.get(ANSWER, true)?;
    }
    courser.stop();
    let counts = fs::read_dir(&folder)?.map(|file| worker(&fs::read_to_string(file?.path())?));
    let counts = counts.collect::<io::Result<Vec<_>>>()?;
    fs::remove_dir_all(&folder)?;
    counts.into_iter().flatten().next().ok_or(io::Error::other("callgrind has not seen the worker's thread"))
}

/// The total at the end of callgrind's file of a thread, if that is the worker's.
fn worker(text: &str) -> io::Result<Option<i64>> {
    let is_worker = text.contains(ONLY_WORKER);
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).filter(|_| is_worker);
    total.map(|total| total.trim().parse().map_err(io::Error::other)).transpose()
}
