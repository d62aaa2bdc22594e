//! The life of one connection: connect, handshake, and then what it is for (`exchange.rs`); and what is noted on the way.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use courser_net::{Stream, Then};
use courser_tls_client::{ClientConnection, ClientSessions, ServerName};
use tokio::time::timeout;

use crate::channel::{Channel, ReadOutcome};
use crate::exchange;
use crate::failure::{Class, Failed, Step};
use crate::offered::Session;
use crate::plan::{CloseMode, Workload};
use crate::worker::Worker;

/// A client: what it keeps from connection to connection.
pub(crate) struct Client {
    pub(crate) name: Option<ServerName>,
    pub(crate) purse: ClientSessions,
    /// Which it is: with this address of several it begins.
    pub(crate) number: u64,
    /// Connections made.
    pub(crate) used: u32,
}

/// A connection as it is accounted for. Times are from the start of the run.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// When it was meant to start.
    pub(crate) intended: Duration,
    /// Whether that was fixed in advance.
    pub(crate) scheduled: bool,
    /// When it started.
    pub(crate) started: Duration,
    /// Whether its client has been there before.
    pub(crate) returns: bool,
    /// Whether its segments are counted.
    pub(crate) sampled: bool,
    /// When the running transaction began.
    pub(crate) begun: Cell<Duration>,
    /// TLS bytes of its handshake, out and in.
    pub(crate) handshake_bytes: Cell<(u64, u64)>,
    /// Transactions that succeeded after it.
    pub(crate) transactions: Cell<u64>,
    step: Cell<Step>,
    /// Whether the first transaction is accounted for.
    pub(crate) answered: Cell<bool>,
    resumed: Cell<bool>,
}

/// Times of a handshake, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeTimes {
    pub(crate) server_hello: Duration,
    pub(crate) done: Duration,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) offered: Session,
}

/// Connects, does what a connection is for, closes, and accounts for it. `intended`: when it was meant to start, if
/// that was fixed in advance.
pub(crate) async fn visit(worker: &Worker, client: &mut Client, intended: Option<Duration>) {
    let visit = Attempt::new(worker, intended, client.used > 0);
    worker.attempt(&visit);
    let account = Account { worker, visit: &visit };
    let mut slot = None;
    let result = steps(worker, client, &visit, &mut slot).await;
    client.used += 1;
    if let Some(channel) = slot {
        settle(worker, client, &visit, channel, result.is_err());
    }
    account.close(&result);
}

/// Sees to it that every connection is accounted for, also one that is dropped at the end of the run.
struct Account<'v> {
    worker: &'v Worker,
    visit: &'v Attempt,
}

impl Account<'_> {
    fn close(self, result: &Result<(), Failed>) {
        self.worker.ended(self.visit, result);
        std::mem::forget(self);
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        let done = self.visit.answered.get();
        let result = if done { Ok(()) } else { Err(Failed::timeout(self.visit.step.get())) };
        self.worker.ended(self.visit, &result);
    }
}

async fn steps(
    worker: &Worker,
    client: &mut Client,
    visit: &Attempt,
    slot: &mut Option<Channel>,
) -> Result<(), Failed> {
    let stream = connect(worker, client).await?;
    let connected = worker.now();
    let (tls, has_session) = secure(worker, client)?;
    let channel = slot.insert(Channel::new(stream, tls, &worker.buffers));
    if let Workload::Abandon { after } = worker.plan.exchange {
        return abandon(worker, visit, channel, has_session, after).await;
    }
    if channel.is_handshaking() {
        let shaken = within(worker, visit, handshake(worker, visit, channel, has_session)).await?;
        visit.resumed.set(worker.shook(visit, connected, &shaken, channel));
    }
    exchange::exchange(worker, visit, channel).await
}

impl Attempt {
    fn new(worker: &Worker, intended: Option<Duration>, returns: bool) -> Self {
        let started = worker.now();
        let begun = intended.unwrap_or(started);
        Self {
            intended: begun,
            begun: Cell::new(begun),
            scheduled: intended.is_some(),
            started,
            returns,
            sampled: worker.samples(),
            handshake_bytes: Cell::default(),
            transactions: Cell::default(),
            step: Cell::default(),
            answered: Cell::default(),
            resumed: Cell::default(),
        }
    }

    pub(crate) fn at(&self, step: Step) -> Step {
        self.step.set(step);
        step
    }

    /// How far it has come.
    pub(crate) fn step(&self) -> Step {
        self.step.get()
    }

    /// Whether its handshake was a resumption.
    pub(crate) fn resumed(&self) -> bool {
        self.resumed.get()
    }
}

/// Bounds a part of the connection's life, and says in which step it was when its time was over.
pub(crate) async fn within<T>(
    worker: &Worker,
    visit: &Attempt,
    part: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    timeout(worker.plan.phases.timeout, part).await.unwrap_or_else(|_| Err(Failed::timeout(visit.step.get())))
}

async fn connect(worker: &Worker, client: &Client) -> Result<Stream, Failed> {
    let limit = worker.plan.phases.connect_timeout;
    match timeout(limit, worker.connect(client)).await {
        Ok(connected) => connected.map_err(|error| Failed::connect(&error)),
        Err(_) => Err(Failed::timeout(Step::Connect)),
    }
}

/// The client's end of TLS, and whether it has a session to offer.
fn secure(worker: &Worker, client: &mut Client) -> Result<(Option<ClientConnection>, bool), Failed> {
    let (Some(security), Some(name)) = (&worker.plan.target.security, &client.name) else {
        return Ok((None, false));
    };
    let purse = std::mem::take(&mut client.purse);
    let has_session = !purse.is_empty();
    let tls = ClientConnection::new(&security.terms, name, purse).map_err(|failure| Failed::tls(&failure))?;
    Ok((Some(tls), has_session))
}

async fn handshake(
    worker: &Worker,
    visit: &Attempt,
    channel: &mut Channel,
    has_session: bool,
) -> Result<HandshakeTimes, Failed> {
    let offered = send_hello(worker, visit, channel, has_session).await?;
    let mut server_hello = None;
    while channel.is_handshaking() {
        if channel.receive(visit.step.get()).await? != ReadOutcome::Bytes {
            return Err(Failed::truncated(visit.step.get()));
        }
        server_hello.get_or_insert_with(|| worker.now());
        visit.at(Step::Handshake);
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
    visit: &Attempt,
    channel: &mut Channel,
    has_session: bool,
) -> Result<Session, Failed> {
    visit.at(Step::Hello);
    let hello = channel.hello()?;
    let offered = worker.check(hello, has_session).map_err(|why| Failed::new(Class::WrongOffer, why))?;
    if worker.sends_early()
        && let Workload::Http { request, count, .. } = &worker.plan.exchange
    {
        channel.send_early(request.bytes(exchange::then(*count, 1)));
    }
    channel.flush(Then::Wait, Step::Hello).await?;
    Ok(offered)
}

async fn abandon(
    worker: &Worker,
    visit: &Attempt,
    channel: &mut Channel,
    has_session: bool,
    after: Duration,
) -> Result<(), Failed> {
    if channel.is_handshaking() {
        within(worker, visit, send_hello(worker, visit, channel, has_session)).await?;
    }
    if !after.is_zero() {
        tokio::time::sleep(after).await;
    }
    if worker.plan.close == CloseMode::Reset {
        channel.stream().reset_on_close();
    }
    visit.answered.set(true);
    worker.abandoned(visit);
    Ok(())
}

/// After the last step: the purse goes back to the client; after a failure the alert goes out if it can.
fn settle(worker: &Worker, client: &mut Client, visit: &Attempt, mut channel: Channel, failed: bool) {
    if failed {
        channel.try_flush();
    }
    worker.weigh(visit, &channel);
    if let Some(purse) = channel.into_purse() {
        client.purse = purse;
    }
}
