//! Sessions that clients offer and this host has not got: which peers have yet to answer. May not send a pull twice, nor
//! grow with IDs that strangers invent.

use std::collections::{HashMap, VecDeque};

use courser_session::SessionId;

use crate::status::PullCounts;

/// Open pulls, and negative cache entries.
pub(crate) struct Pulls {
    pending: Expiring<Pending>,
    /// No peer has these: they are not pulled again at once.
    negative: Expiring<()>,
    counts: PullCounts,
}

/// A session that was asked for.
struct Pending {
    /// Places of the peers that have not answered, as bits.
    waiting: u64,
    is_answered: bool,
}

/// What to do for someone who wants a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pull {
    /// Send a pull to the peers.
    Send,
    /// Wait for the answer to an earlier pull.
    Wait,
    /// No peer has it.
    NotFound,
}

impl Pulls {
    pub(crate) fn new() -> Self {
        Self {
            pending: Expiring::new(PENDING_MS),
            negative: Expiring::new(NEGATIVE_MS),
            counts: PullCounts::default(),
        }
    }

    /// Someone wants a session, and these peers can be asked.
    pub(crate) fn request(&mut self, id: SessionId, peers: u64, mono: u64) -> Pull {
        self.counts.requested += 1;
        if self.pending.get(&id, mono).is_some_and(|want| !want.is_answered) {
            return Pull::Wait;
        }
        if self.negative.get(&id, mono).is_some() {
            self.counts.negative_cached += 1;
            return Pull::NotFound;
        }
        if peers == 0 || !self.pending.put(id, Pending { waiting: peers, is_answered: false }, mono) {
            self.counts.not_sent += 1;
            return Pull::NotFound;
        }
        self.counts.sent += 1;
        Pull::Send
    }

    /// A peer has it. `None` if it was not asked for, otherwise whether this is the first answer.
    pub(crate) fn found(&mut self, id: &SessionId, mono: u64) -> Option<bool> {
        let want = self.pending.get(id, mono)?;
        let is_first = !want.is_answered;
        want.is_answered = true;
        self.counts.found += u64::from(is_first);
        Some(is_first)
    }

    /// A peer has not got it. `None` if it was not asked for, otherwise whether no peer is left that could have it.
    pub(crate) fn missing(&mut self, id: &SessionId, place: usize, mono: u64) -> Option<bool> {
        let want = self.pending.get(id, mono)?;
        want.waiting &= !(1 << place);
        let is_over = want.waiting == 0 && !want.is_answered;
        want.is_answered |= is_over;
        if is_over {
            self.give_up(*id, mono);
        }
        Some(is_over)
    }

    /// Ends waiting for answers that will not come; returns the sessions that no peer has.
    pub(crate) fn tick(&mut self, mono: u64) -> Vec<SessionId> {
        self.negative.take_expired(mono);
        let over = self.pending.take_expired(mono).into_iter().filter(|(_, want)| !want.is_answered);
        let over: Vec<_> = over.map(|(id, _)| id).collect();
        over.iter().for_each(|id| self.give_up(*id, mono));
        over
    }

    fn give_up(&mut self, id: SessionId, mono: u64) {
        self.counts.not_found += 1;
        self.negative.put(id, (), mono);
    }

    /// When [`tick`](Self::tick) has something to do.
    pub(crate) fn due(&self) -> Option<u64> {
        self.pending.first_end()
    }

    pub(crate) fn counts(&self) -> PullCounts {
        self.counts
    }
}

/// Values by session ID, each for the same time, and a bounded number of them.
struct Expiring<V> {
    lifetime_ms: u64,
    values: HashMap<SessionId, (u64, V)>,
    /// In the order in which they end; also some that have been replaced.
    ends: VecDeque<(u64, SessionId)>,
}

impl<V> Expiring<V> {
    fn new(lifetime_ms: u64) -> Self {
        Self { lifetime_ms, values: HashMap::new(), ends: VecDeque::new() }
    }

    fn get(&mut self, id: &SessionId, mono: u64) -> Option<&mut V> {
        self.values.get_mut(id).filter(|(end, _)| *end > mono).map(|(_, value)| value)
    }

    /// Whether there was room.
    fn put(&mut self, id: SessionId, value: V, mono: u64) -> bool {
        if self.ends.len() >= MAX_PULLS {
            return false;
        }
        let end = mono.saturating_add(self.lifetime_ms);
        self.values.insert(id, (end, value));
        self.ends.push_back((end, id));
        true
    }

    /// Takes those out whose time is over.
    fn take_expired(&mut self, mono: u64) -> Vec<(SessionId, V)> {
        let mut faded = Vec::new();
        while let Some(&(end, id)) = self.ends.front().filter(|(end, _)| *end <= mono) {
            self.ends.pop_front();
            if self.values.get(&id).is_some_and(|(its_end, _)| *its_end == end)
                && let Some((_, value)) = self.values.remove(&id)
            {
                faded.push((id, value));
            }
        }
        faded
    }

    fn first_end(&self) -> Option<u64> {
        self.ends.front().map(|(end, _)| *end)
    }
}

/// How long an answer counts. No handshake waits for so long, but the client's next one finds what came late.
const PENDING_MS: u64 = 1000;
/// Lifetime of a negative cache entry: clients that retry at once cost nothing.
const NEGATIVE_MS: u64 = 5000;
/// Of each kind; about a megabyte of memory in all.
const MAX_PULLS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> SessionId {
        SessionId::try_from(&[number; 32][..]).unwrap()
    }

    #[test]
    fn asks_once_and_takes_the_first_answer() {
        let mut pulls = Pulls::new();
        assert_eq!(pulls.request(id(1), 0b11, 0), Pull::Send);
        assert_eq!(pulls.request(id(1), 0b11, 1), Pull::Wait);
        assert_eq!(pulls.found(&id(1), 2), Some(true));
        assert_eq!(pulls.found(&id(1), 3), Some(false), "another peer has it too");
        assert_eq!(pulls.request(id(1), 0b11, 4), Pull::Send, "it is gone from the cache again");
        assert_eq!(pulls.found(&id(2), 4), None);
    }

    #[test]
    fn knows_that_nobody_has_it_when_all_have_said_so() {
        let mut pulls = Pulls::new();
        assert_eq!(pulls.request(id(1), 0b101, 0), Pull::Send);
        assert_eq!(pulls.missing(&id(1), 0, 1), Some(false));
        assert_eq!(pulls.missing(&id(1), 0, 1), Some(false), "a repeated answer");
        assert_eq!(pulls.missing(&id(1), 2, 1), Some(true));
        assert_eq!(pulls.request(id(1), 0b101, 2), Pull::NotFound);
        assert_eq!(pulls.request(id(1), 0b101, 1 + NEGATIVE_MS), Pull::Send);
        assert_eq!(pulls.missing(&id(3), 0, 1), None);
    }

    #[test]
    fn waits_no_longer_than_a_second() {
        let mut pulls = Pulls::new();
        assert_eq!(pulls.request(id(1), 0b1, 5), Pull::Send);
        assert_eq!(pulls.due(), Some(5 + PENDING_MS));
        assert!(pulls.tick(4 + PENDING_MS).is_empty());
        assert_eq!(pulls.tick(5 + PENDING_MS), [id(1)]);
        assert_eq!(pulls.found(&id(1), 5 + PENDING_MS), None, "too late");
        assert_eq!(pulls.due(), None);
    }

    #[test]
    fn asks_nobody_when_alone_and_no_more_than_there_is_room_for() {
        let mut pulls = Pulls::new();
        assert_eq!(pulls.request(id(1), 0, 0), Pull::NotFound);
        let id = |number: u32| SessionId::try_from(&number.to_be_bytes()[..]).unwrap();
        let asked = (0..10_000).filter(|&number| pulls.request(id(number), 1, 0) == Pull::Send).count();
        assert_eq!(asked, MAX_PULLS);
        assert_eq!(pulls.tick(PENDING_MS).len(), MAX_PULLS);
        assert_eq!(pulls.request(id(20_000), 1, PENDING_MS), Pull::Send);
        assert!(pulls.negative.values.len() <= MAX_PULLS);
    }
}
