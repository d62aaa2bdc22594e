//! The life of one connection: connect, handshake, exchange, close; and what is noted on the way.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use courser_net::{Stream, Then};
use courser_tls::client::{ClientConnection, Purse, ServerName};
use tokio::time::timeout;

use crate::account::Answered;
use crate::channel::{Came, Channel};
use crate::failure::{Class, Failed, Step};
use crate::http::{self, Answer, Expect, Rendered, WrongAnswer};
use crate::offered::Session;
use crate::plan::{Close, Exchange};
use crate::tally::Ending;
use crate::worker::Worker;

/// A client: what it keeps from connection to connection.
pub(crate) struct Client {
    pub(crate) name: Option<ServerName>,
    pub(crate) purse: Purse,
    /// Connections made.
    pub(crate) used: u32,
}

/// A connection as it is accounted for. Times are from the start of the run.
#[derive(Debug)]
pub(crate) struct Visit {
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
    answered: Cell<bool>,
    resumed: Cell<bool>,
}

/// Times of a handshake, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shaken {
    pub(crate) server_hello: Duration,
    pub(crate) done: Duration,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) offered: Session,
}

/// Connects, does what a connection is for, closes, and accounts for it. `intended`: when it was meant to start, if
/// that was fixed in advance.
pub(crate) async fn visit(worker: &Worker, client: &mut Client, intended: Option<Duration>) {
    let visit = Visit::new(worker, intended, client.used > 0);
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
    visit: &'v Visit,
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
    visit: &Visit,
    slot: &mut Option<Channel>,
) -> Result<(), Failed> {
    let stream = connect(worker).await?;
    let connected = worker.now();
    let (tls, has_session) = secure(worker, client)?;
    let channel = slot.insert(Channel::new(stream, tls, &worker.buffers));
    if let Exchange::Abandon { after } = worker.plan.exchange {
        return abandon(worker, visit, channel, has_session, after).await;
    }
    if channel.is_handshaking() {
        let shaken = within(worker, visit, handshake(worker, visit, channel, has_session)).await?;
        visit.resumed.set(worker.shook(visit, connected, &shaken, channel));
    }
    exchange(worker, visit, channel).await
}

impl Visit {
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

    fn at(&self, step: Step) -> Step {
        self.step.set(step);
        step
    }

    /// Whether its handshake was a resumption.
    pub(crate) fn resumed(&self) -> bool {
        self.resumed.get()
    }
}

/// Bounds a part of the connection's life, and says in which step it was when its time was over.
async fn within<T>(
    worker: &Worker,
    visit: &Visit,
    part: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    timeout(worker.plan.phases.timeout, part).await.unwrap_or_else(|_| Err(Failed::timeout(visit.step.get())))
}

async fn connect(worker: &Worker) -> Result<Stream, Failed> {
    let limit = worker.plan.phases.connect_timeout;
    match timeout(limit, worker.connect()).await {
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
    visit: &Visit,
    channel: &mut Channel,
    has_session: bool,
) -> Result<Shaken, Failed> {
    let offered = send_hello(worker, visit, channel, has_session).await?;
    let mut server_hello = None;
    while channel.is_handshaking() {
        if channel.receive(visit.step.get()).await? != Came::Bytes {
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
    Ok(Shaken {
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
    visit: &Visit,
    channel: &mut Channel,
    has_session: bool,
) -> Result<Session, Failed> {
    visit.at(Step::Hello);
    let hello = channel.hello()?;
    let offered = worker.check(hello, has_session).map_err(|why| Failed::new(Class::WrongOffer, why))?;
    if worker.sends_early()
        && let Exchange::Http { request, count, .. } = &worker.plan.exchange
    {
        channel.send_early(request.bytes(then(*count, 1)));
    }
    channel.flush(Then::Wait, Step::Hello).await?;
    Ok(offered)
}

async fn abandon(
    worker: &Worker,
    visit: &Visit,
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
    if worker.plan.close == Close::Reset {
        channel.stream().reset_on_close();
    }
    visit.answered.set(true);
    worker.abandoned(visit);
    Ok(())
}

async fn exchange(worker: &Worker, visit: &Visit, channel: &mut Channel) -> Result<(), Failed> {
    match &worker.plan.exchange {
        Exchange::Handshake => return confirm(worker, visit, channel).await,
        Exchange::Http { request, expect, count } => {
            requests(worker, visit, channel, request, expect, *count).await?;
        }
        Exchange::Echo { bytes, count } => echoes(worker, visit, channel, *bytes, *count).await?,
        Exchange::Hold { first } => {
            if let Some((request, expect)) = first {
                let mut answer = Answer::new(expect, request.method());
                let asked = ask(worker, visit, channel, request.bytes(http::Then::KeepAlive), &mut answer);
                within(worker, visit, asked).await?;
            }
            return hold(worker, visit, channel).await;
        }
        Exchange::Abandon { .. } => {}
    }
    close(worker, visit, channel).await
}

/// Says goodbye with the Finished and reads to the server's end: whatever TLS record comes is its confirmation, and
/// tickets come before it (RFC 8446, section 4.6.1).
async fn confirm(worker: &Worker, visit: &Visit, channel: &mut Channel) -> Result<(), Failed> {
    visit.at(Step::Confirmation);
    let close = worker.plan.close;
    if close == Close::CloseNotify {
        channel.send_close_notify()?;
    }
    let then = if close == Close::Reset { Then::Wait } else { Then::Shutdown };
    channel.flush(then, Step::Confirmation).await?;
    if close == Close::Reset {
        channel.stream().reset_on_close();
        worker.confirmed(visit, None);
    } else {
        channel.shutdown();
        let ending = within(worker, visit, read_to_end(worker, visit, channel, true)).await?;
        worker.parted(visit, ending);
    }
    visit.answered.set(true);
    Ok(())
}

/// Reads until the server has closed.
async fn read_to_end(
    worker: &Worker,
    visit: &Visit,
    channel: &mut Channel,
    confirms: bool,
) -> Result<Ending, Failed> {
    let mut first = confirms;
    loop {
        let came = channel.receive(visit.step.get()).await?;
        if std::mem::take(&mut first) {
            worker.confirmed(visit, (came != Came::End).then(|| worker.now()));
            visit.answered.set(true);
        }
        match came {
            Came::Bytes | Came::CloseNotify => channel.plaintext.clear(),
            Came::End if channel.goodbye => return Ok(Ending::CloseNotify),
            Came::End => return Ok(Ending::Fin),
        }
    }
}

async fn requests(
    worker: &Worker,
    visit: &Visit,
    channel: &mut Channel,
    request: &Rendered,
    expect: &Expect,
    count: Option<u32>,
) -> Result<(), Failed> {
    let mut answer = Answer::new(expect, request.method());
    for number in 1.. {
        if number > 1 {
            answer.restart();
            worker.attempt_again(visit);
        }
        let then = then(count, number);
        within(worker, visit, ask(worker, visit, channel, request.bytes(then), &mut answer)).await?;
        if then == http::Then::Close || answer.closes() || worker.is_over() {
            break;
        }
    }
    Ok(())
}

/// The last request of a connection asks the server to close it.
fn then(count: Option<u32>, number: u32) -> http::Then {
    if count == Some(number) { http::Then::Close } else { http::Then::KeepAlive }
}

/// One request and its answer: one transaction.
async fn ask(
    worker: &Worker,
    visit: &Visit,
    channel: &mut Channel,
    request: &[u8],
    answer: &mut Answer,
) -> Result<(), Failed> {
    let first = visit.begun.get() == visit.intended;
    let asked = worker.now();
    visit.at(Step::Answer);
    visit.answered.set(false);
    if !channel.early_arrived() {
        channel.send(request)?;
    }
    channel.flush(Then::Wait, Step::Answer).await?;
    let mut heard = None;
    let mut first_byte = None;
    loop {
        let came = channel.receive(Step::Answer).await?;
        heard.get_or_insert_with(|| worker.now());
        if !channel.plaintext.is_empty() {
            first_byte.get_or_insert_with(|| worker.now());
            let progress = answer.feed(&channel.plaintext)?;
            channel.plaintext.drain(..progress.consumed);
            if progress.done {
                break;
            }
        }
        if came != Came::Bytes {
            answer.end().map_err(|why| ended(why, visit.step.get()))?;
            break;
        }
    }
    visit.answered.set(true);
    worker.answered(visit, Answered { first, asked, heard, first_byte });
    Ok(())
}

/// The server's end in the middle of an answer is its own class; an answer that may end so and is wrong is wrong.
fn ended(why: WrongAnswer, step: Step) -> Failed {
    match why {
        WrongAnswer::Truncated { .. } => Failed::truncated(step),
        why => why.into(),
    }
}

async fn echoes(
    worker: &Worker,
    visit: &Visit,
    channel: &mut Channel,
    bytes: usize,
    count: u32,
) -> Result<(), Failed> {
    let sent = http::body(bytes);
    for number in 0..count {
        if number > 0 {
            worker.attempt_again(visit);
        }
        within(worker, visit, echo(worker, visit, channel, &sent)).await?;
    }
    Ok(())
}

/// Bytes there and back. They are sent in pieces, so that neither side's buffers have to hold all of them.
async fn echo(worker: &Worker, visit: &Visit, channel: &mut Channel, sent: &[u8]) -> Result<(), Failed> {
    const PIECE: usize = 64 * 1024;
    let first = visit.begun.get() == visit.intended;
    let asked = worker.now();
    visit.at(Step::Answer);
    visit.answered.set(false);
    let mut first_byte = None;
    for piece in sent.chunks(PIECE) {
        channel.send(piece)?;
        channel.flush(Then::Wait, Step::Answer).await?;
        while channel.plaintext.len() < piece.len() {
            if channel.receive(Step::Answer).await? != Came::Bytes {
                return Err(Failed::truncated(Step::Answer));
            }
            first_byte.get_or_insert_with(|| worker.now());
        }
        if channel.plaintext != piece {
            return Err(Failed::new(Class::WrongAnswer, "other bytes came back than were sent"));
        }
        channel.plaintext.clear();
    }
    visit.answered.set(true);
    worker.answered(visit, Answered { first, asked, heard: first_byte, first_byte });
    Ok(())
}

/// Waits until the run ends and drops the connection, or the server ends it first.
async fn hold(worker: &Worker, visit: &Visit, channel: &mut Channel) -> Result<(), Failed> {
    channel.flush(Then::Wait, Step::Confirmation).await?;
    if !visit.answered.replace(true) {
        worker.confirmed(visit, Some(worker.now()));
    }
    worker.hold();
    while channel.receive(Step::Answer).await? == Came::Bytes {
        channel.plaintext.clear();
    }
    worker.release();
    Err(Failed::truncated(Step::Answer))
}

/// The server closes first where the last request has asked it to, so that the wait for stray segments (TIME_WAIT) is
/// with it and local ports are free again at once.
async fn close(worker: &Worker, visit: &Visit, channel: &mut Channel) -> Result<(), Failed> {
    if worker.plan.close == Close::Reset {
        channel.stream().reset_on_close();
        worker.parted(visit, Ending::NotAwaited);
        return Ok(());
    }
    if matches!(worker.plan.exchange, Exchange::Echo { .. }) {
        say_goodbye(worker, channel).await?;
        channel.shutdown();
    }
    // The answer is there; how the server says goodbye is counted, and is no failure.
    let ending = match within(worker, visit, read_to_end(worker, visit, channel, false)).await {
        Ok(ending) => ending,
        Err(Failed { class: Class::Reset(_), .. }) => Ending::Reset,
        Err(_) => Ending::NotAwaited,
    };
    worker.parted(visit, ending);
    if ending != Ending::Reset {
        // The server may have closed for good.
        let _ = say_goodbye(worker, channel).await;
    }
    Ok(())
}

/// Servers throw a session away whose connection ended without close_notify (RFC 5246, section 7.2.1; OpenSSL does).
async fn say_goodbye(worker: &Worker, channel: &mut Channel) -> Result<(), Failed> {
    if worker.plan.close == Close::CloseNotify {
        channel.send_close_notify()?;
    }
    channel.flush(Then::Shutdown, Step::Answer).await
}

/// After the last step: the purse goes back to the client; after a failure the alert goes out if it can.
fn settle(worker: &Worker, client: &mut Client, visit: &Visit, mut channel: Channel, failed: bool) {
    if failed {
        channel.try_flush();
    }
    worker.weigh(visit, &channel);
    if let Some(purse) = channel.into_purse() {
        client.purse = purse;
    }
}
