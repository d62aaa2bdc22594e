//! What a connection leaves in its thread's books, step by step.

use std::time::Duration;

use courser_tls_client::ClientConnection;

use crate::channel::Channel;
use crate::connection::{Attempt, HandshakeTimes};
use crate::failure::{Class, Failed};
use crate::offered::Session;
use crate::plan::Model;
use crate::tally::{Negotiated, PeerClose, Tally, Times, Wire};
use crate::worker::Worker;

/// Times of a transaction's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTimes {
    /// Whether it is the connection's first, whose time begins with the connect.
    pub(crate) first: bool,
    /// When it was asked for.
    pub(crate) asked: Duration,
    /// When the server was first heard after that.
    pub(crate) heard: Option<Duration>,
    /// First byte of the answer.
    pub(crate) first_byte: Option<Duration>,
}

impl Worker {
    /// A session arrived.
    pub(crate) fn began_session(&self, intended: Duration) {
        self.tally(intended, |tally| tally.sessions += 1);
    }

    /// Whether no more connections may be opened.
    pub(crate) fn is_full(&self) -> bool {
        let limit = self.plan.phases.in_flight.div_ceil(self.plan.threads.len()) as u64;
        self.books.borrow().in_flight >= limit
    }

    /// An arrival that could not even be tried.
    pub(crate) fn turn_away(&self, intended: Duration) {
        let failed = Failed::new(Class::InFlightLimit, "as many connections open as were allowed");
        let sessions = u64::from(matches!(self.plan.model, Model::Sessions(_)));
        self.tally(intended, |tally| {
            tally.sessions += sessions;
            tally.connections += 1;
            tally.attempted += 1;
            tally.fail(&failed);
        });
        let interval = &mut self.books.borrow_mut().interval;
        interval.attempted += 1;
        interval.failed += 1;
    }

    /// A connection starts, with its first transaction.
    pub(crate) fn attempt(&self, visit: &Attempt) {
        self.books.borrow_mut().opened();
        self.books.borrow_mut().interval.attempted += 1;
        self.tally(visit.intended, |tally| {
            tally.connections += 1;
            tally.attempted += 1;
            if visit.scheduled {
                tally.lag.record(visit.started.saturating_sub(visit.intended));
            }
        });
    }

    /// A further transaction of a connection.
    pub(crate) fn attempt_again(&self, visit: &Attempt) {
        visit.begun.set(self.now());
        self.books.borrow_mut().interval.attempted += 1;
        self.tally(visit.begun.get(), |tally| tally.attempted += 1);
    }

    /// The handshake is done at the client. Gives whether it was a resumption.
    pub(crate) fn shook(
        &self,
        visit: &Attempt,
        connected: Duration,
        shaken: &HandshakeTimes,
        channel: &Channel,
    ) -> bool {
        visit.handshake_bytes.set((shaken.bytes_out, shaken.bytes_in));
        let Some(facts) = channel.tls().and_then(ClientConnection::handshake_info) else { return false };
        let negotiated = Negotiated::new(facts, shaken.offered);
        let resumed = negotiated.resumed != Session::None;
        {
            let mut books = self.books.borrow_mut();
            books.handshakes += 1;
            let count = if resumed { &mut books.interval.resumed } else { &mut books.interval.full };
            *count += 1;
        }
        self.tally(visit.intended, |tally| {
            tally.negotiated.add(negotiated, 1);
            tally.offered.add(shaken.offered, 1);
            tally.returned += u64::from(visit.returns);
            tally.returned_empty += u64::from(visit.returns && shaken.offered == Session::None);
            let times = tally.of(resumed).0;
            times.connect.record(connected - visit.started);
            times.server_hello.record(shaken.server_hello - visit.started);
            times.handshake.record(shaken.done - visit.started);
        });
        resumed
    }

    /// A handshake for its own sake has succeeded; `heard`: when the server confirmed it, if it did.
    pub(crate) fn confirmed(&self, visit: &Attempt, heard: Option<Duration>) {
        let now = heard.unwrap_or_else(|| self.now());
        self.tally(visit.intended, |tally| {
            if let Some(heard) = heard {
                tally.of(visit.resumed()).0.confirmed.record(heard - visit.started);
            }
            tally.respond(now - visit.intended, now - visit.started);
        });
        self.succeed(now - visit.intended);
    }

    /// An answer has come, and it is the right one.
    pub(crate) fn answered(&self, visit: &Attempt, answered: AnswerTimes) {
        visit.transactions.set(visit.transactions.get() + 1);
        let now = self.now();
        let (intended, actual) =
            if answered.first { (visit.intended, visit.started) } else { (answered.asked, answered.asked) };
        self.tally(visit.begun.get(), |tally| {
            if answered.first {
                let times = tally.of(visit.resumed()).0;
                times.last_byte.record(now - visit.started);
                answered.first_byte.into_iter().for_each(|at| times.first_byte.record(at - visit.started));
                answered.heard.into_iter().for_each(|at| times.confirmed.record(at - visit.started));
            }
            tally.respond(now - intended, now - actual);
        });
        self.succeed(now - intended);
    }

    /// A thread that was to wake at `due` has woken now.
    pub(crate) fn beat(&self, due: Duration) {
        let late = self.now().saturating_sub(due);
        self.tally(due, |tally| tally.beat.record(late));
    }

    /// A client has gone away in the middle, as it was meant to.
    pub(crate) fn abandoned(&self, visit: &Attempt) {
        let now = self.now();
        self.tally(visit.intended, |tally| tally.respond(now - visit.intended, now - visit.started));
        self.succeed(now - visit.intended);
    }

    /// How the server said goodbye.
    pub(crate) fn parted(&self, visit: &Attempt, ending: PeerClose) {
        self.tally(visit.intended, |tally| tally.endings.add(ending, 1));
    }

    /// The connection is over; what is left to count is on the wire.
    pub(crate) fn weigh(&self, visit: &Attempt, channel: &Channel) {
        {
            let interval = &mut self.books.borrow_mut().interval;
            interval.bytes_out += channel.bytes_out;
            interval.bytes_in += channel.bytes_in;
        }
        self.tally(visit.intended, |tally| {
            if let Some(tls) = channel.tls()
                && !channel.is_handshaking()
            {
                tally.tickets.add(tls.tickets_received(), 1);
            }
            tally.payload_out += channel.payload_out;
            tally.payload_in += channel.payload_in;
            if visit.sampled {
                sample(tally.of(visit.resumed()).1, visit, channel);
            }
        });
    }

    /// The last account of a connection: what it fails, it fails here.
    pub(crate) fn ended(&self, visit: &Attempt, result: &Result<(), Failed>) {
        {
            let mut books = self.books.borrow_mut();
            books.in_flight -= 1;
            books.interval.connections += 1;
            books.interval.failed += u64::from(result.is_err());
            books.failures += u64::from(result.is_err());
        }
        self.tally(visit.begun.get(), |tally| match result {
            Ok(()) => tally.connections_succeeded += 1,
            Err(failed) => {
                tally.wrong_offers += u64::from(failed.class == Class::WrongOffer);
                tally.fail(failed);
            }
        });
        self.left();
    }

    /// Failures so far, in whichever phase.
    pub(crate) fn failures(&self) -> u64 {
        self.books.borrow().failures
    }

    fn succeed(&self, response: Duration) {
        let interval = &mut self.books.borrow_mut().interval;
        interval.succeeded += 1;
        interval.response.record(response);
    }

    fn tally(&self, intended: Duration, note: impl FnOnce(&mut Tally)) {
        if let Some(tally) = self.books.borrow_mut().at(intended) {
            note(tally);
        }
    }
}

impl Tally {
    fn of(&mut self, resumed: bool) -> (&mut Times, &mut Wire) {
        if resumed {
            (&mut self.resumed, &mut self.wire_resumed)
        } else {
            (&mut self.full, &mut self.wire_full)
        }
    }

    fn respond(&mut self, intended: Duration, actual: Duration) {
        self.succeeded += 1;
        self.response_intended.record(intended);
        self.response_actual.record(actual);
    }
}

fn sample(wire: &mut Wire, visit: &Attempt, channel: &Channel) {
    let Ok(tcp) = channel.stream().tcp_info() else { return };
    let (handshake_out, handshake_in) = visit.handshake_bytes.get();
    wire.connections += 1;
    wire.handshake_out += handshake_out;
    wire.handshake_in += handshake_in;
    wire.transactions += visit.transactions.get();
    wire.payload_out += channel.payload_out;
    wire.payload_in += channel.payload_in;
    wire.bytes_out += channel.bytes_out.saturating_sub(handshake_out);
    wire.bytes_in += channel.bytes_in.saturating_sub(handshake_in);
    wire.segments_out += u64::from(tcp.segments_out);
    wire.segments_in += u64::from(tcp.segments_in);
    wire.retransmitted += u64::from(tcp.retransmitted);
}
