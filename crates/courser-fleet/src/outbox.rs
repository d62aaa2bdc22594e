//! What is on its way out: messages that still fill, and those that are sealed. May not grow without bound: what does
//! not fit is dropped and counted.

use std::collections::VecDeque;

use courser_session::{SessionId, SharedSession, UnixSeconds};

use crate::content::{SessionWriter, put_deletion, put_id};
use crate::identity::MemberName;
use crate::message::{Draft, Kind, MIN_LEN, To, Transmit};
use crate::now::Now;
use crate::seal::Sealer;
use crate::status::SentCounts;

/// Writes and seals messages, and keeps them until they are fetched.
pub(crate) struct Outbox {
    sealer: Sealer,
    max_payload: usize,
    queue: VecDeque<Sealed>,
    new: Option<Batch>,
    deleted: Option<Batch>,
    pulls: Option<Batch>,
    counts: SentCounts,
}

/// A message that is ready, and what `fleet watch` shows of it.
pub(crate) struct Sealed {
    pub(crate) transmit: Transmit,
    pub(crate) kind: Kind,
    pub(crate) items: u64,
}

/// A message that fills with sessions or IDs.
pub(crate) struct Batch {
    pub(crate) draft: Draft,
    writer: SessionWriter,
    items: u64,
    /// When it is sent, full or not.
    due: u64,
}

impl Batch {
    pub(crate) fn put(&mut self, session: &SharedSession) -> bool {
        let is_in = self.writer.put(&mut self.draft, session);
        self.items += u64::from(is_in);
        is_in
    }

    fn put_with(&mut self, put: impl Fn(&mut Draft) -> bool) -> bool {
        let is_in = put(&mut self.draft);
        self.items += u64::from(is_in);
        is_in
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items == 0
    }
}

impl Outbox {
    /// `max_payload` is the most bytes of a datagram, at least [`MIN_PAYLOAD`].
    pub(crate) fn new(sealer: Sealer, max_payload: usize) -> Self {
        let max_payload = max_payload.clamp(MIN_PAYLOAD, MAX_PAYLOAD);
        let (queue, counts) = (VecDeque::new(), SentCounts::default());
        Self { sealer, max_payload, queue, new: None, deleted: None, pulls: None, counts }
    }

    /// Puts a session into the message that fills; sends that first if it is full.
    pub(crate) fn push(&mut self, session: &SharedSession, now: Now) {
        let mut batch = self.new.take();
        if let Some(open) = &mut batch
            && open.put(session)
        {
            self.new = batch;
            return;
        }
        if let Some(full) = batch {
            self.send_batch(full, To::All, now);
        }
        self.new = self.begin_with(session, now);
    }

    /// A message to all that begins with this session; none if it is too large for a datagram of its own.
    fn begin_with(&mut self, session: &SharedSession, now: Now) -> Option<Batch> {
        let mut batch = self.batch(Kind::New, now);
        let is_in = batch.put(session);
        self.counts.session_too_large += u64::from(!is_in);
        is_in.then_some(batch)
    }

    /// Puts a session that is deleted into a message to all.
    pub(crate) fn delete(&mut self, id: &SessionId, until: UnixSeconds, now: Now) {
        let open = self.deleted.take();
        self.deleted =
            self.put_into(open, Kind::Delete, |draft| put_deletion(draft, id, until), To::All, now);
    }

    /// Puts a session that is removed into a message to all, behind the one that pushes it: without a tombstone it would
    /// come back with that.
    pub(crate) fn remove(&mut self, id: &SessionId, now: Now) {
        if let Some(batch) = self.new.take() {
            self.send_batch(batch, To::All, now);
        }
        // A tombstone that is over when it is put up.
        self.delete(id, UnixSeconds(0), now);
    }

    /// Puts a session that is wanted into a message to all.
    pub(crate) fn pull(&mut self, id: &SessionId, now: Now) {
        let open = self.pulls.take();
        self.pulls = self.put_into(open, Kind::Get, |draft| put_id(draft, id), To::All, now);
    }

    fn put_into(
        &mut self,
        open: Option<Batch>,
        kind: Kind,
        put: impl Fn(&mut Draft) -> bool,
        to: To,
        now: Now,
    ) -> Option<Batch> {
        let mut batch = open.unwrap_or_else(|| self.batch(kind, now));
        if !batch.put_with(&put) {
            self.send_batch(batch, to, now);
            batch = self.batch(kind, now);
            batch.put_with(&put);
        }
        Some(batch)
    }

    /// Sends these IDs, which are all that one message asked for.
    pub(crate) fn send_ids(&mut self, kind: Kind, ids: &[SessionId], to: To, now: Now) {
        let mut batch = None;
        for id in ids {
            let open = batch.take();
            batch = self.put_into(open, kind, |draft| put_id(draft, id), to, now);
        }
        batch.into_iter().for_each(|batch| self.send_batch(batch, to, now));
    }

    /// Sends these sessions, in as many messages as they take. Gives those that fit into none.
    pub(crate) fn send_sessions(
        &mut self,
        kind: Kind,
        sessions: &[SharedSession],
        to: To,
        now: Now,
    ) -> Vec<SessionId> {
        let (mut batch, mut too_large) = (self.batch(kind, now), Vec::new());
        for session in sessions {
            if batch.put(session) {
                continue;
            }
            if !batch.is_empty() {
                let next = self.batch(kind, now);
                self.send_batch(std::mem::replace(&mut batch, next), to, now);
            }
            if !batch.put(session) {
                too_large.push(session.id);
            }
        }
        if !batch.is_empty() {
            self.send_batch(batch, to, now);
        }
        self.counts.session_too_large += too_large.len() as u64;
        too_large
    }

    /// An empty message.
    pub(crate) fn batch(&self, kind: Kind, now: Now) -> Batch {
        let draft = Draft::new(kind, self.max_payload);
        Batch { draft, writer: SessionWriter::default(), items: 0, due: now.mono.saturating_add(FILL_MS) }
    }

    /// How many bytes of sessions to put into a part: as they are encoded elsewhere, which takes a byte less for each.
    pub(crate) fn room_for_part(&self) -> usize {
        let room = self.max_payload - MIN_LEN - PART_HEAD_LEN;
        room - room / 50
    }

    /// Sends a part of all sessions; `head` writes what stands before them.
    pub(crate) fn send_part(
        &mut self,
        head: impl Fn(&mut Draft) -> bool,
        sessions: &[SharedSession],
        to: To,
        now: Now,
    ) {
        let mut batch = self.batch(Kind::Part, now);
        let is_in = head(&mut batch.draft);
        debug_assert!(is_in, "the head of a part fits into the shortest payload");
        let too_large = sessions.iter().filter(|session| !batch.put(session)).count();
        self.counts.session_too_large += too_large as u64;
        self.send_batch(batch, to, now);
    }

    /// Sends a message of one thing, which `put` writes and which always fits.
    pub(crate) fn send(&mut self, kind: Kind, put: impl Fn(&mut Draft) -> bool, to: To, now: Now) {
        let mut batch = self.batch(kind, now);
        let is_in = put(&mut batch.draft);
        debug_assert!(is_in, "a message of one thing fits into the shortest payload");
        self.send_batch(batch, to, now);
    }

    /// Seals a message and queues it, unless the queue is full.
    pub(crate) fn send_batch(&mut self, batch: Batch, to: To, now: Now) {
        let (kind, items) = (batch.draft.kind, batch.items);
        if self.queue.len() >= MAX_QUEUE {
            self.counts.dropped += 1;
            return;
        }
        let transmit = self.sealer.seal(batch.draft, to, now);
        self.counts.messages += 1;
        self.counts.bytes += transmit.bytes.len() as u64;
        if kind == Kind::New {
            self.counts.pushed += items;
        }
        self.queue.push_back(Sealed { transmit, kind, items });
    }

    /// Sends sessions that have waited for others long enough.
    pub(crate) fn tick(&mut self, now: Now) {
        if self.due().is_some_and(|due| now.mono >= due)
            && let Some(batch) = self.new.take()
        {
            self.send_batch(batch, To::All, now);
        }
    }

    /// When the sessions that wait for others are to be sent.
    pub(crate) fn due(&self) -> Option<u64> {
        self.new.as_ref().map(|batch| batch.due)
    }

    /// The next message. Whatever was deleted or wanted until now is in it or in the next.
    pub(crate) fn next(&mut self, now: Now) -> Option<Sealed> {
        let waiting = [self.deleted.take(), self.pulls.take()];
        waiting.into_iter().flatten().for_each(|batch| self.send_batch(batch, To::All, now));
        self.queue.pop_front()
    }

    /// The number of the last message that went to all.
    pub(crate) fn last_to_all(&self) -> u64 {
        self.sealer.last_to_all()
    }

    pub(crate) fn counts(&self) -> SentCounts {
        self.counts
    }
}

/// Room for the longest heartbeat, with something to spare: what IPv6 lets everyone send is 1280 - 48.
const MIN_PAYLOAD: usize = 512;
/// RFC 768: the length of a UDP datagram is 16 bits, and IPv4's header counts.
const MAX_PAYLOAD: usize = 65_507;
/// From where on it was asked, where to go on, flags.
const PART_HEAD_LEN: usize = 8 + 8 + 1;
/// How long a session waits for others that share its datagram.
const FILL_MS: u64 = 2;
/// Two megabytes of datagrams at most: a second of 10,000 sessions.
const MAX_QUEUE: usize = 1400;

const _: () = assert!(MIN_LEN + 1 + MemberName::MAX_LEN + 3 * 8 <= MIN_PAYLOAD);
