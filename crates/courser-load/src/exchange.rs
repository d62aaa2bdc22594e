//! What a connection is for, once it is secured: requests, bytes there and back, a handshake's confirmation, or silence;
//! and how it ends.

use std::future::Future;

use courser_net::Then;
use tokio::time::timeout;

use crate::attempt::{AnswerTimes, Attempt};
use crate::channel::{Channel, ReadOutcome};
use crate::failure::{Class, Failed, Step};
use crate::http::{self, Answer, Expect, Rendered, WrongAnswer};
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
    match &worker.plan.exchange {
        Workload::Handshake => return confirm(worker, attempt, channel).await,
        Workload::Http { request, expect, count } => {
            requests(worker, attempt, channel, request, expect, *count).await?;
        }
        Workload::Echo { bytes, count } => echoes(worker, attempt, channel, *bytes, *count).await?,
        Workload::Hold { first } => {
            if let Some((request, expect)) = first {
                let mut answer = Answer::new(expect, request.method());
                let asked = ask(worker, attempt, channel, request.bytes(http::Then::KeepAlive), &mut answer);
                within(worker, attempt, asked).await?;
            }
            return hold(worker, attempt, channel).await;
        }
        Workload::Abandon { .. } => {}
    }
    close(worker, attempt, channel).await
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
        let ending = within(worker, attempt, read_to_end(worker, attempt, channel, true)).await?;
        worker.record_close(attempt, ending);
    }
    attempt.answered.set(true);
    Ok(())
}

/// Reads until the server has closed.
async fn read_to_end(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    confirms: bool,
) -> Result<PeerClose, Failed> {
    let mut first = confirms;
    loop {
        let outcome = channel.receive(attempt.step()).await?;
        if std::mem::take(&mut first) {
            worker.record_confirmation(attempt, (outcome != ReadOutcome::End).then(|| worker.now()));
            attempt.answered.set(true);
        }
        match outcome {
            ReadOutcome::Bytes | ReadOutcome::CloseNotify => channel.plaintext.clear(),
            ReadOutcome::End if channel.close_notify_received => return Ok(PeerClose::CloseNotify),
            ReadOutcome::End => return Ok(PeerClose::Fin),
        }
    }
}

async fn requests(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    request: &Rendered,
    expect: &Expect,
    count: Option<u32>,
) -> Result<(), Failed> {
    let mut answer = Answer::new(expect, request.method());
    for number in 1.. {
        if number > 1 {
            answer.restart();
            worker.record_next_transaction(attempt);
        }
        let then = then(count, number);
        within(worker, attempt, ask(worker, attempt, channel, request.bytes(then), &mut answer)).await?;
        if then == http::Then::Close || answer.closes() || worker.is_over() {
            break;
        }
    }
    Ok(())
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
    worker.answered(attempt, AnswerTimes { first, asked, first_received, first_byte });
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
    worker.answered(attempt, AnswerTimes { first, asked, first_received: first_byte, first_byte });
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

/// The server closes first where the last request has asked it to, so that the wait for stray segments (TIME_WAIT) is
/// with it and local ports are free again at once.
async fn close(worker: &Worker, attempt: &Attempt, channel: &mut Channel) -> Result<(), Failed> {
    if worker.plan.close == CloseMode::Rst {
        channel.stream().reset_on_close();
        worker.record_close(attempt, PeerClose::NotAwaited);
        return Ok(());
    }
    if matches!(worker.plan.exchange, Workload::Echo { .. }) {
        send_close_notify_and_shutdown(worker, channel).await?;
        channel.shutdown();
    }
    // The answer is there; how the server closes is counted, and is no failure.
    let ending = match within(worker, attempt, read_to_end(worker, attempt, channel, false)).await {
        Ok(ending) => ending,
        Err(Failed { class: Class::Reset(_), .. }) => PeerClose::Reset,
        Err(_) => PeerClose::NotAwaited,
    };
    worker.record_close(attempt, ending);
    if ending != PeerClose::Reset {
        // The server may have closed for good.
        let _ = send_close_notify_and_shutdown(worker, channel).await;
    }
    Ok(())
}

/// Servers throw a session away whose connection ended without close_notify (RFC 5246, section 7.2.1; OpenSSL does).
async fn send_close_notify_and_shutdown(worker: &Worker, channel: &mut Channel) -> Result<(), Failed> {
    if worker.plan.close == CloseMode::CloseNotify {
        channel.send_close_notify()?;
    }
    channel.flush(Then::Shutdown, Step::Answer).await
}
