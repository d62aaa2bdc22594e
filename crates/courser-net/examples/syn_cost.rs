//! What a SYN costs: `syn_cost [ROUNDS]`, on two cores, as root.
//!
//! Both ends: processor time of a thread that sends SYNs over the loopback interface and handles them as well, less that of
//! sockets that send none. It is that thread's own, so that other work on the machine matters little.
//!
//! The receiving core: another core handles the SYNs (Receive Packet Steering, which is set back at the end) and counts in a
//! loop meanwhile; what it counts less is what they have taken, interrupts between cores included. That needs a quiet machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use courser_net::{Address, KnownSources, ListenSocket, SynFilter, SynShares, cpu};
use rustix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, Socket, Type};

const STEERING: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";
const TIME: Duration = Duration::from_millis(500);
const SENDER: usize = 0;
const RECEIVER: usize = 1;

static COUNTED: AtomicU64 = AtomicU64::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let rounds = std::env::args().nth(1).map_or(5, |text| text.parse().expect("a whole number"));
    cpu::pin(SENDER).expect("a first core");
    let cases = cases();
    print("both ends", &cases, rounds, |case| {
        let (with, count) = cpu_time(|| case.send(Do::Connect));
        let (without, sockets) = cpu_time(|| case.send(Do::Nothing));
        with / f64::from(count) - without / f64::from(sockets)
    });
    let before = fs::read_to_string(STEERING).expect("Linux with RPS");
    fs::write(STEERING, format!("{:x}", 1 << RECEIVER)).expect("root may steer packets");
    let counting = thread::spawn(count);
    print("the receiving core", &cases, rounds, |case| {
        let (idle, ()) = rate(|| thread::sleep(TIME));
        let start = Instant::now();
        let (busy, sent) = rate(|| case.send(Do::Connect));
        (1.0 - busy / idle) * start.elapsed().as_secs_f64() / f64::from(sent)
    });
    IS_OVER.store(true, Ordering::Relaxed);
    counting.join().expect("it only counts");
    fs::write(STEERING, before.trim()).expect("as above");
}

/// Measures all cases in turn, in seconds, and prints microseconds.
fn print(what: &str, cases: &[Case], rounds: usize, measure: impl Fn(&Case) -> f64) {
    let mut costs = vec![Vec::new(); cases.len()];
    for _ in 0..rounds {
        cases.iter().zip(&mut costs).for_each(|(case, costs)| costs.push(measure(case) * 1e6));
    }
    println!("{what}, us for a SYN: median (least to most) of {rounds}");
    for (case, costs) in cases.iter().zip(&mut costs) {
        costs.sort_by(f64::total_cmp);
        let (least, most) = (costs[0], costs[costs.len() - 1]);
        println!("  {:44} {:.1} ({least:.1} to {most:.1})", case.name, costs[costs.len() / 2]);
    }
}

/// Processor time of this thread for `work`, seconds, and what it gives.
fn cpu_time<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("it is not negative");
    let start = now();
    let result = work();
    ((now() - start).as_secs_f64(), result)
}

/// Counts until it is over.
fn count() {
    cpu::pin(RECEIVER).expect("a second core");
    let _ = rustix::process::nice(-20);
    while !IS_OVER.load(Ordering::Relaxed) {
        COUNTED.store(COUNTED.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// What is counted a second while `work` is done.
fn rate<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (start, from) = (Instant::now(), COUNTED.load(Ordering::Relaxed));
    let result = work();
    ((COUNTED.load(Ordering::Relaxed) - from) as f64 / start.elapsed().as_secs_f64(), result)
}

#[derive(Clone, Copy, PartialEq)]
enum Do {
    Connect,
    Nothing,
}

struct Case {
    name: &'static str,
    /// Where the SYNs go; `None`: to a port where nobody listens.
    socket: Option<ListenSocket>,
    address: SocketAddr,
}

fn cases() -> Vec<Case> {
    let known = KnownSources::new(1);
    (1..=1_000).for_each(|number| known.insert(source(1 << 20 | number)));
    let shares = SynShares { salt: 1, networks: &[], known: None, others: 0.9999 };
    let with_known = SynShares { known: Some((&known, 0.0)), others: 1.0, ..shares };
    let case = |name, backlog, filter: Option<SynFilter>| {
        let localhost = Address::Ip((Ipv4Addr::LOCALHOST, 0).into());
        let socket = ListenSocket::open(&localhost, false, backlog, 1).expect("a free port").remove(0);
        socket.set_syn_filter(filter.as_ref()).expect("a filter that the kernel takes");
        let Address::Ip(address) = *socket.address() else { unreachable!("it listens on TCP") };
        Case { name, socket: Some(socket), address }
    };
    let full = case("dropped: the accept queue is full", 1, None);
    // They stay in the queue when they are closed.
    (1..=4).for_each(|number| drop(bind(source(number)).connect(&full.address.into())));
    vec![
        case("dropped by the filter that drops all", 4096, Some(SynFilter::drop_all())),
        case("dropped by a share", 4096, Some(SynFilter::drop_shares(&shares))),
        case("dropped as no one of 1,000 known sources", 4096, Some(SynFilter::drop_shares(&with_known))),
        full,
        Case { name: "answered with RST: nobody listens", socket: None, address: ([127, 0, 0, 1], 9).into() },
    ]
}

impl Case {
    /// Sends SYNs for half a second, or makes sockets for them alone. Returns how many.
    fn send(&self, what: Do) -> u32 {
        let (start, mut sent) = (Instant::now(), 0);
        while start.elapsed() < TIME {
            for _ in 0..50 {
                sent += 1;
                let socket = bind(source(sent % 60_000));
                if what == Do::Connect {
                    let _begun = socket.connect(&self.address.into());
                }
            }
        }
        let _open = &self.socket;
        sent
    }
}

fn bind(source: IpAddr) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a descriptor");
    socket.bind(&SocketAddr::new(source, 0).into()).expect("an address of 127/8");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

fn source(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x7f01_0000 + number).into()
}
