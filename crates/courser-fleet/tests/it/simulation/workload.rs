//! Clients: they make sessions on one host, and return to another.

use courser_session::{
    CLOCK_SKEW, Lifespan, PolicyHash, Provenance, ResumptionFailure, SessionId, SharedSession, State,
    UnixSeconds,
};

use super::ledger::{Check, Violation, ensure};
use super::network::index;
use super::sabotage::Sabotage;
use super::world::{Event, World};
use crate::{Random, policy};

/// What clients do, and what is looked at because of it.
pub(super) enum Work {
    /// A client makes a session on some host, and another one gets a ticket; then the next ones come.
    Make,
    /// The client returns.
    Return { session: usize },
    /// A client returns with a ticket.
    ReturnTicket { ticket: Box<Ticket> },
    /// A handshake with the session ended badly.
    Delete { session: usize },
    /// By now every host has it.
    Reach { session: usize, calm_since: u64 },
    /// By now the host has answered for it.
    Answer { host: usize, id: SessionId, asked: u64 },
}

pub(super) struct Ticket {
    bytes: Vec<u8>,
    policy: PolicyHash,
    lifespan: Lifespan,
    maker_is_far_off: bool,
}

/// How busy clients are. Shares are in hundredths.
pub(super) struct Workload {
    /// Between two new sessions, in milliseconds; none: the test makes them itself.
    pub(super) every_ms: Option<u64>,
    pub(super) returns: u64,
    pub(super) wrong_policy: u64,
    pub(super) pulls: u64,
    pub(super) deletes: u64,
    /// Sessions that do not fit into a datagram.
    pub(super) large: u64,
}

impl Workload {
    pub(super) const NONE: Self =
        Self { every_ms: None, returns: 0, wrong_policy: 0, pulls: 0, deletes: 0, large: 0 };
    pub(super) const LIVELY: Self =
        Self { every_ms: Some(70), returns: 3, wrong_policy: 10, pulls: 70, deletes: 6, large: 2 };
}

impl World {
    pub(super) fn work(&mut self, work: Work) -> Check {
        match work {
            Work::Make => self.make_one(),
            Work::Return { session } => self.come_back(session),
            Work::ReturnTicket { ticket } => self.come_back_with(&ticket),
            Work::Delete { session } => self.delete(session),
            Work::Reach { session, calm_since } => self.check_reached(session, calm_since),
            Work::Answer { host, id, asked } => {
                let host = &self.hosts[host];
                ensure(host.wants.get(&id) != Some(&asked), || {
                    format!("{} has not answered for a session", host.name)
                })
            }
        }
    }

    fn make_one(&mut self) -> Check {
        if let Some(every_ms) = self.workload.every_ms {
            let pause = 1 + self.random.below(2 * every_ms);
            self.after(pause, Event::Work(Work::Make));
        }
        let Some(maker) = self.some_host_up() else { return Ok(()) };
        let session = self.make(maker)?;
        self.make_ticket(maker);
        let lifetime = u64::try_from(self.hosts[maker].settings.lifetime.as_millis()).expect("a short time");
        for _ in 0..self.workload.returns {
            let later = 20 + self.random.below(lifetime + lifetime / 8);
            self.after(later, Event::Work(Work::Return { session }));
        }
        if self.random.below(100) < self.workload.deletes {
            let later = 20 + self.random.below(lifetime / 2);
            self.after(later, Event::Work(Work::Delete { session }));
        }
        Ok(())
    }

    /// A full handshake on this host.
    pub(super) fn make(&mut self, maker: usize) -> Result<usize, Violation> {
        let session = self.new_session(maker);
        let (host, time) = (&mut self.hosts[maker], self.time);
        let SharedSession { id, policy, lifespan, state } = session.clone();
        host.cache.put(&id, policy, state, lifespan, Provenance::Local, host.wall(time));
        let number = self.ledger.note(&session, host);
        self.tally.made += 1;
        let pushed = self.sabotage.pushed(&session, maker);
        let now = host.now(time);
        if let Some(member) = &mut host.member {
            member.push(&pushed, now);
        }
        if let Some(calm_since) = self.calm_since
            && session.encoded_len() < FITS
        {
            self.after(REACH_MS, Event::Work(Work::Reach { session: number, calm_since }));
        }
        self.settle(maker)?;
        Ok(number)
    }

    fn new_session(&mut self, maker: usize) -> SharedSession {
        let host = &self.hosts[maker];
        let len = if self.random.below(100) < self.workload.large {
            3000
        } else {
            40 + index(&mut self.random, 260)
        };
        let state: Vec<u8> = (0..len).map(|_| byte(&mut self.random)).collect();
        let id: [u8; 32] = std::array::from_fn(|_| byte(&mut self.random));
        SharedSession {
            id: SessionId::try_from(&id[..]).expect("32 bytes are an ID"),
            policy: policy(HOSTS[index(&mut self.random, HOSTS.len())]),
            lifespan: Lifespan::new(host.wall(self.time), host.settings.lifetime),
            state: State::from(state),
        }
    }

    fn make_ticket(&mut self, maker: usize) {
        let host = &self.hosts[maker];
        let now = host.wall(self.time);
        let (policy, lifespan) = (policy("a"), Lifespan::new(now, host.settings.lifetime));
        let nonce = std::array::from_fn(|_| byte(&mut self.random));
        let sealed = host.ticketer.seal(&policy, lifespan, TICKET_STATE, nonce, now);
        let bytes = sealed.expect("a session that lives has a ticket");
        let ticket = Ticket { bytes, policy, lifespan, maker_is_far_off: host.is_far_off };
        let later = 20 + self.random.below(lifespan.remaining(now).as_secs() * 1000);
        self.after(later, Event::Work(Work::ReturnTicket { ticket: Box::new(ticket) }));
    }

    /// A client returns with a ticket to any host: that opens it whatever happened between hosts.
    fn come_back_with(&mut self, ticket: &Ticket) -> Check {
        let Some(number) = self.some_host_up() else { return Ok(()) };
        let host = &self.hosts[number];
        let now = host.wall(self.time);
        if host.is_far_off || ticket.maker_is_far_off || now >= ticket.lifespan.expires {
            return Ok(());
        }
        self.tally.tickets += 1;
        let opened = host.ticketer.open(&ticket.policy, &ticket.bytes, now);
        let opened =
            opened.map_err(|miss| Violation(format!("{} does not open a ticket: {miss}", host.name)))?;
        ensure(opened.state == TICKET_STATE && opened.lifespan == ticket.lifespan, || {
            format!("{} reads a ticket otherwise than it was written", host.name)
        })?;
        self.tally.tickets_resumed += 1;
        Ok(())
    }

    /// The client returns to any host, or another one tries to use its session.
    fn come_back(&mut self, session: usize) -> Check {
        let Some(host) = self.some_host_up() else { return Ok(()) };
        if self.random.below(100) < self.workload.wrong_policy {
            return self.resume(host, session, &policy("mallory")).map(drop);
        }
        self.tally.returned += 1;
        let bound_to = self.ledger.made[session].session.policy;
        if self.resume(host, session, &bound_to)?.is_ok() {
            self.tally.resumed += 1;
            return Ok(());
        }
        if self.random.below(100) < self.workload.pulls { self.pull(host, session) } else { Ok(()) }
    }

    /// An abbreviated handshake on this host, or the reason why not.
    pub(super) fn resume(
        &mut self,
        host: usize,
        session: usize,
        policy: &PolicyHash,
    ) -> Result<Result<(), ResumptionFailure>, Violation> {
        let host = &self.hosts[host];
        let id = self.ledger.made[session].session.id;
        let now = host.wall(self.time);
        let got = host.cache.get(&id, policy, self.sabotage.clock(now));
        self.ledger.judge(session, host, policy, now, &got)?;
        Ok(got.map(drop))
    }

    pub(super) fn pull(&mut self, host: usize, session: usize) -> Check {
        let (id, time) = (self.ledger.made[session].session.id, self.time);
        let now = self.hosts[host].now(time);
        self.hosts[host].wants.insert(id, time);
        if let Some(member) = &mut self.hosts[host].member {
            member.pull(&id, now);
        }
        self.after(ANSWER_MS, Event::Work(Work::Answer { host, id, asked: time }));
        self.settle(host)
    }

    /// A member has answered for a session.
    pub(super) fn answered(&mut self, host: usize, id: &SessionId, found: bool) -> Check {
        let was_wanted = self.hosts[host].wants.remove(id).is_some();
        ensure(was_wanted, || format!("{} answers what was not asked", self.hosts[host].name))?;
        let Some(session) = self.ledger.find(id).filter(|_| found) else { return Ok(()) };
        let bound_to = self.ledger.made[session].session.policy;
        if self.resume(host, session, &bound_to)?.is_ok() {
            self.tally.pulled += 1;
        }
        Ok(())
    }

    /// A handshake with the session ended badly on some host.
    fn delete(&mut self, session: usize) -> Check {
        self.some_host_up().map_or(Ok(()), |host| self.delete_on(session, host))
    }

    /// A handshake with the session ended badly on this host, if it has the session.
    pub(super) fn delete_on(&mut self, session: usize, number: usize) -> Check {
        let (host, shared) = (&mut self.hosts[number], &self.ledger.made[session].session);
        let now = host.now(self.time);
        if !host.cache.contains(&shared.id, &shared.policy, now.wall.seconds()) {
            return Ok(());
        }
        match self.sabotage {
            Sabotage::ForgetsDeletions => drop(host.cache.remove(&shared.id)),
            _ => drop(host.cache.delete(
                &shared.id,
                shared.lifespan.expires.plus(CLOCK_SKEW),
                now.wall.seconds(),
            )),
        }
        if let Some(member) = &mut host.member {
            member.delete(&shared.id, now);
        }
        self.ledger.note_deletion(session, number);
        self.tally.deleted += 1;
        self.settle(number)
    }

    /// Every host that can have it has it, if all has been calm since before it was made.
    fn check_reached(&mut self, session: usize, calm_since: u64) -> Check {
        let made = &self.ledger.made[session];
        let before = (self.time - REACH_MS).saturating_sub(SETTLED_MS);
        let is_settled = |number: usize| {
            let host = &self.hosts[number];
            let is_odd = host.is_far_off || host.is_clone || host.is_set_back;
            host.member.is_some() && !is_odd && host.started <= before
        };
        if self.calm_since != Some(calm_since)
            || calm_since > before
            || made.is_deleted
            || !is_settled(made.maker)
        {
            return Ok(());
        }
        for host in self.hosts.iter().filter(|host| is_settled(host.number)) {
            let now = host.wall(self.time);
            let found = host.cache.peek(&made.session.id, &made.session.policy, now);
            ensure(found.is_ok() || now >= made.session.lifespan.expires, || {
                format!("{} has not got a session of host-{}: {found:?}", host.name, made.maker)
            })?;
        }
        self.tally.reached += 1;
        Ok(())
    }

    pub(super) fn some_host_up(&mut self) -> Option<usize> {
        let number = index(&mut self.random, self.hosts.len());
        self.hosts[number].member.is_some().then_some(number)
    }
}

pub(super) fn byte(random: &mut Random) -> u8 {
    random.next().to_be_bytes()[0]
}

/// A clock that stands still, for the sabotage.
pub(super) const STOPPED: UnixSeconds = UnixSeconds(1_800_000_001);
const HOSTS: [&str; 3] = ["a", "b", "c"];
const TICKET_STATE: &[u8] = b"the state of a session that its client keeps";
/// After which a session that was made is everywhere.
const REACH_MS: u64 = 1000;
/// How long hosts may take to get to know each other.
const SETTLED_MS: u64 = 1500;
/// After which a member has answered, by the second that it may take and the step of its clock.
const ANSWER_MS: u64 = 1100;
/// The longest session that surely shares a datagram.
const FITS: usize = 1200;
