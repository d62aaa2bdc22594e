//! The fleet's thread: waits for datagrams, updates, requests and timers, and drives the member.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, TrySendError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use courser_fleet::{
    Destination, Event, Member, MemberId, Now, Passed, PeerChange, Refusal, Transmit, UnixMillis,
};
use courser_net::datagram::{Batch, Outgoing};
use courser_net::{DatagramSocket, Datagrams};
use courser_telemetry::Events;
use courser_telemetry::event::{Level, log};
use tokio::time::sleep_until;

use super::handle::{CheckAnswerer, Inbox, Request, Update};
use super::status::{FleetStatus, UnsentCounts};
use super::waiting::Waiting;

/// Items of one kind that are handled before those of the others.
const AT_ONCE: usize = 128;

/// Pause after updates: a thread that is woken for each session costs more than sending it.
/// As long as a session waits for others that share its datagram.
const REST: Duration = Duration::from_millis(2);

/// Remembered at most: more come from someone who invents addresses, and the events limit those.
const MAX_LOGGED_REFUSALS: usize = 256;

/// How long nothing is received after a failure, so that one that lasts does not take a core.
const PENALTY: Duration = Duration::from_millis(10);

pub(super) struct Driver {
    datagrams: Datagrams,
    member: Member,
    inbox: Inbox,
    clock: Clock,
    /// What does not change, and the counts.
    status: DriverStatus,
    waiting: Waiting,
    watchers: Vec<SyncSender<Passed>>,
    events: Events,
    refusal_log: RefusalLog,
    checks: Checks,
    /// The last field, and so dropped after the socket is closed.
    stopped: Option<SyncSender<()>>,
}

/// What a status has beside that of the member.
pub(super) struct DriverStatus {
    address: SocketAddr,
    /// Where its messages come from.
    source: SocketAddr,
    peers: Vec<SocketAddr>,
    pub(super) max_payload: usize,
    receive_buffer: usize,
    unsent: UnsentCounts,
    receive_errors: u64,
    dropped: Arc<AtomicU64>,
}

impl DriverStatus {
    pub(super) fn new(
        socket: &DatagramSocket,
        mut peers: Vec<SocketAddr>,
        dropped: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let (address, source) = (socket.address(), socket.source()?);
        if address.ip().is_multicast() {
            peers = vec![address];
        }
        peers.retain(|peer| *peer != source);
        Ok(Self {
            address,
            source,
            max_payload: socket.payload_limit(&peers),
            peers,
            receive_buffer: socket.receive_buffer()?,
            unsent: UnsentCounts::default(),
            receive_errors: 0,
            dropped,
        })
    }
}

impl Driver {
    pub(super) fn new(
        datagrams: Datagrams,
        member: Member,
        inbox: Inbox,
        clock: Clock,
        status: DriverStatus,
    ) -> Self {
        Self {
            datagrams,
            member,
            inbox,
            clock,
            status,
            waiting: Waiting::default(),
            watchers: Vec::new(),
            events: Events::default(),
            refusal_log: RefusalLog::default(),
            checks: Checks::default(),
            stopped: None,
        }
    }

    /// Runs until it is stopped, or the last handle is dropped.
    pub(super) async fn run(mut self) {
        let (mut batch, mut updates, mut requests) = (Batch::default(), Vec::new(), Vec::new());
        let mut rests_until = Instant::now();
        loop {
            self.deliver();
            let is_resting = Instant::now() < rests_until;
            let due = self.clock.moment(self.member.next_tick());
            let due = if is_resting { due.min(rests_until) } else { due };
            tokio::select! {
                received = self.datagrams.receive(&mut batch) => self.received(received, &mut batch).await,
                count = self.inbox.requests.recv_many(&mut requests, AT_ONCE) => match count {
                    0 => return,
                    _ => requests.drain(..).for_each(|request| self.handle_request(request)),
                },
                count = self.inbox.updates.recv_many(&mut updates, AT_ONCE), if !is_resting => match count {
                    0 => return,
                    AT_ONCE => self.apply_updates(&mut updates),
                    _ => {
                        self.apply_updates(&mut updates);
                        rests_until = Instant::now() + REST;
                    }
                },
                () = sleep_until(due.into()) => {}
            }
            if self.stopped.is_some() {
                return;
            }
            self.tick();
        }
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        if now.mono >= self.member.next_tick() {
            self.member.tick(now);
        }
    }

    async fn received(&mut self, received: io::Result<()>, batch: &mut Batch) {
        if let Err(error) = received {
            self.status.receive_errors += 1;
            self.events.warn("fleet_receive", format_args!("fleet: cannot receive: {error}"));
            return tokio::time::sleep(PENALTY).await;
        }
        let now = self.clock.now();
        for (from, datagram) in batch.datagrams() {
            if let Some(refusal) = self.member.receive(from, datagram, now) {
                self.refusal_log.log(refusal, from);
            }
        }
    }

    fn apply_updates(&mut self, updates: &mut Vec<Update>) {
        let now = self.clock.now();
        for update in updates.drain(..) {
            match update {
                Update::New(session) => self.member.push(&session, now),
                Update::Deleted(id) => self.member.delete(&id, now),
                Update::Removed(id) => self.member.remove(&id, now),
            }
        }
    }

    fn handle_request(&mut self, request: Request) {
        let now = self.clock.now();
        match request {
            Request::Pull(id, waiter) => {
                self.waiting.add(id, waiter);
                self.member.pull(&id, now);
            }
            Request::Peers { mut peers, allowed } => {
                peers.retain(|peer| *peer != self.status.source);
                self.status.peers = peers;
                self.member.set_allowed(allowed);
            }
            // The requester may have given up.
            Request::Status(answer) => drop(answer.try_send(self.status(now))),
            Request::Stop(stopped) => self.stopped = Some(stopped),
            Request::SendCheck(check, waiter) => {
                self.checks.announced.insert(check.digest, waiter);
                self.member.send_check(&check, now);
            }
            Request::Withdraw(check) => {
                self.checks.announced.remove(&check.digest);
                self.member.send_check(&check, now);
            }
            Request::AnswerChecks(answerer) => self.checks.answerer = Some(answerer),
            Request::Watch(watcher) => {
                self.watchers.push(watcher);
                self.member.watch(true);
            }
        }
    }

    /// Handles events and sends datagrams until the member has no more.
    fn deliver(&mut self) {
        loop {
            while let Some(event) = self.member.poll_event() {
                self.handle_event(event);
            }
            let transmits: Vec<_> =
                std::iter::from_fn(|| self.member.poll_transmit()).take(AT_ONCE).collect();
            if transmits.is_empty() {
                return;
            }
            self.send(&transmits);
        }
    }

    fn send(&mut self, transmits: &[Transmit]) {
        let messages: Vec<_> =
            transmits.iter().flat_map(|transmit| addressed(transmit, &self.status.peers)).collect();
        for unsent in self.datagrams.send(&messages) {
            self.status.unsent.count(&unsent);
            self.events.warn("fleet_send", format_args!("fleet: {unsent}"));
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Answered { id, found } => self.waiting.answer(&id, found),
            Event::Peer { label, address, change } => self.log_peer_change(&label, address, change),
            Event::DomainCheck { check, from } => {
                let is_answered = self.checks.answerer.as_ref().is_some_and(|answer| answer(&check));
                if is_answered {
                    self.member.acknowledge(&check.digest, from, self.clock.now());
                }
            }
            Event::Acknowledged { digest, from } => self.checks.acknowledged(&digest, from),
            Event::Passed(passed) => self.notify_watchers(&passed),
        }
    }

    fn log_peer_change(&self, label: &str, address: SocketAddr, change: PeerChange) {
        let message = format_args!("fleet: {label} ({address}) {change}");
        match change {
            PeerChange::Silent | PeerChange::ClockOff { .. } => self.events.warn("fleet_peer", message),
            _ => log(Level::Info, message),
        }
    }

    fn notify_watchers(&mut self, passed: &Passed) {
        let is_there = |watcher: &SyncSender<Passed>| {
            !matches!(watcher.try_send(passed.clone()), Err(TrySendError::Disconnected(_)))
        };
        self.watchers.retain(is_there);
        if self.watchers.is_empty() {
            self.member.watch(false);
        }
    }

    fn status(&self, now: Now) -> FleetStatus {
        let status = &self.status;
        FleetStatus {
            member: self.member.status(now),
            address: status.address,
            peers: status.peers.clone(),
            max_payload: status.max_payload,
            receive_buffer: status.receive_buffer,
            unsent: status.unsent,
            receive_errors: status.receive_errors,
            dropped: status.dropped.load(Ordering::Relaxed),
            waiting: self.waiting.len(),
            age: self.clock.0.elapsed(),
        }
    }
}

/// Checks of certificate authorities that hosts answer for each other.
#[derive(Default)]
struct Checks {
    /// Of this host, by their digests: who waits for the peers. As many as it orders at a time.
    announced: HashMap<[u8; 32], Sender<MemberId>>,
    answerer: Option<CheckAnswerer>,
}

impl Checks {
    fn acknowledged(&mut self, digest: &[u8; 32], from: MemberId) {
        if let Some(waiter) = self.announced.get(digest)
            && waiter.send(from).is_err()
        {
            // It has lost patience, or has all.
            self.announced.remove(digest);
        }
    }
}

/// Logs hosts that do not fit together: once for each address and reason, not with each of their messages.
#[derive(Default)]
struct RefusalLog {
    logged: HashSet<(Refusal, IpAddr)>,
    events: Events,
}

impl RefusalLog {
    fn log(&mut self, refusal: Refusal, from: SocketAddr) {
        if !refusal.may_be_a_mistake() || self.logged.contains(&(refusal, from.ip())) {
            return;
        }
        if self.logged.len() >= MAX_LOGGED_REFUSALS {
            self.logged.clear();
        }
        self.logged.insert((refusal, from.ip()));
        self.events.warn("fleet_refused", format_args!("fleet: a message from {from} is refused: {refusal}"));
    }
}

fn addressed<'a>(transmit: &'a Transmit, all: &'a [SocketAddr]) -> impl Iterator<Item = Outgoing<'a>> {
    let one = match &transmit.to {
        Destination::All => all,
        Destination::One(address) => std::slice::from_ref(address),
    };
    one.iter().map(|&to| Outgoing { to, bytes: &transmit.bytes })
}

/// The clock that the member is driven by.
pub(super) struct Clock(Instant);

impl Clock {
    /// Begins at zero.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { wall: UnixMillis(millis(wall)), mono: millis(self.0.elapsed()) }
    }

    /// When [`Now::mono`] will be `mono`; a day from now if that is later.
    fn moment(&self, mono: u64) -> Instant {
        const DAY_MS: u64 = 24 * 3600 * 1000;
        self.0 + Duration::from_millis(mono.min(self.now().mono.saturating_add(DAY_MS)))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
