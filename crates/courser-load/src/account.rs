//! What a connection records in its thread's statistics, step by step.

use std::time::Duration;

use courser_record::WireCost;
use courser_tls_client::ClientConnection;

use crate::attempt::{AnswerTimes, Attempt, HandshakeTimes};
use crate::channel::Channel;
use crate::failure::{Class, Failed};
use crate::offered::Session;
use crate::plan::Model;
use crate::tally::{Negotiated, PeerClose, Tally, Times};
use crate::worker::Worker;

impl Worker {
    /// A session arrived.
    pub(crate) fn record_session(&self, intended: Duration) {
        self.tally(intended, |tally| tally.sessions += 1);
    }

    /// Whether no more connections may be opened.
    pub(crate) fn is_full(&self) -> bool {
        let limit = self.plan.phases.in_flight.div_ceil(self.plan.threads.len()) as u64;
        self.stats.borrow().in_flight >= limit
    }

    /// An arrival that could not even be tried.
    pub(crate) fn record_rejection(&self, intended: Duration) {
        let failed = Failed::new(Class::InFlightLimit, "as many connections open as were allowed");
        let sessions = u64::from(matches!(self.plan.model, Model::Sessions(_)));
        self.tally(intended, |tally| {
            tally.sessions += sessions;
            tally.connections += 1;
            tally.attempted += 1;
            tally.fail(&failed);
        });
        let second = &mut self.stats.borrow_mut().second;
        second.attempted += 1;
        second.failed += 1;
    }

    /// A connection starts, with its first transaction.
    pub(crate) fn record_start(&self, attempt: &Attempt) {
        self.stats.borrow_mut().opened();
        self.stats.borrow_mut().second.attempted += 1;
        self.tally(attempt.intended, |tally| {
            tally.connections += 1;
            tally.attempted += 1;
            if attempt.scheduled {
                tally.lag.record(attempt.started.saturating_sub(attempt.intended));
            }
        });
    }

    /// A further transaction of a connection.
    pub(crate) fn record_next_transaction(&self, attempt: &Attempt) {
        attempt.begun.set(self.now());
        self.stats.borrow_mut().second.attempted += 1;
        self.tally(attempt.begun.get(), |tally| tally.attempted += 1);
    }

    /// The handshake is done at the client. Gives whether it was a resumption.
    pub(crate) fn record_handshake(
        &self,
        attempt: &Attempt,
        connected: Duration,
        handshake: &HandshakeTimes,
        channel: &Channel,
    ) -> bool {
        attempt.handshake_bytes.set((handshake.bytes_out, handshake.bytes_in));
        let Some(facts) = channel.tls().and_then(ClientConnection::handshake_info) else { return false };
        let negotiated = Negotiated::new(facts, handshake.offered);
        let resumed = negotiated.resumed != Session::None;
        {
            let mut stats = self.stats.borrow_mut();
            stats.handshakes += 1;
            let count = if resumed { &mut stats.second.resumed } else { &mut stats.second.full };
            *count += 1;
        }
        self.tally(handshake.done, |tally| {
            let completed = &mut tally.completed;
            *(if resumed { &mut completed.resumed } else { &mut completed.full }) += 1;
        });
        self.tally(attempt.intended, |tally| {
            tally.negotiated.add(negotiated, 1);
            tally.offered.add(handshake.offered, 1);
            tally.returned += u64::from(attempt.returns);
            tally.returned_empty += u64::from(attempt.returns && handshake.offered == Session::None);
            let times = tally.of(resumed);
            times.connect.record(connected - attempt.started);
            times.server_hello.record(handshake.server_hello - attempt.started);
            times.handshake.record(handshake.done - attempt.started);
        });
        resumed
    }

    /// A handshake for its own sake has succeeded; `first_received`: when the server confirmed it, if it did.
    pub(crate) fn record_confirmation(&self, attempt: &Attempt, first_received: Option<Duration>) {
        let now = first_received.unwrap_or_else(|| self.now());
        self.tally(attempt.intended, |tally| {
            if let Some(first_received) = first_received {
                tally.of(attempt.resumed()).confirmed.record(first_received - attempt.started);
            }
            tally.respond(now - attempt.intended, now - attempt.started);
        });
        self.succeed(now, now - attempt.intended);
    }

    /// An answer has come, and it is the right one.
    pub(crate) fn answered(&self, attempt: &Attempt, answered: AnswerTimes) {
        attempt.transactions.set(attempt.transactions.get() + 1);
        let now = self.now();
        let took = answered.first_byte.unwrap_or(now).saturating_sub(answered.asked);
        let fastest = self.fastest_answer.get();
        self.fastest_answer.set(if fastest.is_zero() { took } else { fastest.min(took) });
        let (intended, actual) = if answered.first {
            (attempt.intended, attempt.started)
        } else {
            (answered.asked, answered.asked)
        };
        self.tally(attempt.begun.get(), |tally| {
            if answered.first {
                let times = tally.of(attempt.resumed());
                times.last_byte.record(now - attempt.started);
                answered.first_byte.into_iter().for_each(|at| times.first_byte.record(at - attempt.started));
                answered
                    .first_received
                    .into_iter()
                    .for_each(|at| times.confirmed.record(at - attempt.started));
            }
            answered.page.into_iter().for_each(|page| tally.pages.add(page, 1));
            tally.respond(now - intended, now - actual);
        });
        self.succeed(now, now - intended);
    }

    /// A thread that was to wake at `due` has woken now.
    pub(crate) fn beat(&self, due: Duration) {
        let late = self.now().saturating_sub(due);
        self.tally(due, |tally| tally.beat.record(late));
    }

    /// A client has gone away in the middle, as it was meant to.
    pub(crate) fn record_abandoned(&self, attempt: &Attempt) {
        let now = self.now();
        self.tally(attempt.intended, |tally| tally.respond(now - attempt.intended, now - attempt.started));
        self.succeed(now, now - attempt.intended);
    }

    /// How the server closed.
    pub(crate) fn record_close(&self, attempt: &Attempt, ending: PeerClose) {
        self.tally(attempt.intended, |tally| tally.endings.add(ending, 1));
    }

    /// How long the connection was open after its answer.
    pub(crate) fn record_lingering(&self, attempt: &Attempt, time: Duration) {
        self.tally(attempt.intended, |tally| tally.lingering.record(time));
    }

    /// The connection is over; what is left to count is on the wire.
    pub(crate) fn record_bytes(&self, attempt: &Attempt, channel: &Channel) {
        {
            let second = &mut self.stats.borrow_mut().second;
            second.sent_bytes += channel.bytes_out;
            second.received_bytes += channel.bytes_in;
        }
        self.tally(attempt.intended, |tally| {
            if let Some(tls) = channel.tls()
                && !channel.is_handshaking()
            {
                tally.tickets.add(tls.tickets_received(), 1);
            }
            tally.payload_out += channel.payload_out;
            tally.payload_in += channel.payload_in;
            if attempt.sampled {
                sample(&mut tally.wire, attempt, channel);
            }
        });
    }

    /// The last account of a connection: what it fails, it fails here.
    pub(crate) fn ended(&self, attempt: &Attempt, result: &Result<(), Failed>) {
        {
            let mut stats = self.stats.borrow_mut();
            stats.in_flight -= 1;
            stats.second.failed += u64::from(result.is_err());
            stats.failures += u64::from(result.is_err());
        }
        self.tally(self.now(), |tally| tally.completed.connections += u64::from(result.is_ok()));
        self.tally(attempt.begun.get(), |tally| match result {
            Ok(()) => tally.connections_succeeded += 1,
            Err(failed) => {
                tally.wrong_offers += u64::from(failed.class == Class::WrongOffer);
                tally.fail(failed);
            }
        });
        self.notify_if_idle();
    }

    /// Failures so far, in whichever phase.
    pub(crate) fn failures(&self) -> u64 {
        self.stats.borrow().failures
    }

    fn succeed(&self, now: Duration, response: Duration) {
        self.tally(now, |tally| tally.completed.transactions += 1);
        let second = &mut self.stats.borrow_mut().second;
        second.succeeded += 1;
        second.requests += u64::from(self.plan.has_requests());
        second.response.record(response);
    }

    fn tally(&self, intended: Duration, note: impl FnOnce(&mut Tally)) {
        if let Some(tally) = self.stats.borrow_mut().at(intended) {
            note(tally);
        }
    }
}

impl Tally {
    fn of(&mut self, resumed: bool) -> &mut Times {
        if resumed { &mut self.resumed } else { &mut self.full }
    }

    fn respond(&mut self, intended: Duration, actual: Duration) {
        self.succeeded += 1;
        self.response_intended.record(intended);
        self.response_actual.record(actual);
    }
}

fn sample(wire: &mut WireCost, attempt: &Attempt, channel: &Channel) {
    let Ok(tcp) = channel.stream().tcp_info() else { return };
    let (out_bytes, in_bytes) = attempt.handshake_bytes.get();
    let handshake = if attempt.resumed() { &mut wire.resumed } else { &mut wire.full };
    handshake.handshakes += 1;
    handshake.out_bytes += out_bytes;
    handshake.in_bytes += in_bytes;
    handshake.out_segments += u64::from(tcp.segments_out);
    handshake.in_segments += u64::from(tcp.segments_in);
    let requests = &mut wire.requests;
    requests.requests += attempt.transactions.get();
    requests.out_payload_bytes += channel.payload_out;
    requests.in_payload_bytes += channel.payload_in;
    requests.out_wire_bytes += channel.bytes_out.saturating_sub(out_bytes);
    requests.in_wire_bytes += channel.bytes_in.saturating_sub(in_bytes);
}
