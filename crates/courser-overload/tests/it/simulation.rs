//! A worker with a queue in front of it, in steps of a millisecond.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use courser_overload::{Change, Control, Limits, Line, Seen};

/// Microseconds of the worker's processor.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) handshake: u64,
    pub(crate) accept: u64,
    pub(crate) drop: u64,
    pub(crate) syn: f64,
}

/// RSA-4096 and ECDSA of the machine that the design was measured on.
pub(crate) const RSA: Costs = Costs { handshake: 2_000, accept: 20, drop: 15, syn: 3.5 };
/// On a slow processor a handshake takes four times as long.
pub(crate) const SLOW: Costs = Costs { handshake: 8_000, ..RSA };
pub(crate) const ECDSA: Costs = Costs { handshake: 132, accept: 20, drop: 15, syn: 1.0 };

impl Costs {
    /// Handshakes a second.
    pub(crate) fn capacity(self) -> f64 {
        1e6 / (self.handshake + self.accept) as f64
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Client {
    source: u32,
    port: u16,
    is_known: bool,
    /// First SYN, microseconds.
    since: u64,
    /// The SYN that got in.
    arrived: u64,
    leaves: u64,
    /// Its group, for the count.
    group: usize,
}

/// What became of a group's clients.
#[derive(Clone, Default)]
pub(crate) struct Group {
    pub(crate) came: u32,
    pub(crate) served: u32,
    /// Of those served, microseconds from the first SYN.
    pub(crate) waits: Vec<u64>,
}

pub(crate) struct Simulation {
    random: fastrand::Rng,
    seed: u64,
    costs: Costs,
    now: u64,
    /// Processor time that is left of earlier steps; negative: a handshake goes on.
    budget: f64,
    control: Control,
    line: Line<Client>,
    queue: VecDeque<Client>,
    queue_limit: usize,
    /// SYNs that are sent again, by their time.
    again: BinaryHeap<Reverse<(u64, usize)>>,
    clients: Vec<Client>,
    pub(crate) groups: Vec<Group>,
    arrivals: Vec<f64>,
    served: u32,
    dropped: u32,
    rested: f64,
    /// Established connections take all the time that handshakes leave.
    pub(crate) is_relaying: bool,
    /// Every change, with its time in milliseconds.
    pub(crate) changes: Vec<(u64, Change)>,
    /// Clients that were not served by our doing, since it was last set to zero.
    pub(crate) refused: u32,
    /// Served in each tenth of a second.
    pub(crate) tenths: Vec<u32>,
}

/// Clients that come: their number a second, from where, how long they stay.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) rate: f64,
    pub(crate) network: u32,
    pub(crate) hosts: u32,
    pub(crate) known: bool,
    pub(crate) patience_ms: u64,
}

impl Simulation {
    /// One for each seed: the same ones at each run, so that bounds can be tight. `COURSER_SEED` names another one, or asks for
    /// a random one.
    pub(crate) fn each(costs: Costs, groups: usize) -> impl Iterator<Item = Self> {
        let seeds = match std::env::var("COURSER_SEED").as_deref() {
            Ok("random") => vec![fastrand::u64(..)],
            Ok(seed) => vec![seed.parse().expect("COURSER_SEED is a number or `random`")],
            Err(_) => vec![1, 2, 3],
        };
        seeds.into_iter().map(move |seed| Self::new(seed, costs, groups))
    }

    fn new(seed: u64, costs: Costs, groups: usize) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            seed,
            costs,
            now: 0,
            budget: 0.0,
            control: Control::new(Limits::default()),
            line: Line::default(),
            queue: VecDeque::new(),
            queue_limit: 4096,
            again: BinaryHeap::new(),
            clients: Vec::new(),
            groups: vec![Group::default(); groups],
            arrivals: vec![0.0; groups],
            served: 0,
            dropped: 0,
            rested: 0.0,
            is_relaying: false,
            changes: Vec::new(),
            refused: 0,
            tenths: Vec::new(),
        }
    }

    /// One load for each group, for so long.
    pub(crate) fn run(&mut self, milliseconds: u64, loads: &[Load]) {
        for _ in 0..milliseconds {
            for (group, load) in loads.iter().enumerate() {
                self.arrivals[group] += load.rate / 1_000.0 * 2.0 * self.random.f64();
                while self.arrivals[group] >= 1.0 {
                    self.arrivals[group] -= 1.0;
                    self.come(group, load);
                }
            }
            self.step();
        }
    }

    pub(crate) fn burst(&mut self, count: u32, load: &Load) {
        (0..count).for_each(|_| self.come(0, load));
    }

    pub(crate) fn share_let_in(&self) -> f64 {
        self.control.shares().others
    }

    pub(crate) fn is_overload(&self) -> bool {
        self.control.is_overload()
    }

    /// Of the capacity, in the last so many tenths of a second.
    pub(crate) fn goodput(&self, tenths: usize) -> f64 {
        let served: u32 = self.tenths.iter().rev().take(tenths).sum();
        f64::from(served) * 10.0 / tenths as f64 / self.costs.capacity()
    }

    pub(crate) fn assert(&self, holds: bool, what: &str) {
        let control = self.control.shares();
        assert!(
            holds,
            "{what} (COURSER_SEED={}): {:?} at {} ms, {control:?}, changes {:?}",
            self.seed,
            self.groups,
            self.now / 1_000,
            self.changes.iter().filter(|(_, change)| *change != Change::Shares).collect::<Vec<_>>()
        );
    }

    fn come(&mut self, group: usize, load: &Load) {
        let client = Client {
            source: load.network + self.random.u32(0..load.hosts),
            port: self.random.u16(1_024..),
            is_known: load.known,
            since: self.now,
            arrived: 0,
            leaves: self.now + load.patience_ms * 1_000,
            group,
        };
        self.groups[group].came += 1;
        self.clients.push(client);
        self.syn(self.clients.len() - 1);
    }

    /// The kernel gets a SYN.
    fn syn(&mut self, index: usize) {
        let client = self.clients[index];
        self.budget -= self.costs.syn;
        if self.queue.len() > self.queue_limit || self.filter_drops(client) {
            self.dropped += 1;
            self.refused += 1;
            // Linux sends the first five again after a second each.
            let next = self.now + 1_000_000;
            if next < client.leaves {
                self.again.push(Reverse((next, index)));
            }
            return;
        }
        self.queue.push_back(Client { arrived: self.now, ..client });
    }

    /// The same pair of address and port meets the same answer, as in the kernel's program.
    fn filter_drops(&self, client: Client) -> bool {
        let shares = self.control.shares();
        let limited = shares.networks.iter().find(|((first, bits), _)| {
            let IpAddr::V4(first) = *first else { return false };
            (client.source ^ first.to_bits()).checked_shr(32 - u32::from(*bits)).unwrap_or(0) == 0
        });
        let share = match limited {
            Some((_, share)) => *share,
            None if client.is_known => shares.known,
            None => shares.others,
        };
        let mut hash = u64::from(client.source) << 16 | u64::from(client.port);
        hash = (hash ^ (hash >> 23)).wrapping_mul(0x2127_599b_f432_5c37);
        hash = (hash ^ (hash >> 29)).wrapping_mul(0x8803_55f2_1e6d_1965);
        (hash >> 40) as f64 / (1_u64 << 24) as f64 >= share
    }

    fn step(&mut self) {
        self.now += 1_000;
        while self.again.peek().is_some_and(|Reverse((time, _))| *time <= self.now) {
            let Some(Reverse((_, index))) = self.again.pop() else { break };
            self.syn(index);
        }
        self.budget += 1_000.0;
        while self.budget > 0.0 && self.work() {}
        if self.budget > 0.0 {
            self.rested += if self.is_relaying { 0.0 } else { self.budget };
            self.budget = 0.0;
        }
        if self.now.is_multiple_of(10_000) {
            self.tick();
        }
        self.tenths.resize(usize::try_from(self.now / 100_000).expect("a short run") + 1, 0);
    }

    /// As the worker: whoever waits is accepted, then a handshake is done. Returns whether there was any work.
    fn work(&mut self) -> bool {
        let now = Duration::from_micros(self.now);
        let mut has_worked = false;
        while self.budget > 0.0 && self.control.accepts(self.line.younger_than(now, self.control.young())) {
            let Some(client) = self.queue.pop_front() else { break };
            has_worked = true;
            self.budget -= self.costs.accept as f64;
            let waited = Duration::from_micros(self.now - client.arrived);
            let (class, _) =
                self.control.arrived(Some(address(client.source)), client.is_known, Some(waited));
            if client.leaves > self.now {
                self.line.push(client, class, now);
            }
        }
        let is_overload = self.control.is_overload();
        if is_overload {
            while self.line.pop_expired(now, self.control.longest_wait()).is_some() {
                self.budget -= self.costs.drop as f64;
                self.refused += 1;
            }
        }
        let Some(client) = self.line.pop(is_overload) else { return has_worked };
        if client.leaves <= self.now {
            self.budget -= self.costs.drop as f64;
            return true;
        }
        self.budget -= self.costs.handshake as f64;
        self.served += 1;
        let done = self.now + self.costs.handshake;
        if done <= client.leaves {
            let group = &mut self.groups[client.group];
            group.served += 1;
            group.waits.push(done - client.since);
            if let Some(tenth) = self.tenths.last_mut() {
                *tenth += 1;
            }
        }
        true
    }

    fn tick(&mut self) {
        let now = Duration::from_micros(self.now);
        let seen = Seen {
            served: std::mem::take(&mut self.served),
            waiting: self.line.waiting(),
            longest_wait: self.line.longest_wait(now),
            cost: Duration::from_micros(self.costs.handshake),
            dropped: std::mem::take(&mut self.dropped),
            is_queue_full: self.queue.len() >= self.queue_limit,
            rested: Duration::from_secs_f64(std::mem::take(&mut self.rested) / 1e6),
        };
        let change = self.control.tick(now, &seen);
        self.changes.extend(change.map(|change| (self.now / 1_000, change)));
        self.queue_limit = if self.control.is_overload() { self.control.backlog() as usize } else { 4096 };
    }
}

fn address(source: u32) -> IpAddr {
    Ipv4Addr::from_bits(source).into()
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, p90, p99] = [50, 10, 1].map(|percent| self.wait_of_all_but(percent));
        write!(f, "{} of {} served, half in {half:?}, p90 {p90:?}, p99 {p99:?}", self.served, self.came)
    }
}

impl Group {
    pub(crate) fn part_served(&self) -> f64 {
        f64::from(self.served) / f64::from(self.came.max(1))
    }

    pub(crate) fn mean_wait(&self) -> Duration {
        Duration::from_micros(self.waits.iter().sum::<u64>() / u64::from(self.served.max(1)))
    }

    /// Of those served.
    pub(crate) fn part_slower_than(&self, wait: Duration) -> f64 {
        let slower = self.waits.iter().filter(|waited| u128::from(**waited) > wait.as_micros()).count();
        slower as f64 / f64::from(self.served.max(1))
    }

    /// The wait that all but so many of a hundred of those served are under.
    pub(crate) fn wait_of_all_but(&self, percent: usize) -> Duration {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let index = (waits.len() * (100 - percent)).div_ceil(100).saturating_sub(1);
        Duration::from_micros(waits.get(index).copied().unwrap_or_default())
    }
}

/// Of the whole of 10/8.
pub(crate) const ANYWHERE: Load =
    Load { rate: 0.0, network: 0x0a00_0000, hosts: 1 << 24, known: false, patience_ms: 1_000 };
