//! What a connection is for, once it is secured: requests, bytes there and back, a handshake's confirmation, or silence;
//! and how it ends.

use courser_net::Then;

use crate::account::AnswerTimes;
use crate::channel::{Channel, ReadOutcome};
use crate::connection::{Attempt, within};
use crate::failure::{Class, Failed, Step};
use crate::http::{self, Answer, Expect, Rendered, WrongAnswer};
use crate::plan::Workload;
use crate::tally::PeerClose;
use crate::worker::Worker;
use courser_record::CloseMode;

/// Does what the connection is for, and ends it.
pub(crate) async fn exchange(worker: &Worker, visit: &Attempt, channel: &mut Channel) -> Result<(), Failed> {
    match &worker.plan.exchange {
        Workload::Handshake => return confirm(worker, visit, channel).await,
        Workload::Http { request, expect, count } => {
            requests(worker, visit, channel, request, expect, *count).await?;
        }
        Workload::Echo { bytes, count } => echoes(worker, visit, channel, *bytes, *count).await?,
        Workload::Hold { first } => {
            if let Some((request, expect)) = first {
                let mut answer = Answer::new(expect, request.method());
                let asked = ask(worker, visit, channel, request.bytes(http::Then::KeepAlive), &mut answer);
                within(worker, visit, asked).await?;
            }
            return hold(worker, visit, channel).await;
        }
        Workload::Abandon { .. } => {}
    }
    close(worker, visit, channel).await
}

/// Says goodbye with the Finished and reads to the server's end: whatever TLS record comes is its confirmation, and
/// tickets come before it (RFC 8446, section 4.6.1).
async fn confirm(worker: &Worker, visit: &Attempt, channel: &mut Channel) -> Result<(), Failed> {
    visit.at(Step::Confirmation);
    let close = worker.plan.close;
    if close == CloseMode::CloseNotify {
        channel.send_close_notify()?;
    }
    let then = if close == CloseMode::Rst { Then::Wait } else { Then::Shutdown };
    channel.flush(then, Step::Confirmation).await?;
    if close == CloseMode::Rst {
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
    visit: &Attempt,
    channel: &mut Channel,
    confirms: bool,
) -> Result<PeerClose, Failed> {
    let mut first = confirms;
    loop {
        let came = channel.receive(visit.step()).await?;
        if std::mem::take(&mut first) {
            worker.confirmed(visit, (came != ReadOutcome::End).then(|| worker.now()));
            visit.answered.set(true);
        }
        match came {
            ReadOutcome::Bytes | ReadOutcome::CloseNotify => channel.plaintext.clear(),
            ReadOutcome::End if channel.goodbye => return Ok(PeerClose::CloseNotify),
            ReadOutcome::End => return Ok(PeerClose::Fin),
        }
    }
}

async fn requests(
    worker: &Worker,
    visit: &Attempt,
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
pub(crate) fn then(count: Option<u32>, number: u32) -> http::Then {
    if count == Some(number) { http::Then::Close } else { http::Then::KeepAlive }
}

/// One request and its answer: one transaction.
async fn ask(
    worker: &Worker,
    visit: &Attempt,
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
        if came != ReadOutcome::Bytes {
            answer.end().map_err(|why| ended(why, visit.step()))?;
            break;
        }
    }
    visit.answered.set(true);
    worker.answered(visit, AnswerTimes { first, asked, heard, first_byte });
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
    visit: &Attempt,
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
async fn echo(worker: &Worker, visit: &Attempt, channel: &mut Channel, sent: &[u8]) -> Result<(), Failed> {
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
    visit.answered.set(true);
    worker.answered(visit, AnswerTimes { first, asked, heard: first_byte, first_byte });
    Ok(())
}

/// Waits until the run ends and drops the connection, or the server ends it first.
async fn hold(worker: &Worker, visit: &Attempt, channel: &mut Channel) -> Result<(), Failed> {
    channel.flush(Then::Wait, Step::Confirmation).await?;
    if !visit.answered.replace(true) {
        worker.confirmed(visit, Some(worker.now()));
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
async fn close(worker: &Worker, visit: &Attempt, channel: &mut Channel) -> Result<(), Failed> {
    if worker.plan.close == CloseMode::Rst {
        channel.stream().reset_on_close();
        worker.parted(visit, PeerClose::NotAwaited);
        return Ok(());
    }
    if matches!(worker.plan.exchange, Workload::Echo { .. }) {
        say_goodbye(worker, channel).await?;
        channel.shutdown();
    }
    // The answer is there; how the server says goodbye is counted, and is no failure.
    let ending = match within(worker, visit, read_to_end(worker, visit, channel, false)).await {
        Ok(ending) => ending,
        Err(Failed { class: Class::Reset(_), .. }) => PeerClose::Reset,
        Err(_) => PeerClose::NotAwaited,
    };
    worker.parted(visit, ending);
    if ending != PeerClose::Reset {
        // The server may have closed for good.
        let _ = say_goodbye(worker, channel).await;
    }
    Ok(())
}

/// Servers throw a session away whose connection ended without close_notify (RFC 5246, section 7.2.1; OpenSSL does).
async fn say_goodbye(worker: &Worker, channel: &mut Channel) -> Result<(), Failed> {
    if worker.plan.close == CloseMode::CloseNotify {
        channel.send_close_notify()?;
    }
    channel.flush(Then::Shutdown, Step::Answer).await
}
