//! The life of one connection: connect, handshake, and then what it is for (`exchange.rs`); each records what it sees.

use std::time::Duration;

use courser_net::{Stream, Then};
use courser_tls_client::ClientConnection;
use tokio::time::timeout;

use crate::attempt::{Attempt, Client, HandshakeTimes};
use crate::channel::{Channel, ReadOutcome};
use crate::exchange::{self, within};
use crate::failure::{Class, Failed, Step};
use crate::offered::Session;
use crate::plan::Workload;
use crate::worker::Worker;
use courser_record::CloseMode;

/// Connects, does what a connection is for, closes, and accounts for it. `intended`: when it was meant to start, if
/// that was fixed in advance.
pub(crate) async fn run_attempt(worker: &Worker, client: &mut Client, intended: Option<Duration>) {
    let attempt = Attempt::new(worker.now(), worker.samples(), intended, client.was_served);
    worker.record_start(&attempt);
    let account = Account { worker, attempt: &attempt };
    let mut slot = None;
    let result = steps(worker, client, &attempt, &mut slot).await;
    client.used += 1;
    client.was_served = result.is_ok();
    if let Some(channel) = slot {
        settle(worker, client, &attempt, channel, result.is_err());
    }
    account.close(&result);
}

/// Sees to it that every connection is accounted for, also one that is dropped at the end of the run.
struct Account<'v> {
    worker: &'v Worker,
    attempt: &'v Attempt,
}

impl Account<'_> {
    fn close(self, result: &Result<(), Failed>) {
        self.worker.ended(self.attempt, result);
        std::mem::forget(self);
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        let done = self.attempt.answered.get();
        let result = if done { Ok(()) } else { Err(Failed::unfinished(self.attempt.step())) };
        self.worker.ended(self.attempt, &result);
    }
}

async fn steps(
    worker: &Worker,
    client: &mut Client,
    attempt: &Attempt,
    slot: &mut Option<Channel>,
) -> Result<(), Failed> {
    let stream = connect(worker, client).await?;
    let connected = worker.now();
    let (tls, has_session) = secure(worker, client)?;
    let channel = slot.insert(Channel::new(stream, tls, &worker.buffers));
    if let Workload::Abandon { after } = worker.plan.exchange {
        return abandon(worker, attempt, channel, has_session, after).await;
    }
    if channel.is_handshaking() {
        let times = within(worker, attempt, handshake(worker, attempt, channel, has_session)).await?;
        attempt.set_resumed(worker.record_handshake(attempt, connected, &times, channel));
        if worker.requires_http2() && !channel.is_http2() {
            let why = "the server has not chosen HTTP/2, and nothing else was offered (ALPN)";
            return Err(Failed::new(Class::Http2NotAgreed, why));
        }
    }
    exchange::exchange(worker, attempt, channel).await
}

async fn connect(worker: &Worker, client: &Client) -> Result<Stream, Failed> {
    let limit = worker.plan.phases.connect_timeout;
    match timeout(limit, worker.connect(client)).await {
        Ok(connected) => connected.map_err(|error| Failed::connect(&error, worker.address(client))),
        Err(_) => Err(Failed::timeout(Step::Connect)),
    }
}

/// The client's end of TLS, and whether it has a session to offer.
fn secure(worker: &Worker, client: &mut Client) -> Result<(Option<ClientConnection>, bool), Failed> {
    let (Some(security), Some(name)) = (&worker.plan.target.security, &client.name) else {
        return Ok((None, false));
    };
    let sessions = std::mem::take(&mut client.sessions);
    let has_session = !sessions.is_empty();
    let tls =
        ClientConnection::new(&security.terms, name, sessions).map_err(|failure| Failed::tls(&failure))?;
    Ok((Some(tls), has_session))
}

async fn handshake(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    has_session: bool,
) -> Result<HandshakeTimes, Failed> {
    let offered = send_hello(worker, attempt, channel, has_session).await?;
    let mut server_hello = None;
    while channel.is_handshaking() {
        if channel.receive(attempt.step()).await? != ReadOutcome::Bytes {
            return Err(Failed::truncated(attempt.step()));
        }
        server_hello.get_or_insert_with(|| worker.now());
        attempt.at(Step::Handshake);
        if channel.is_handshaking() {
            channel.flush(Then::Wait, Step::Handshake).await?;
        }
    }
    let done = worker.now();
    let server_hello = server_hello.unwrap_or(done);
    Ok(HandshakeTimes {
        server_hello,
        done,
        bytes_out: channel.bytes_out + channel.queued(),
        bytes_in: channel.bytes_in,
        offered,
    })
}

/// Sends the ClientHello if it offers what was asked.
async fn send_hello(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    has_session: bool,
) -> Result<Session, Failed> {
    attempt.at(Step::Hello);
    let hello = channel.hello()?;
    let offered = worker.check(hello, has_session).map_err(|why| Failed::new(Class::WrongOffer, why))?;
    if worker.sends_early()
        && let Workload::Http { request, count, .. } = &worker.plan.exchange
    {
        channel.send_early(request.bytes(exchange::then(*count, 1)));
    }
    channel.flush_hello(&worker.plan.sockets, Step::Hello).await?;
    Ok(offered)
}

async fn abandon(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    has_session: bool,
    after: Duration,
) -> Result<(), Failed> {
    if channel.is_handshaking() {
        within(worker, attempt, send_hello(worker, attempt, channel, has_session)).await?;
    }
    if !after.is_zero() {
        tokio::time::sleep(after).await;
    }
    if worker.plan.close == CloseMode::Rst {
        channel.stream().reset_on_close();
    }
    attempt.answered.set(true);
    worker.record_abandoned(attempt);
    Ok(())
}

/// After the last step: the sessions go back to the client; after a failure the alert goes out if it can.
fn settle(worker: &Worker, client: &mut Client, attempt: &Attempt, mut channel: Channel, failed: bool) {
    if failed {
        channel.try_flush();
    }
    worker.record_bytes(attempt, &channel);
    if let Some(sessions) = channel.into_sessions() {
        client.sessions = sessions;
    }
}
