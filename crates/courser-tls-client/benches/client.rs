//! Processor time of the client's end alone, in memory: `cargo bench -p courser-tls-client --bench client [PART OF A NAME]`.
//!
//! Connections go through their turns in batches, so that a clock is read once per batch and the server's turns are not
//! on it. A round is one batch; the median over the rounds is printed, with the quartiles. Under callgrind
//! (`--toggle-collect='*client_turns*'`) the same program counts the client's instructions.

#[path = "../tests/it/server.rs"]
mod server;

use std::hint::black_box;
use std::time::Duration;

use courser_tls::SessionOffer;
use courser_tls_client::{
    ClientConnection, ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, Resume, ServerName, Trust,
};
use nix::time::{ClockId, clock_gettime};
use server::{Pair, Server};

/// That of courser-bench.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 50;

struct Case {
    name: &'static str,
    engine: Engine,
    version: u16,
    group: u16,
    resume: Resume,
}

const fn case(name: &'static str, engine: Engine, version: u16, group: u16, resume: Resume) -> Case {
    Case { name, engine, version, group, resume }
}

#[rustfmt::skip]
const CASES: [Case; 16] = [
    case("lean 1.3 full P-256", Engine::Lean, 0x0304, 0x0017, Resume::Never),
    case("lean 1.3 full X25519", Engine::Lean, 0x0304, 0x001d, Resume::Never),
    case("lean 1.3 full P-384", Engine::Lean, 0x0304, 0x0018, Resume::Never),
    case("lean 1.3 full X25519MLKEM768", Engine::Lean, 0x0304, 0x11ec, Resume::Never),
    case("lean 1.3 PSK P-256", Engine::Lean, 0x0304, 0x0017, Resume::Ticket),
    case("lean 1.2 full P-256", Engine::Lean, 0x0303, 0x0017, Resume::Never),
    case("lean 1.2 ticket", Engine::Lean, 0x0303, 0x0017, Resume::Ticket),
    case("lean 1.2 session ID", Engine::Lean, 0x0303, 0x0017, Resume::SessionId),
    case("real 1.3 full P-256", Engine::Real, 0x0304, 0x0017, Resume::Never),
    case("real 1.3 full X25519", Engine::Real, 0x0304, 0x001d, Resume::Never),
    case("real 1.3 full P-384", Engine::Real, 0x0304, 0x0018, Resume::Never),
    case("real 1.3 full X25519MLKEM768", Engine::Real, 0x0304, 0x11ec, Resume::Never),
    case("real 1.3 PSK P-256", Engine::Real, 0x0304, 0x0017, Resume::Ticket),
    case("real 1.2 full P-256", Engine::Real, 0x0303, 0x0017, Resume::Never),
    case("real 1.2 ticket", Engine::Real, 0x0303, 0x0017, Resume::Ticket),
    case("real 1.2 session ID", Engine::Real, 0x0303, 0x0017, Resume::SessionId),
];

fn main() {
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    println!(
        "{:32} {:>8} {:>17}   of {rounds} rounds of {BATCH}",
        "client, us per connection", "median", "quartiles"
    );
    for case in CASES.iter().filter(|case| case.name.contains(&part)) {
        let mut rounds = case.rounds(rounds);
        rounds.sort_unstable();
        let at = |quarter: usize| micros(rounds[rounds.len() * quarter / 4]);
        println!("{:32} {:8.2} {:8.2} {:8.2}", case.name, at(2), at(1), at(3));
    }
}

fn micros(batch: Duration) -> f64 {
    batch.as_secs_f64() * 1e6 / BATCH as f64
}

/// Processor time of this thread: others on the machine are not on it.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it is a clock");
    now.into()
}

impl Case {
    fn rounds(&self, rounds: usize) -> Vec<Duration> {
        let spec = match self.resume {
            Resume::SessionId => SessionOffer::SessionId,
            _ => SessionOffer::Tickets,
        };
        let server = Server::new(self.version, self.group, spec);
        let config = ClientTlsConfig::new(self.engine, &self.spec()).expect("the engine can do it");
        let mut sessions: Vec<_> = (0..BATCH).map(|_| ClientSessions::default()).collect();
        (0..rounds + 10).map(|_| self.round(&config, &server, &mut sessions)).skip(10).collect()
    }

    fn spec(&self) -> ClientTlsSpec {
        ClientTlsSpec {
            versions: vec![self.version],
            suites: vec![if self.version == 0x0304 { 0x1301 } else { 0xc02b }],
            groups: vec![self.group],
            resume: self.resume,
            trust: Trust::Any,
            ..ClientTlsSpec::default()
        }
    }

    /// One batch of connections; what the client took.
    fn round(
        &self,
        config: &ClientTlsConfig,
        server: &Server,
        sessions: &mut Vec<ClientSessions>,
    ) -> Duration {
        let name = ServerName::parse("server.example").expect("a name");
        let servers: Vec<_> = (0..BATCH).map(|_| server.connection()).collect();
        let start = cpu_time();
        let clients = begin(config, &name, sessions);
        let mut spent = cpu_time() - start;
        let mut pairs: Vec<_> =
            clients.into_iter().zip(servers).map(|(client, server)| Pair::new(client, server)).collect();
        loop {
            let start = cpu_time();
            client_turns(&mut pairs);
            spent += cpu_time() - start;
            if pairs[0].to_server.is_empty() {
                break;
            }
            pairs.iter_mut().for_each(|pair| pair.server_turn().expect("a good client"));
        }
        for pair in &pairs {
            let info = pair.client.handshake_info().expect("the handshake is done");
            assert_eq!(info.resumed, info.offered.is_some());
            assert!((info.version, info.group.unwrap_or(self.group)) == (self.version, self.group));
        }
        let start = cpu_time();
        end(pairs, sessions);
        spent + cpu_time() - start
    }
}

#[inline(never)]
fn begin(
    config: &ClientTlsConfig,
    name: &ServerName,
    sessions: &mut Vec<ClientSessions>,
) -> Vec<ClientConnection> {
    let client = |sessions| ClientConnection::new(config, name, sessions).expect("the config fit");
    sessions.drain(..).map(client).collect()
}

#[inline(never)]
fn client_turns(pairs: &mut [Pair]) {
    pairs.iter_mut().for_each(|pair| pair.client_turn().expect("a good server"));
}

/// The end of the server is freed here too, and on the clock: little, and on the safe side.
#[inline(never)]
fn end(pairs: Vec<Pair>, sessions: &mut Vec<ClientSessions>) {
    sessions.extend(pairs.into_iter().map(|pair| black_box(pair.client.into_sessions())));
}
