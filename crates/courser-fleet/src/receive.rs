//! The way of a datagram into a member, cheapest check first. May not act on anything before its sender is known to be
//! a member that lives, and the message to be new.

use std::net::SocketAddr;

use courser_session::{Cursor, Provenance, Put, SessionId, SharedSession, UnixSeconds};
use zeroize::Zeroize;

use crate::content::{self, Content, Part, Proof};
use crate::events::Seen;
use crate::member::Member;
use crate::message::{Header, Kind, To};
use crate::now::{Now, UnixMillis};
use crate::peers::{Admitted, MAX_CLOCK_DIFFERENCE_MS, Peer};
use crate::refusal::Refusal;
use crate::state_transfer::PARTS_PER_QUESTION;
use crate::status::{Event, PeerChange};

/// A message that is authentic. Whether it is new, and its sender alive, is another question.
struct Authentic<'a> {
    header: Header,
    from: SocketAddr,
    sent: UnixMillis,
    content: &'a [u8],
}

impl Authentic<'_> {
    fn reply_to(&self) -> To {
        To::One(self.header.sender, self.from)
    }
}

impl Member {
    /// Takes a datagram in, and wipes it: opened, it has secrets in it. Gives the reason if it changes nothing; that is
    /// counted as well.
    pub fn receive(&mut self, from: SocketAddr, datagram: &mut [u8], now: Now) -> Option<Refusal> {
        self.now = now;
        self.received.datagrams += 1;
        self.received.bytes += datagram.len() as u64;
        let mut seen = Seen::default();
        let refusal = self.check(from, datagram, now, &mut seen).err();
        datagram.zeroize();
        match refusal {
            Some(refusal) => self.refused.count(refusal, from),
            None => self.received.accepted += 1,
        }
        self.events.received(from, datagram.len(), seen, refusal);
        refusal
    }

    fn check(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        now: Now,
        seen: &mut Seen,
    ) -> Result<(), Refusal> {
        let header = Header::parse(datagram)?;
        let kind = Kind::of(header.kind);
        seen.kind = kind.map(Kind::name);
        if (header.sender, header.incarnation) == self.start {
            return Err(Refusal::OwnEcho);
        }
        self.gate.admit(from)?;
        self.peers.check_header(&header, now.mono)?;
        let is_known = self.opener.knows(&header);
        self.openings.take(is_known, now.mono)?;
        let opened = self.opener.open(&header, datagram, now.wall.seconds());
        if matches!(opened, Err(Refusal::OtherFleet | Refusal::UnknownEpoch)) {
            // No key, so nothing was computed: a fleet beside this one must not lock out new members.
            self.openings.return_token(is_known);
        }
        let (sent, content) = opened?;
        if header.sender == self.start.0 {
            return Err(Refusal::DuplicateName);
        }
        let message = Authentic { header, from, sent, content };
        let sender = self.sender(&message, now)?;
        if sender.is_some() {
            self.openings.return_token(is_known);
        }
        match (kind, sender) {
            (Some(Kind::Challenge), _) => self.answer_challenge(&message, sender, now),
            (Some(Kind::Proof), _) => self.check_proof(&message, sender, now),
            (_, None) => {
                self.challenge(&message, now);
                Err(Refusal::UnverifiedPeer)
            }
            (kind, Some(place)) => {
                let content = Content::parse(kind.ok_or(Refusal::UnknownType)?, content);
                let content = content.ok_or(Refusal::Malformed)?;
                seen.items = content.len() as u64;
                self.process(&message, content, place, now)
            }
        }
    }

    /// The place of a message's sender, if that is known to live; the message is then new.
    fn sender(&mut self, message: &Authentic<'_>, now: Now) -> Result<Option<usize>, Refusal> {
        let place = self.peers.sender(&message.header, now.mono)?;
        if let Some(place) = place {
            let peer = self.peers.get(place);
            let is_newest = peer.is_newest(message.header.sequence);
            if !peer.is_new(message.header.sequence) {
                return Err(Refusal::Replayed);
            }
            if is_newest {
                peer.record_message(message, now);
            }
            if !peer.may_send(self.peer_rate, now.mono) {
                return Err(Refusal::RateLimited);
            }
        }
        Ok(place)
    }

    /// Asks the sender of a message to prove that it lives, unless it was just asked.
    fn challenge(&mut self, message: &Authentic<'_>, now: Now) {
        let life = (message.header.sender, message.header.incarnation);
        if let Some(proof) = self.proofs.challenge(life, now.mono) {
            self.send_proof(Kind::Challenge, &proof, message.reply_to(), now);
        }
    }

    /// Answers a challenge, and asks for the same if its sender is not known.
    fn answer_challenge(
        &mut self,
        message: &Authentic<'_>,
        sender: Option<usize>,
        now: Now,
    ) -> Result<(), Refusal> {
        let asked = self.read_proof(Kind::Challenge, message)?;
        let challenger = (message.header.sender, message.header.incarnation);
        if asked.to != self.start {
            return Err(Refusal::StaleChallenge);
        }
        if !self.proofs.may_answer(challenger, now.mono) {
            return Err(Refusal::QuotaExceeded);
        }
        let answer = Proof { to: challenger, ..asked };
        self.send_proof(Kind::Proof, &answer, message.reply_to(), now);
        if sender.is_none() {
            self.challenge(message, now);
        }
        Ok(())
    }

    /// Takes the sender of an answer in, if it is what was asked of it.
    fn check_proof(
        &mut self,
        message: &Authentic<'_>,
        sender: Option<usize>,
        now: Now,
    ) -> Result<(), Refusal> {
        let proof = self.read_proof(Kind::Proof, message)?;
        let life = (message.header.sender, message.header.incarnation);
        if proof.to != self.start || !self.proofs.holds(life, &proof.bytes, now.mono) {
            return Err(Refusal::StaleChallenge);
        }
        if sender.is_some() {
            return Ok(());
        }
        let (place, admitted) = self.peers.admit(life, message.from, now)?;
        let peer = self.peers.get(place);
        peer.counts_from(proof.last_to_all, message.header.sequence);
        peer.record_message(message, now);
        peer.unreported = Some(match admitted {
            Admitted::New => PeerChange::Joined,
            Admitted::Restarted => PeerChange::Restarted,
        });
        Ok(())
    }

    fn read_proof(&self, kind: Kind, message: &Authentic<'_>) -> Result<Proof, Refusal> {
        match Content::parse(kind, message.content) {
            Some(Content::Challenge(proof) | Content::Proof(proof)) => Ok(proof),
            _ => Err(Refusal::Malformed),
        }
    }

    fn send_proof(&mut self, kind: Kind, proof: &Proof, to: To, now: Now) {
        let proof = Proof { last_to_all: self.outbox.last_to_all(), ..*proof };
        self.outbox.send(kind, |draft| content::put_proof(draft, &proof), to, now);
    }

    /// Acts on the content of an accepted message.
    fn process(
        &mut self,
        message: &Authentic<'_>,
        content: Content,
        place: usize,
        now: Now,
    ) -> Result<(), Refusal> {
        // Also of a peer whose clock is wrong, so that it can be named.
        if let Content::Heartbeat(heartbeat) = &content {
            if heartbeat.name.id() != message.header.sender {
                return Err(Refusal::Malformed);
            }
            let peer = self.peers.get(place);
            peer.heartbeat = Some(heartbeat.clone());
            if let Some(change) = peer.unreported.take() {
                self.events.peer(peer, change);
            }
        }
        if now.wall.since(message.sent).unsigned_abs() > MAX_CLOCK_DIFFERENCE_MS {
            return Err(Refusal::ClockSkew);
        }
        match content {
            Content::New(sessions) => self.store_all(sessions, now),
            Content::Delete(deletions) => self.delete_all(&deletions, now),
            Content::Get(ids) => return self.answer_get(&ids, place, now),
            Content::Found(sessions) => return self.store_found(sessions, now),
            Content::Missing(ids) => return self.record_missing(&ids, place, now),
            Content::StateRequest { from } => return self.send_parts(from, place, now),
            Content::Part(part) => return self.store_part(part, place, now),
            Content::DomainCheck(check) => {
                self.events.add(Event::DomainCheck { check, from: message.header.sender });
            }
            Content::Acknowledged(digest) => {
                self.events.add(Event::Acknowledged { digest, from: message.header.sender });
            }
            Content::Heartbeat(_) | Content::Challenge(_) | Content::Proof(_) => {}
        }
        Ok(())
    }

    fn store_all(&mut self, sessions: Vec<SharedSession>, now: Now) {
        for session in sessions {
            self.store(session, now);
        }
    }

    /// Puts a session of another host into the cache; returns whether it is there.
    fn store(&mut self, session: SharedSession, now: Now) -> bool {
        let SharedSession { id, policy, lifespan, state } = session;
        let lifespan = self.keys.limit(lifespan);
        let put = self.cache.put(&id, policy, state, lifespan, Provenance::Remote, now.wall.seconds());
        let count = match put {
            Put::Stored | Put::Replaced => &mut self.received.taken,
            Put::Duplicate => &mut self.received.duplicate,
            Put::Tombstoned => &mut self.received.tombstoned,
            Put::NotValid => &mut self.received.not_valid,
            Put::TooLarge => &mut self.received.too_large,
        };
        *count += 1;
        put.is_stored() || put == Put::Duplicate
    }

    fn delete_all(&mut self, deletions: &[(SessionId, UnixSeconds)], now: Now) {
        self.received.deleted += deletions.len() as u64;
        for (id, until) in deletions {
            self.cache.delete(id, *until, now.wall.seconds());
        }
    }

    /// Sends a peer the sessions that it pulls, and the IDs of those that are not here.
    fn answer_get(&mut self, ids: &[SessionId], place: usize, now: Now) -> Result<(), Refusal> {
        if !self.peers.get(place).may_get(ids.len(), now.mono) {
            return Err(Refusal::QuotaExceeded);
        }
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for id in ids {
            match self.cache.copy(id, now.wall.seconds()) {
                Some(session) => found.push(session),
                None => missing.push(*id),
            }
        }
        let to = self.peers.get(place).to();
        // Sessions too large to be sent count as missing, so that the puller need not wait.
        missing.extend(self.outbox.send_sessions(Kind::Found, &found, to, now));
        self.outbox.send_ids(Kind::Missing, &missing, to, now);
        Ok(())
    }

    /// Stores sessions that were pulled, and no others.
    fn store_found(&mut self, sessions: Vec<SharedSession>, now: Now) -> Result<(), Refusal> {
        let mut is_solicited = false;
        for session in sessions {
            let Some(is_first) = self.pulls.found(&session.id, now.mono) else { continue };
            is_solicited = true;
            if is_first {
                let id = session.id;
                let found = self.store(session, now);
                self.events.answered(id, found);
            } else {
                self.received.duplicate += 1;
            }
        }
        if is_solicited { Ok(()) } else { Err(Refusal::Unsolicited) }
    }

    fn record_missing(&mut self, ids: &[SessionId], place: usize, now: Now) -> Result<(), Refusal> {
        let mut is_solicited = false;
        for id in ids {
            let Some(is_over) = self.pulls.missing(id, place, now.mono) else { continue };
            is_solicited = true;
            if is_over {
                self.events.answered(*id, false);
            }
        }
        if is_solicited { Ok(()) } else { Err(Refusal::Unsolicited) }
    }

    /// Sends a peer that starts the next parts of all that is here.
    fn send_parts(&mut self, asked: u64, place: usize, now: Now) -> Result<(), Refusal> {
        if !self.peers.get(place).may_request_state(now.mono) {
            return Err(Refusal::QuotaExceeded);
        }
        let (to, mut at) = (self.peers.get(place).to(), Cursor::from_u64(asked));
        for number in 1..=PARTS_PER_QUESTION {
            let (sessions, next) = self.cache.export(at, self.outbox.room_for_part(), now.wall.seconds());
            let is_last = next.is_none() || number == PARTS_PER_QUESTION;
            if is_last || !sessions.is_empty() {
                let next = next.map(Cursor::to_u64);
                let put = |draft: &mut _| content::put_part(draft, asked, next, is_last);
                self.outbox.send_part(put, &sessions, to, now);
            }
            let Some(next) = next else { break };
            at = next;
        }
        Ok(())
    }

    fn store_part(&mut self, part: Part, place: usize, now: Now) -> Result<(), Refusal> {
        self.state_transfer.part(place, &part, now.mono)?;
        self.store_all(part.sessions, now);
        Ok(())
    }
}

impl Peer {
    /// Records the newest message of a peer. One that was held back proves neither its address nor that it still lives; one
    /// of a host whose clock is wrong is no other to look at, but nothing is asked of it.
    fn record_message(&mut self, message: &Authentic<'_>, now: Now) {
        let late_ms = now.wall.since(message.sent);
        let is_in_time = late_ms.unsigned_abs() <= MAX_CLOCK_DIFFERENCE_MS;
        self.lateness.note(late_ms, now.mono);
        if is_in_time {
            self.address = message.from;
        }
        if is_in_time || self.lateness.is_clock_off() {
            self.epoch = message.header.epoch;
            self.heard_at = now;
        }
    }
}
