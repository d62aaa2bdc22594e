//! The control law: when it is overload, and what share of whom is let in until it is over.
//!
//! Overload is when the head of the line has waited for longer than the target for 100 ms (CoDel's signal, RFC 8289), and the
//! line cannot be cleared within the clients' patience. A burst that can be cleared is served whole.
//!
//! Capacity is what was served while the line stood: so it has in it whatever else the processor does. A little more than that
//! is let in, so that there is a choice in the line. Demand is counted by those who got in, each for as many as the share
//! stands for that let it in; clients that were dropped and come again are not counted twice.

use std::net::IpAddr;
use std::time::Duration;

use crate::line::Class;
use crate::networks::{Networks, Prefixes};
use crate::shares::{Demand, LEAST_PART, Shares};

/// What the operator may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest wait of the line's head that is no sign of overload.
    pub target_wait: Duration,
    /// How long clients are taken to wait before they leave.
    pub patience: Duration,
    /// Which networks have a budget each.
    pub prefixes: Prefixes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            target_wait: Duration::from_millis(20),
            patience: Duration::from_secs(1),
            prefixes: Prefixes::default(),
        }
    }
}

/// What was seen since the last tick, or is now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Handshakes that were begun since.
    pub served: u32,
    /// Clients in the line whose handshake has not begun.
    pub waiting: usize,
    /// The longest wait of them.
    pub longest_wait: Duration,
    /// Mean time that a handshake takes by itself; zero before there was any.
    pub cost: Duration,
    /// SYNs that the kernel has dropped since.
    pub dropped: u32,
    /// The kernel's accept queue is full.
    pub is_queue_full: bool,
    /// Time since in which the worker had nothing to do.
    pub rested: Duration,
}

/// What has changed at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Overload begins.
    Began,
    /// It goes on with other [shares](Control::shares).
    Shares,
    /// It is over.
    Ended,
}

/// The control of one worker.
#[derive(Debug)]
pub struct Control {
    limits: Limits,
    last: Duration,
    was_waiting: bool,
    /// Time in which the line stood, and what was served in it; both fade.
    busy: f64,
    served: f64,
    over_target_for: Duration,
    overload: Option<Box<Overload>>,
    /// What is let in when there is none.
    all: Shares,
}

/// What is known while overload lasts.
#[derive(Debug)]
struct Overload {
    shares: Shares,
    /// The shares before these, which have let in whoever came before `changed`, since the beginning.
    before: Shares,
    changed: Duration,
    /// When a share has grown last, since the beginning.
    grown: Duration,
    rest: Rest,
    /// Clients of known sources and of others, each for as many as it stands for, and the seconds in which they came. All
    /// fade.
    known: f64,
    others: f64,
    networks: Networks,
    window: f64,
    /// Clients that were seen in them.
    seen: f64,
    /// Clients behind one that got in, beside those that its share stands for: a full queue takes some at random.
    hidden: f64,
    lasted: Duration,
    /// It is no burst.
    is_certain: bool,
    /// Nobody has waited for long since.
    calm_for: Duration,
    interval: Interval,
    /// Clients that come in a second, over the last tenth.
    coming: f64,
    /// Those since the last tick.
    came: u32,
}

/// What was seen since shares were last made.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    time: Duration,
    ticks: u32,
    full: u32,
    arrived: u32,
    dropped: u32,
}

/// Since it was last asked whether more could be served.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    time: Duration,
    rested: Duration,
    came: u32,
}

impl Control {
    /// A worker in peace.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            last: Duration::ZERO,
            was_waiting: false,
            busy: 0.0,
            served: 0.0,
            over_target_for: Duration::ZERO,
            overload: None,
            all: Shares::default(),
        }
    }

    /// Whether it is overload.
    pub fn is_overload(&self) -> bool {
        self.overload.is_some()
    }

    /// What is let in now.
    pub fn shares(&self) -> &Shares {
        self.overload.as_ref().map_or(&self.all, |overload| &overload.shares)
    }

    /// Handshakes a second that were served while clients waited; 0 before any has.
    pub fn capacity(&self) -> f64 {
        if self.busy > 0.0 { self.served / self.busy } else { 0.0 }
    }

    /// Takes the capacity that another process has measured; 0: none has.
    pub fn set_capacity(&mut self, capacity: f64) {
        if capacity > 0.0 {
            (self.busy, self.served) = (MEMORY, capacity * MEMORY);
        }
    }

    /// Whether one more client may be accepted in overload, where so many [young](Self::young) ones wait.
    pub fn accepts(&self, young: usize) -> bool {
        let most = self.capacity() * self.limits.target_wait.as_secs_f64() * MOST_YOUNG;
        !self.is_overload() || (young as f64) < most.max(LEAST_QUEUE)
    }

    /// The age at which a waiting client is not young any more.
    pub fn young(&self) -> Duration {
        self.limits.target_wait * 2
    }

    /// How long a client may wait in the line in overload. While more come than are served, the newest is next: who has been
    /// passed over for a while is hardly ever served, and those few would be the slowest by far. A burst that was taken for
    /// overload may wait as long as without it.
    pub fn longest_wait(&self) -> Duration {
        let patience = self.limits.patience;
        let Some(overload) = self.overload.as_ref().filter(|overload| overload.is_certain) else {
            return patience;
        };
        if overload.coming < self.capacity() {
            return patience;
        }
        let few = if self.capacity() > 0.0 { LEAST_LINE / self.capacity() } else { 0.0 };
        let few = Duration::try_from_secs_f64(few).unwrap_or(Duration::MAX);
        (self.limits.target_wait * LONGEST_WAIT).max(few).min(patience)
    }

    /// How many clients may wait in the kernel's queue in overload: those that are served within the target and a round trip.
    pub fn backlog(&self) -> u32 {
        let time = self.limits.target_wait.as_secs_f64() + ROUND_TRIP;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 16 to 65,535"
        )]
        let backlog = (self.capacity() * time).clamp(LEAST_QUEUE, 65_535.0) as u32;
        backlog
    }

    /// A client has come in. In overload it is counted; says how it is served, and the share of its like that is let in.
    /// `passed`: how long ago it has passed the filter, if there is one.
    pub fn arrived(
        &mut self,
        source: Option<IpAddr>,
        is_known: bool,
        passed: Option<Duration>,
    ) -> (Class, f64) {
        let Some(overload) = &mut self.overload else {
            return (if is_known { Class::Known } else { Class::Other }, 1.0);
        };
        overload.interval.arrived += 1;
        // Who is left of before says nothing of how many come now.
        overload.came += u32::from(passed.is_none_or(|waited| waited <= overload.lasted));
        let (class, share) = overload.shares.place(source, is_known);
        let stands_for = passed.map_or(1.0, |waited| overload.weight(source, is_known, waited));
        overload.count(source, is_known, stands_for);
        (class, share)
    }

    /// The handshake of a client has taken so many handshakes more than the mean, or less. In overload alone.
    pub fn charge(&mut self, source: Option<IpAddr>, is_known: bool, handshakes: f64) {
        if let Some(overload) = &mut self.overload {
            let stands_for = overload.weight(source, is_known, Duration::ZERO);
            overload.count(source, is_known, handshakes * stands_for);
        }
    }

    /// To be called every 10 ms or so while clients wait, and while overload lasts.
    pub fn tick(&mut self, now: Duration, seen: &Seen) -> Option<Change> {
        let time = now.saturating_sub(std::mem::replace(&mut self.last, now));
        self.measure(time, seen);
        // A process that was stopped for a while has seen nothing of it.
        let time = time.min(LONGEST_TICK);
        if self.overload.is_some() { self.go_on(time, seen) } else { self.begin(time, seen) }
    }

    fn measure(&mut self, time: Duration, seen: &Seen) {
        let stood = std::mem::replace(&mut self.was_waiting, seen.waiting > 0) && self.was_waiting;
        let was_busy = seen.rested.as_secs_f64() <= NO_REST * time.as_secs_f64();
        if stood && was_busy && time < LONGEST_MEASURED {
            let keep = MEMORY / (MEMORY + time.as_secs_f64());
            self.busy = self.busy * keep + time.as_secs_f64();
            self.served = self.served * keep + f64::from(seen.served);
        }
    }

    fn begin(&mut self, time: Duration, seen: &Seen) -> Option<Change> {
        if seen.longest_wait <= self.limits.target_wait {
            self.over_target_for = Duration::ZERO;
            return None;
        }
        self.over_target_for += time;
        if self.over_target_for < CERTAIN_AFTER || self.can_be_cleared(seen) {
            return None;
        }
        self.over_target_for = Duration::ZERO;
        self.overload = Some(Box::new(Overload::new(&self.limits.prefixes)));
        Some(Change::Began)
    }

    /// While a burst is being accepted, accepting takes most of the time, and what is served says little of what can be: the cost
    /// of a handshake says more.
    fn can_be_cleared(&self, seen: &Seen) -> bool {
        let of_handshakes = if seen.cost.is_zero() { 0.0 } else { HANDSHAKES / seen.cost.as_secs_f64() };
        seen.waiting as f64 <= self.capacity().max(of_handshakes) * self.limits.patience.as_secs_f64()
    }

    fn go_on(&mut self, time: Duration, seen: &Seen) -> Option<Change> {
        let (capacity, patience) = (self.capacity(), self.limits.patience);
        let can_be_cleared = self.can_be_cleared(seen);
        let overload = self.overload.as_mut()?;
        // What was measured of a burst while it was accepted may have been too little.
        let is_long = overload.lasted >= patience / 4 && !can_be_cleared;
        overload.is_certain |= is_long || overload.lasted >= patience;
        let is_calm = seen.longest_wait <= self.limits.target_wait / 2;
        overload.calm_for = if is_calm { overload.calm_for + time } else { Duration::ZERO };
        let all_for = if overload.shares.all() { overload.lasted - overload.changed } else { Duration::ZERO };
        if overload.calm_for.min(all_for) >= CALM {
            self.overload = None;
            return Some(Change::Ended);
        }
        overload.tick(time, seen, capacity).then_some(Change::Shares)
    }
}

impl Overload {
    fn new(prefixes: &Prefixes) -> Self {
        Self {
            shares: Shares::default(),
            before: Shares::default(),
            changed: Duration::ZERO,
            grown: Duration::ZERO,
            rest: Rest::default(),
            known: 0.0,
            others: 0.0,
            networks: Networks::new(prefixes),
            window: 0.0,
            seen: 0.0,
            hidden: 1.0,
            lasted: Duration::ZERO,
            is_certain: false,
            calm_for: Duration::ZERO,
            interval: Interval::default(),
            coming: 0.0,
            came: 0,
        }
    }

    /// Returns whether the shares have changed.
    fn tick(&mut self, time: Duration, seen: &Seen, capacity: f64) -> bool {
        let seconds = time.as_secs_f64();
        self.window += seconds;
        self.lasted += time;
        let came = std::mem::take(&mut self.came);
        self.seen += f64::from(came);
        self.coming += (f64::from(came) - self.coming * seconds) / (COMING + seconds);
        self.interval.time += time;
        self.interval.ticks += 1;
        self.interval.full += u32::from(seen.is_queue_full);
        self.interval.dropped = self.interval.dropped.saturating_add(seen.dropped);
        self.rest.time += time;
        self.rest.rested += seen.rested.min(time);
        self.rest.came += came;
        let idle = self.idle(capacity);
        if idle > 0.0 {
            // It could serve more by as much: the worst that a control can do is to let nobody in.
            self.scale(1.0 - idle.min(0.5));
            self.hidden = 1.0;
        }
        if self.interval.time < INTERVAL && idle == 0.0 {
            return false;
        }
        self.update_hidden();
        self.interval = Interval::default();
        let is_other = self.change(self.divide(capacity), idle > 0.0);
        self.fade();
        is_other
    }

    /// Takes these shares if they are worth it.
    fn change(&mut self, shares: Shares, has_rested: bool) -> bool {
        // Those who come again because a share has grown are no sign that it is too large.
        let has_grown = self.lasted < self.grown + COME_AGAIN;
        let shrinkage = if has_grown { 1.0 / MOST_GROWTH } else { 1.0 - self.noise() };
        // A worker that is busy with relays never rests: where nobody waits and all may come in, it has room for them.
        let is_over = shares.all() && self.calm_for >= CALM;
        let growth = if has_rested || is_over { 1.0 } else { MOST_GROWTH };
        if !differ(&self.shares, &shares, shrinkage..growth) {
            return false;
        }
        if self.shares.is_less(&shares) {
            self.grown = self.lasted;
        }
        if self.shares.all() {
            self.hidden = 1.0;
        }
        self.before = std::mem::replace(&mut self.shares, shares);
        self.changed = self.lasted;
        true
    }

    /// How far counts may be off by chance: two deviations of those that were seen (Poisson), and a tenth.
    fn noise(&self) -> f64 {
        0.1 + (2.0 / self.seen.max(1.0).sqrt()).min(0.4)
    }

    /// The part of the time in which there was nothing to do, once it can be said; none where it was hardly any.
    fn idle(&mut self, capacity: f64) -> f64 {
        let Rest { time, rested, came } = self.rest;
        let could_be_served = time.as_secs_f64() * capacity;
        let says_something = time >= INTERVAL && could_be_served >= MANY;
        if !says_something && (came > 0 || could_be_served < SOME) {
            return 0.0;
        }
        self.rest = Rest::default();
        let idle = rested.as_secs_f64() / time.as_secs_f64();
        if idle > LITTLE_REST && !self.shares.all() { idle } else { 0.0 }
    }

    fn divide(&self, capacity: f64) -> Shares {
        if self.window <= 0.0 || capacity <= 0.0 {
            return Shares::default();
        }
        let capacity = capacity * (INTAKE + 1.5 * self.noise());
        let mut networks = self.networks.above(LEAST_PART * capacity * self.window);
        networks.iter_mut().for_each(|(_, count)| *count /= self.window);
        // Who is in one of them was counted with its class as well.
        let of_networks = networks.iter().map(|(_, wanted)| wanted).sum::<f64>();
        let (known, others) = (self.known / self.window, self.others / self.window);
        let of_known = (of_networks - others).max(0.0);
        let demand =
            Demand { networks, known: (known - of_known).max(0.0), others: (others - of_networks).max(0.0) };
        Shares::divide(capacity, demand)
    }

    /// For how many a client stands that has passed the filter so long ago.
    fn weight(&self, source: Option<IpAddr>, is_known: bool, waited: Duration) -> f64 {
        let shares =
            if waited > self.lasted.saturating_sub(self.changed) { &self.before } else { &self.shares };
        let (_, share) = shares.place(source, is_known);
        self.hidden / share.max(LEAST_SHARE)
    }

    fn count(&mut self, source: Option<IpAddr>, is_known: bool, clients: f64) {
        if is_known {
            self.known += clients;
        } else {
            self.others += clients;
        }
        if let Some(source) = source {
            self.networks.add(source, clients);
        }
    }

    fn update_hidden(&mut self) {
        let Interval { ticks, full, arrived, dropped, .. } = self.interval;
        let before = self.hidden;
        if self.shares.all() && arrived > 0 {
            // No filter has dropped anyone: what was dropped did not fit into the queue.
            self.hidden = (f64::from(arrived.saturating_add(dropped)) / f64::from(arrived)).min(MOST_HIDDEN);
            self.scale(self.hidden / before);
        } else if self.lasted > self.changed + INTERVAL && full * 2 >= ticks.max(1) && full > 0 {
            self.hidden = (before * 1.25).min(MOST_HIDDEN);
            self.scale(self.hidden / before);
        } else {
            self.hidden = 1.0;
        }
    }

    fn scale(&mut self, factor: f64) {
        self.known *= factor;
        self.others *= factor;
        self.networks.scale(factor);
    }

    fn fade(&mut self) {
        self.known *= KEEP;
        self.others *= KEEP;
        self.window *= KEEP;
        self.seen *= KEEP;
        self.networks.fade(KEEP);
    }
}

/// Whether it is worth a new filter, which takes the kernel about a millisecond: a share is outside of so many times what it was.
fn differ(a: &Shares, b: &Shares, steady: std::ops::Range<f64>) -> bool {
    let far = |a: f64, b: f64| b < steady.start * a || b > steady.end * a;
    let prefixes = |shares: &Shares| shares.networks.iter().map(|(prefix, _)| *prefix).collect::<Vec<_>>();
    let (mut these, mut those) = (prefixes(a), prefixes(b));
    these.sort_unstable();
    those.sort_unstable();
    these != those
        || far(a.known, b.known)
        || far(a.others, b.others)
        || these.iter().any(|&prefix| far(a.of(prefix), b.of(prefix)))
}

/// For so long the head waits over the target before it is overload: an interval of CoDel's (RFC 8289, section 4.3).
const CERTAIN_AFTER: Duration = Duration::from_millis(100);

/// The part of its time that a worker has for handshakes at least, when all have been accepted: of 132 us for a connection with
/// ECDSA P-256, the handshake is 85.
const HANDSHAKES: f64 = 0.6;

/// Shares are made anew this often: a filter of the kernel's takes about a millisecond to make.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long those come again who were refused: their SYN is repeated after a second (tcp(7), `tcp_syn_retries`), and counts for
/// a while.
const COME_AGAIN: Duration = Duration::from_secs(2);

/// How much too small a share has to be to grow while the worker is busy. Each client that a larger share lets in has been
/// refused before, and is served a second late at best.
const MOST_GROWTH: f64 = 1.5;

/// The part of its time that a worker may rest: it is less than what swings cost.
const LITTLE_REST: f64 = 0.05;

/// A worker that rests for no more than this part of a tick was busy in it.
const NO_REST: f64 = 0.01;

/// As many handshakes as this can be made while it is seen how long the worker rests: in fewer, chance lets it rest.
const MANY: f64 = 64.0;

/// As many can be made while it is seen that nobody comes.
const SOME: f64 = 8.0;

/// Overload is over after so long without a wait and with all let in. As long without one is what lets all in, if counts say
/// that they are no more than can be served.
const CALM: Duration = Duration::from_secs(1);

/// Time that counts of a tick at most.
const LONGEST_TICK: Duration = Duration::from_millis(20);

/// What is served in a longer tick says nothing of capacity: the process was stopped.
const LONGEST_MEASURED: Duration = Duration::from_millis(500);

/// Seconds over which capacity is measured: long against a tick, short against a load that changes.
const MEMORY: f64 = 0.3;

/// What is left of counts after an interval: their memory is half a second.
const KEEP: f64 = 0.8;

/// How much is let in of what can be served, beside one and a half times what chance may make of it. Each client more than is
/// served costs an accept and a ClientHello, about a sixth of an ECDSA handshake; without any there is no choice in the line,
/// and the worker rests.
const INTAKE: f64 = 1.1;

/// Young clients in the line at most, in targets' worth of capacity. What is let in, 1.25 to 1.85 times what is served, makes 2.5
/// to 3.7 in the two targets in which they are young; the rest is for steps.
const MOST_YOUNG: f64 = 4.0;

/// Clients that may wait at least, however little is served: several times what comes in a tick.
const LEAST_QUEUE: f64 = 16.0;

/// Seconds over which it is counted how many come.
const COMING: f64 = 0.1;

/// How long a client may wait in the line, in targets.
const LONGEST_WAIT: u32 = 5;

/// Clients in the line that are served before the last of them has waited for too long: with fewer it would run dry.
const LEAST_LINE: f64 = 12.0;

/// Seconds from SYN-ACK to ACK that the queue has room for: the same limit bounds requests that are half open.
const ROUND_TRIP: f64 = 0.025;

/// A share is not taken for less: one client would stand for thousands.
const LEAST_SHARE: f64 = 0.001;

const MOST_HIDDEN: f64 = 64.0;
