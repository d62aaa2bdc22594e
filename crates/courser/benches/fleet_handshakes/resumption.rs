//! Processor time per resumed connection: session of this host, and of another.

use std::{
    io,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use courser_testkit::{
    KeyType,
    client::{Client, Resume, Version},
};

use crate::{
    median,
    options::Options,
    program::{Host, Stage, free},
    there_and_back,
};

const NAMES: [&str; 2] = ["same host", "other host"];

/// Connections at a time.
const CONCURRENCY: usize = 16;

/// Bytes of the answer.
const ANSWER: usize = 1024;

pub(crate) fn measure(stage: &Stage, options: &Options) -> io::Result<()> {
    let addresses = [free(0)?, free(1)?];
    let start = |name: &str, own, peer| {
        let setup = stage.member(name, own, &[peer]).args(["--no-tickets", "--tls-versions", "1.2"]);
        stage.start(name, setup)
    };
    let hosts = [start("a", addresses[0], addresses[1])?, start("b", addresses[1], addresses[0])?];
    for host in &hosts {
        host.hears(1)?;
    }
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..options.rounds {
        for at in there_and_back(round) {
            // The host that resumes is each of the two in turn.
            let resumes = round / 2 % 2;
            let makes = (resumes + at) % 2;
            let cost = sample(&hosts, makes, resumes, options.connections)?;
            eprintln!("resumption round {} of {}, {}: {cost:.1} us", round + 1, options.rounds, NAMES[at]);
            costs[at].push(cost);
        }
    }
    let [same, other] = costs.map(|costs| median(&costs));
    println!("TLS 1.2 resumed by session ID, with a request: us of processor time per connection");
    println!("same host  other host  ratio  wanted");
    println!("{same:9.1}  {other:10.1}  {:5.3}    1.05", other / same);
    Ok(())
}

/// Microseconds per connection.
fn sample(hosts: &[Host; 2], makes: usize, resumes: usize, connections: usize) -> io::Result<f64> {
    let new = |_| {
        Client::new(hosts[makes].courser.address(), Version::Tls12, KeyType::EcdsaP256, Resume::SessionId)
    };
    let clients: Vec<_> = (0..connections).map(new).collect();
    let held = [hosts[0].sessions()?, hosts[1].sessions()?];
    connect_all(&clients, hosts[makes].courser.address(), false)?;
    for (host, held) in hosts.iter().zip(held) {
        host.holds(held + connections as u64)?;
    }
    let host = &hosts[resumes].courser;
    let before = host.cpu_time();
    connect_all(&clients, host.address(), true)?;
    let used = host.cpu_time().saturating_sub(before);
    Ok(used.as_secs_f64() * 1e6 / connections as f64)
}

/// One connection of each client to `address`, all of which have to be resumed, or none.
fn connect_all(clients: &[Client], address: SocketAddr, resumed: bool) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(client) = clients.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut connection = client.at(address).connect()?;
            if connection.is_resumed() != resumed {
                return Err(io::Error::other(format!("resumed: {}, not as it should be", !resumed)));
            }
            connection.get(ANSWER, true)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..CONCURRENCY).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, io::Result<()>>| {
            thread.join().map_err(|_| io::Error::other("a client's thread panicked"))?
        };
        threads.into_iter().try_for_each(join)
    })
}
