//! What a connection is for, once it is secured: requests, bytes there and back, a handshake's confirmation, or silence;
//! and how it ends.

mod http2;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use courser_net::Then;
use tokio::time::timeout;

use crate::attempt::{AnswerTimes, Attempt};
use crate::channel::{Channel, ReadOutcome};
use crate::failure::{Class, Failed, Step};
use crate::http::{self, Answer, Expect, Http2Request, Rendered, WrongAnswer};
use crate::plan::Workload;
use crate::tally::PeerClose;
use crate::worker::Worker;
use courser_record::CloseMode;

/// Does what the connection is for, and ends it.
pub(crate) async fn exchange(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
) -> Result<(), Failed> {
    let server_first = match &worker.plan.exchange {
        Workload::Handshake => return confirm(worker, attempt, channel).await,
        Workload::Http { request, expect, count } => match http2_request(request, channel) {
            Some(request) => {
                http2::requests(worker, attempt, channel, request, expect, *count).await?;
                false
            }
            None => requests(worker, attempt, channel, request, expect, *count).await?,
        },
        Workload::Echo { bytes, count } => {
            echoes(worker, attempt, channel, *bytes, *count).await?;
            false
        }
        Workload::Hold { first, .. } => {
            if let Some((request, expect)) = first {
                if let Some(request) = http2_request(request, channel) {
                    return http2::hold(worker, attempt, channel, request, expect).await;
                }
                let mut answer = Answer::new(expect, request.method());
                let asked = ask(worker, attempt, channel, request.bytes(http::Then::KeepAlive), &mut answer);
                within(worker, attempt, asked).await?;
            }
            return hold(worker, attempt, channel).await;
        }
        Workload::Abandon { .. } => false,
    };
    close(worker, attempt, channel, server_first).await
}

/// The request of a connection that speaks HTTP/2.
fn http2_request<'r>(request: &'r Rendered, channel: &Channel) -> Option<&'r Http2Request> {
    request.http2().filter(|_| channel.is_http2())
}

/// Bounds a part of the connection's life, and says in which step it was when its time was over.
pub(crate) async fn within<T>(
    worker: &Worker,
    attempt: &Attempt,
    part: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    timeout(worker.plan.phases.timeout, part).await.unwrap_or_else(|_| Err(Failed::timeout(attempt.step())))
}

/// Sends close_notify with the Finished and reads to the server's end: whatever TLS record comes is its confirmation, and
/// tickets come before it (RFC 8446, section 4.6.1).
async fn confirm(worker: &Worker, attempt: &Attempt, channel: &mut Channel) -> Result<(), Failed> {
    attempt.at(Step::Confirmation);
    let close = worker.plan.close;
    if close == CloseMode::CloseNotify {
        channel.send_close_notify()?;
    }
    let then = if close == CloseMode::Rst { Then::Wait } else { Then::Shutdown };
    channel.flush(then, Step::Confirmation).await?;
    if close == CloseMode::Rst {
        channel.stream().reset_on_close();
        worker.record_confirmation(attempt, None);
    } else {
        channel.shutdown();
        let outcome = within(worker, attempt, channel.receive(Step::Confirmation)).await?;
        let confirmed = worker.now();
        let ending =
            if outcome == ReadOutcome::End { PeerClose::Fin } else { end(worker, channel, false).await };
        if ending == PeerClose::Reset {
            return Err(Failed::new(Class::Reset(Step::Confirmation), "the server reset the connection"));
        }
        worker.record_confirmation(attempt, (outcome != ReadOutcome::End).then_some(confirmed));
        worker.record_close(attempt, ending);
        worker.record_lingering(attempt, worker.now() - confirmed);
    }
    attempt.answered.set(true);
    Ok(())
}

/// Requests, one after the other. Returns whether the server closes the connection: it was asked to, or its answer says so.
async fn requests(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    request: &Rendered,
    expect: &Expect,
    count: Option<u32>,
) -> Result<bool, Failed> {
    let mut answer = Answer::new(expect, request.method());
    for number in 1.. {
        if number > 1 {
            rest(worker).await;
            if worker.is_over() {
                return Ok(false);
            }
            answer.restart();
            worker.record_next_transaction(attempt);
        }
        let then = then(count, number);
        within(worker, attempt, ask(worker, attempt, channel, request.bytes(then), &mut answer)).await?;
        let server_closes = then == http::Then::Close || answer.closes();
        if server_closes || worker.is_over() {
            return Ok(server_closes);
        }
    }
    Ok(false)
}

/// Between an answer and the next request.
async fn rest(worker: &Worker) {
    let pause = worker.plan.phases.pause;
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

/// The last request of a connection asks the server to close it.
pub(crate) fn then(count: Option<u32>, number: u32) -> http::Then {
    if count == Some(number) { http::Then::Close } else { http::Then::KeepAlive }
}

/// One request and its answer: one transaction.
async fn ask(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    request: &[u8],
    answer: &mut Answer,
) -> Result<(), Failed> {
    let first = attempt.begun.get() == attempt.intended;
    let asked = worker.now();
    attempt.at(Step::Answer);
    attempt.answered.set(false);
    if !channel.early_arrived() {
        channel.send(request)?;
    }
    channel.flush(Then::Wait, Step::Answer).await?;
    let mut first_received = None;
    let mut first_byte = None;
    loop {
        let outcome = channel.receive(Step::Answer).await?;
        first_received.get_or_insert_with(|| worker.now());
        if !channel.plaintext.is_empty() {
            first_byte.get_or_insert_with(|| worker.now());
            let progress = answer.feed(&channel.plaintext)?;
            channel.plaintext.drain(..progress.consumed);
            if progress.done {
                break;
            }
        }
        if outcome != ReadOutcome::Bytes {
            answer.end().map_err(|why| ended(why, attempt.step()))?;
            break;
        }
    }
    attempt.answered.set(true);
    worker.answered(attempt, AnswerTimes { first, asked, first_received, first_byte, page: answer.page() });
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
    attempt: &Attempt,
    channel: &mut Channel,
    bytes: usize,
    count: u32,
) -> Result<(), Failed> {
    let sent = http::body(bytes);
    for number in 0..count {
        if number > 0 {
            worker.record_next_transaction(attempt);
        }
        within(worker, attempt, echo(worker, attempt, channel, &sent)).await?;
    }
    Ok(())
}

/// Bytes there and back. They are sent in pieces, so that neither side's buffers have to hold all of them.
async fn echo(worker: &Worker, attempt: &Attempt, channel: &mut Channel, sent: &[u8]) -> Result<(), Failed> {
    const PIECE: usize = 64 * 1024;
    let first = attempt.begun.get() == attempt.intended;
    let asked = worker.now();
    attempt.at(Step::Answer);
    attempt.answered.set(false);
    let mut first_byte = None;
    for piece in sent.chunks(PIECE) {
        channel.send(piece)?;
        channel.flush(Then::Wait, Step::Answer).await?;
        while channel.plaintext.len() < piece.len() {
            if channel.receive(Step::Answer).await? != ReadOutcome::Bytes {
                return Err(Failed::truncated(Step::Answer));
            }
            first_byte.get_or_insert_with(|| worker.now());
        }
        if channel.plaintext != piece {
            return Err(Failed::new(Class::WrongAnswer, "other bytes came back than were sent"));
        }
        channel.plaintext.clear();
    }
    attempt.answered.set(true);
    worker
        .answered(attempt, AnswerTimes { first, asked, first_received: first_byte, first_byte, page: None });
    Ok(())
}

/// Waits until the run ends and drops the connection, or the server ends it first.
async fn hold(worker: &Worker, attempt: &Attempt, channel: &mut Channel) -> Result<(), Failed> {
    channel.flush(Then::Wait, Step::Confirmation).await?;
    if !attempt.answered.replace(true) {
        worker.record_confirmation(attempt, Some(worker.now()));
    }
    worker.hold();
    while channel.receive(Step::Answer).await? == ReadOutcome::Bytes {
        channel.plaintext.clear();
    }
    worker.release();
    Err(Failed::truncated(Step::Answer))
}

/// How long a server is given to end a connection after the last answer, beside the round trip of a network. A server on the
/// same machine needs microseconds; one that needs longer is named for it, and holds no client up: RFC 9112, section 9.6, has
/// the client close.
const PATIENCE: Duration = Duration::from_millis(5);

/// Ends a connection whose answer is whole. A server that was asked to close has the first word, so that the wait for
/// stray segments (TIME_WAIT) is with it and local ports are free again at once; else the client has.
async fn close(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    server_first: bool,
) -> Result<(), Failed> {
    let answered = worker.now();
    if worker.plan.close == CloseMode::Rst {
        channel.stream().reset_on_close();
        worker.record_close(attempt, PeerClose::NotAwaited);
        return Ok(());
    }
    if !server_first {
        send_close_notify_and_shutdown(worker, channel).await?;
        channel.shutdown();
    }
    let ending = end(worker, channel, server_first).await;
    if server_first {
        worker.record_lingering(attempt, worker.now() - answered);
    }
    worker.record_close(attempt, ending);
    if ending != PeerClose::Reset {
        // The server may have closed for good.
        let _ = send_close_notify_and_shutdown(worker, channel).await;
    }
    Ok(())
}

/// The client's part of the end: it answers close_notify at once (RFC 5246, section 7.2.1; RFC 8446, section 6.1; there are
/// servers that wait for that), and awaits the server's FIN for no longer than [`PATIENCE`]. A FIN that answers ours, or our
/// close_notify, is a round trip away: a server whose FIN has not come by then does not linger. One that was to close first
/// may be a round trip behind its answer, where what was sent waits for an acknowledgement.
async fn end(worker: &Worker, channel: &mut Channel, server_first: bool) -> PeerClose {
    let mut ended = timeout(PATIENCE, read_to_end(worker, channel)).await;
    if ended.is_err() && server_first && !channel.close_notify_received {
        ended = timeout(worker.fastest_answer.get(), read_to_end(worker, channel)).await;
    }
    match ended {
        Ok(ending) => ending,
        Err(_) if channel.close_notify_received => PeerClose::CloseNotify,
        Err(_) if server_first => PeerClose::Lingered,
        Err(_) => PeerClose::NotAwaited,
    }
}

/// Reads until the server has closed. How it does is counted, and is no failure: the answer is there.
async fn read_to_end(worker: &Worker, channel: &mut Channel) -> PeerClose {
    let mut answers_close = worker.plan.close == CloseMode::CloseNotify;
    loop {
        if channel.close_notify_received && std::mem::take(&mut answers_close) {
            // Most servers send FIN with it: then it is read first, and nothing is sent that meets a closed socket.
            if let Some(ended) = at_once(channel.receive(Step::Answer)).await {
                return PeerClose::of(&ended, channel);
            }
            if channel.send_close_notify().is_err() || channel.flush(Then::Wait, Step::Answer).await.is_err()
            {
                return PeerClose::CloseNotify;
            }
        }
        channel.plaintext.clear();
        let received = channel.receive(Step::Answer).await;
        if !matches!(received, Ok(ReadOutcome::Bytes | ReadOutcome::CloseNotify)) {
            return PeerClose::of(&received, channel);
        }
    }
}

/// What a part gives without waiting.
async fn at_once<T>(part: impl Future<Output = T>) -> Option<T> {
    let mut part = pin!(part);
    poll_fn(|cx| match part.as_mut().poll(cx) {
        Poll::Ready(given) => Poll::Ready(Some(given)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

impl PeerClose {
    /// How a connection has ended whose last read came to this. After close_notify a reset is the kernel's word for a
    /// socket that was closed before ours came: everything had been delivered.
    fn of(received: &Result<ReadOutcome, Failed>, channel: &Channel) -> Self {
        match received {
            _ if channel.close_notify_received => Self::CloseNotify,
            Ok(_) => Self::Fin,
            Err(Failed { class: Class::Reset(_), .. }) => Self::Reset,
            Err(_) => Self::NotAwaited,
        }
    }
}

/// Servers throw a session away whose connection ended without close_notify (RFC 5246, section 7.2.1; OpenSSL does).
async fn send_close_notify_and_shutdown(worker: &Worker, channel: &mut Channel) -> Result<(), Failed> {
    if worker.plan.close == CloseMode::CloseNotify {
        channel.send_close_notify()?;
    }
    channel.flush(Then::Shutdown, Step::Answer).await
}
