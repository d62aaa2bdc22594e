//! The bytes of one connection: a socket with TLS on it, or without. It keeps no buffer while it waits.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use courser_net::{Stream, Then};
use courser_tls::State;
use courser_tls_client::{ClientConnection, ClientSessions};

use crate::failure::{Failed, Step};
use crate::plan::Sockets;

/// Room for two full TLS records (RFC 8446, section 5.2).
const BUFFER_BYTES: usize = 36 * 1024;

/// Segments of a ClientHello that is sent over a time, where nobody says how many.
const SLOW_SEGMENTS: u32 = 8;

/// HTTP/2 over TLS, as ALPN names it.
pub(crate) const HTTP2: &[u8] = b"h2";

/// Buffers kept for later connections.
const KEPT: usize = 64;

/// Spare buffers of a thread.
#[derive(Default)]
pub(crate) struct Buffers(RefCell<Vec<Vec<u8>>>);

impl Buffers {
    fn take(&self) -> Vec<u8> {
        self.0.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    fn give(&self, mut buffer: Vec<u8>) {
        let mut spare = self.0.borrow_mut();
        if (BUFFER_BYTES..=2 * BUFFER_BYTES).contains(&buffer.capacity()) && spare.len() < KEPT {
            buffer.clear();
            spare.push(buffer);
        }
    }
}

/// So many pieces of a length as equal as can be; one for each byte where there are fewer.
fn pieces(whole: &[u8], count: usize) -> impl Iterator<Item = &[u8]> {
    let (length, count) = (whole.len(), count.min(whole.len()));
    (0..count).map(move |piece| &whole[piece * length / count..(piece + 1) * length / count])
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Bytes: maybe plaintext, maybe the handshake has got on.
    Bytes,
    /// close_notify.
    CloseNotify,
    /// FIN.
    End,
}

/// One connection.
pub(crate) struct Channel {
    stream: Stream,
    tls: Option<ClientConnection>,
    handshaking: bool,
    /// Early data was sent.
    early: bool,
    /// The server has said close_notify.
    pub(crate) close_notify_received: bool,
    /// Records that are not complete yet.
    received: Vec<u8>,
    /// Bytes for the server, until all of them have been written.
    outgoing: Vec<u8>,
    /// How many of these have been.
    written: usize,
    /// What the server has said, in plaintext, until it is taken.
    pub(crate) plaintext: Vec<u8>,
    pub(crate) payload_out: u64,
    pub(crate) payload_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    buffers: Rc<Buffers>,
}

impl Channel {
    pub(crate) fn new(stream: Stream, tls: Option<ClientConnection>, buffers: &Rc<Buffers>) -> Self {
        Self {
            stream,
            handshaking: tls.is_some(),
            tls,
            early: false,
            close_notify_received: false,
            received: Vec::new(),
            outgoing: Vec::new(),
            written: 0,
            plaintext: Vec::new(),
            payload_out: 0,
            payload_in: 0,
            bytes_out: 0,
            bytes_in: 0,
            buffers: Rc::clone(buffers),
        }
    }

    /// The ClientHello, still unsent.
    pub(crate) fn hello(&mut self) -> Result<&[u8], Failed> {
        self.process()?;
        Ok(&self.outgoing)
    }

    /// Puts plaintext behind the ClientHello as early data, if the session allows it and takes all of it.
    pub(crate) fn send_early(&mut self, plaintext: &[u8]) {
        self.lend_outgoing();
        let Some(tls) = &mut self.tls else { return };
        self.early = tls.send_early(plaintext, &mut self.outgoing) == Some(plaintext.len());
    }

    /// Whether what was sent early has arrived: the server says so in its handshake (RFC 8446, section 4.2.10).
    pub(crate) fn early_arrived(&mut self) -> bool {
        let sent = std::mem::take(&mut self.early);
        sent && self.tls.as_ref().and_then(|tls| tls.handshake_info()?.early_data) == Some(true)
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.handshaking
    }

    pub(crate) fn tls(&self) -> Option<&ClientConnection> {
        self.tls.as_ref()
    }

    /// Whether HTTP/2 was agreed on (RFC 9113, section 3.2).
    pub(crate) fn is_http2(&self) -> bool {
        let agreed = self.tls.as_ref().and_then(ClientConnection::handshake_info);
        agreed.and_then(|agreed| agreed.alpn).as_deref() == Some(HTTP2)
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// What the client keeps for its next connection.
    pub(crate) fn into_sessions(mut self) -> Option<ClientSessions> {
        self.tls.take().map(ClientConnection::into_sessions)
    }

    /// Queues plaintext for the next [`Self::flush`].
    pub(crate) fn send(&mut self, plaintext: &[u8]) -> Result<(), Failed> {
        self.payload_out += plaintext.len() as u64;
        self.lend_outgoing();
        match &mut self.tls {
            Some(tls) => {
                let sent = tls.send(plaintext, &mut self.received, &mut self.outgoing);
                sent.map_err(|failure| Failed::tls(&failure))
            }
            None => {
                self.outgoing.extend_from_slice(plaintext);
                Ok(())
            }
        }
    }

    /// Queues close_notify, where there is TLS.
    pub(crate) fn send_close_notify(&mut self) -> Result<(), Failed> {
        self.lend_outgoing();
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let sent = tls.send_close_notify(&mut self.received, &mut self.outgoing);
        sent.map_err(|failure| Failed::tls(&failure))
    }

    /// Writes what is queued. `then`: whether [`Self::shutdown`] follows.
    pub(crate) async fn flush(&mut self, then: Then, step: Step) -> Result<(), Failed> {
        poll_fn(|cx| self.poll_flush(cx, then, step)).await
    }

    /// As [`Self::flush`], in as many segments as a ClientHello is to be sent in, evenly over its time.
    pub(crate) async fn flush_hello(&mut self, sockets: &Sockets, step: Step) -> Result<(), Failed> {
        let segments = match sockets.hello_segments {
            0 if sockets.hello_over.is_zero() => 1,
            0 => SLOW_SEGMENTS,
            segments => segments,
        };
        if segments == 1 {
            return self.flush(Then::Wait, step).await;
        }
        let whole = std::mem::take(&mut self.outgoing);
        let pause = sockets.hello_over / (segments - 1);
        for (number, segment) in pieces(&whole, segments as usize).enumerate() {
            if number > 0 && !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            self.outgoing.extend_from_slice(segment);
            self.flush(Then::Wait, step).await?;
        }
        self.buffers.give(whole);
        Ok(())
    }

    /// As [`Self::flush`].
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        then: Then,
        step: Step,
    ) -> Poll<Result<(), Failed>> {
        while self.written < self.outgoing.len() {
            let wrote = ready!(self.stream.poll_write(cx, &self.outgoing[self.written..], then));
            self.written += wrote.map_err(|error| Failed::socket(&error, step))?;
        }
        self.bytes_out += std::mem::take(&mut self.written) as u64;
        self.buffers.give(std::mem::take(&mut self.outgoing));
        Poll::Ready(Ok(()))
    }

    /// Bytes that wait for the next [`Self::flush`].
    pub(crate) fn queued(&self) -> u64 {
        (self.outgoing.len() - self.written) as u64
    }

    /// Writes what can be written at once: an alert on the way out.
    pub(crate) fn try_flush(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let rest = &self.outgoing[self.written..];
        if !rest.is_empty() {
            let _ = self.stream.poll_write(&mut cx, rest, Then::Wait);
        }
    }

    /// No more bytes from us.
    pub(crate) fn shutdown(&self) {
        self.stream.shutdown();
    }

    /// Waits for bytes and lets TLS have them.
    pub(crate) async fn receive(&mut self, step: Step) -> Result<ReadOutcome, Failed> {
        poll_fn(|cx| self.poll_receive(cx, step)).await
    }

    /// As [`Self::receive`].
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        step: Step,
    ) -> Poll<Result<ReadOutcome, Failed>> {
        self.settle();
        let Self { stream, received, buffers, .. } = self;
        let make_room = |received: &mut Vec<u8>| {
            if received.is_empty() {
                *received = buffers.take();
            } else {
                received.reserve(BUFFER_BYTES / 2);
            }
        };
        let read = ready!(stream.poll_read(cx, received, make_room));
        let read = read.map_err(|error| Failed::socket(&error, step))?;
        self.bytes_in += read as u64;
        Poll::Ready(if read == 0 { Ok(ReadOutcome::End) } else { self.process() })
    }

    /// Gives back buffers that hold nothing.
    fn settle(&mut self) {
        for buffer in [&mut self.received, &mut self.plaintext, &mut self.outgoing] {
            if buffer.is_empty() && buffer.capacity() > 0 {
                self.buffers.give(std::mem::take(buffer));
            }
        }
    }

    fn lend_outgoing(&mut self) {
        if self.outgoing.capacity() == 0 {
            self.outgoing = self.buffers.take();
        }
    }

    fn process(&mut self) -> Result<ReadOutcome, Failed> {
        if self.plaintext.capacity() == 0 {
            self.plaintext = self.buffers.take();
        }
        self.lend_outgoing();
        let before = self.plaintext.len();
        let outcome = match &mut self.tls {
            Some(tls) => {
                let progress = tls
                    .process(&mut self.received, &mut self.plaintext, &mut self.outgoing)
                    .map_err(|failure| Failed::tls(&failure))?;
                self.received.drain(..progress.consumed);
                self.handshaking = progress.state == State::Handshaking;
                self.close_notify_received |= progress.state == State::PeerClosed;
                if self.close_notify_received { ReadOutcome::CloseNotify } else { ReadOutcome::Bytes }
            }
            None => {
                self.plaintext.append(&mut self.received);
                ReadOutcome::Bytes
            }
        };
        self.payload_in += (self.plaintext.len() - before) as u64;
        Ok(outcome)
    }
}

impl Drop for Channel {
    /// The next connection takes them: fresh ones are cold in the cache.
    fn drop(&mut self) {
        for buffer in [&mut self.received, &mut self.plaintext, &mut self.outgoing] {
            self.buffers.give(std::mem::take(buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_hello_is_sent_in_as_many_pieces_as_asked() {
        let whole: Vec<u8> = (0..250).collect();
        for (asked, made) in [(1, 1), (2, 2), (7, 7), (100, 100), (250, 250), (1_000, 250)] {
            let pieces: Vec<_> = pieces(&whole, asked).collect();
            assert_eq!((pieces.len(), pieces.concat()), (made, whole.clone()), "{asked}");
            let lengths = pieces.iter().map(|piece| piece.len());
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1, "{asked}");
        }
    }

    #[test]
    fn connections_one_after_the_other_share_their_buffers() {
        let buffers = Rc::<Buffers>::default();
        for connection in 0..5 {
            let (mut server, client) = UnixStream::pair().unwrap();
            server.write_all(b"an answer").unwrap();
            drop(server);
            client.set_nonblocking(true).unwrap();
            let mut channel = Channel::new(Stream::new(client.into(), true), None, &buffers);
            let mut cx = Context::from_waker(Waker::noop());
            let received = std::pin::pin!(channel.receive(Step::Answer)).poll(&mut cx);
            assert!(received.is_ready() && channel.plaintext == b"an answer");
            drop(channel);
            let spare = buffers.0.borrow();
            let addresses: Vec<_> = spare.iter().map(|buffer| (buffer.as_ptr(), buffer.len())).collect();
            assert!(
                spare.len() == 3 && addresses.iter().all(|(_, length)| *length == 0),
                "{connection}: {addresses:?}"
            );
        }
    }
}
