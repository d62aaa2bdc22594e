//! One side of a pipe: plaintext comes out and goes in, whatever its socket carries. What TLS adds is known only here: records,
//! close_notify, answers to key updates, and tickets that may wait for the first answer.

use std::io;
use std::task::{Context, Poll, ready};

use courser_net::Stream;
use courser_tls::{BackendConnection, Failure, MAX_PLAINTEXT, Progress, ServerConnection, State};

use crate::buffers::{BUFFER_BYTES, Buffers, Inbox, Outbox};

/// Tickets that wait for the answer to what the client has asked, at most: with a client's certificates in them several
/// come to more than the client may have us hold before it is read.
const MOST_TICKETS: usize = BUFFER_BYTES / 2;

/// A peer's bytes between its socket, which is its owner's, and plaintext.
pub(crate) struct Side {
    /// What the peer has not taken yet, as it goes to the socket.
    pub(crate) outbox: Outbox,
    wire: Wire,
}

enum Wire {
    Plain,
    Tls {
        tls: Tls,
        /// Ciphertext from the peer that is no whole record yet.
        received: Inbox,
        /// The outbox holds nothing but session tickets.
        only_tickets: bool,
    },
}

/// TLS with a client or with a backend.
enum Tls {
    Client(Box<ServerConnection>),
    Backend(Box<BackendConnection>),
}

impl Tls {
    fn process(
        &mut self,
        received: &mut [u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        match self {
            Self::Client(tls) => tls.process(received, plaintext, outgoing),
            Self::Backend(tls) => tls.process(received, plaintext, outgoing),
        }
    }

    fn send(&mut self, plaintext: &[u8], received: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        match self {
            Self::Client(tls) => tls.send(plaintext, received, outgoing),
            Self::Backend(tls) => tls.send(plaintext, received, outgoing),
        }
    }

    fn send_close_notify(&mut self, received: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        match self {
            Self::Client(tls) => tls.send_close_notify(received, outgoing),
            Self::Backend(tls) => tls.send_close_notify(received, outgoing),
        }
    }
}

/// What follows the plaintext of a read.
pub(crate) enum After {
    /// More may come.
    Open,
    /// The peer has ended.
    End,
    /// The stream has ended without the end that TLS asks for.
    Truncation,
    /// The stream has failed.
    Reset,
}

impl Side {
    pub(crate) fn plain(outbox: Outbox) -> Self {
        Self { outbox, wire: Wire::Plain }
    }

    /// A client after its handshake, with what it has received and `tickets` that have not left.
    pub(crate) fn tls(tls: Box<ServerConnection>, received: Inbox, tickets: Outbox) -> Self {
        Self { outbox: tickets, wire: Wire::Tls { tls: Tls::Client(tls), received, only_tickets: true } }
    }

    /// A backend after its handshake, with what it has received and the last message that has not left.
    pub(crate) fn backend(tls: Box<BackendConnection>, received: Inbox, outbox: Outbox) -> Self {
        Self { outbox, wire: Wire::Tls { tls: Tls::Backend(tls), received, only_tickets: false } }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.wire, Wire::Plain)
    }

    /// Waits until there is something to read, and appends its plaintext, which may be none.
    pub(crate) fn poll_read(
        &mut self,
        stream: &Stream,
        buffers: &Buffers,
        plaintext: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<After, Failure>> {
        let Wire::Tls { tls, received, only_tickets } = &mut self.wire else {
            let read = ready!(stream.poll_read(cx, plaintext, |bytes| buffers.make_room(bytes)));
            return Poll::Ready(Ok(after(read)));
        };
        match ready!(received.poll_read(stream, buffers, cx)) {
            Ok(0) => return Poll::Ready(Ok(After::Truncation)),
            Ok(_) => buffers.make_room(plaintext),
            Err(_) => return Poll::Ready(Ok(After::Reset)),
        }
        let before = self.outbox.bytes.len();
        let progress = tls.process(received.bytes(), plaintext, &mut self.outbox.bytes);
        *only_tickets &= self.outbox.bytes.len() == before;
        let progress = progress?;
        received.consume(progress.consumed);
        Poll::Ready(Ok(if progress.state == State::PeerClosed { After::End } else { After::Open }))
    }

    /// Reads plaintext from `other`, whose socket is `stream`, and adds it to what waits for this peer. Returns what the read
    /// says, and how many bytes there were.
    pub(crate) fn poll_take(
        &mut self,
        other: &mut Self,
        stream: &Stream,
        buffers: &Buffers,
        cx: &mut Context<'_>,
    ) -> Result<(Poll<Result<After, Failure>>, usize), Failure> {
        if let Wire::Tls { tls: Tls::Client(tls), received, only_tickets } = &mut self.wire
            && other.is_plain()
        {
            let bytes = &mut self.outbox.bytes;
            let (start, front) = (bytes.len(), tls.record_front_len());
            let read = stream.poll_read_at_most(MAX_PLAINTEXT, cx, bytes, |bytes| {
                buffers.make_room(bytes);
                tls.begin_record(bytes);
            });
            let added = bytes.len().saturating_sub(start + front);
            if added == 0 {
                bytes.truncate(start);
            } else {
                *only_tickets = false;
                tls.finish_record(start, received.bytes(), bytes)?;
            }
            return Ok((read.map(|read| Ok(after(read))), added));
        }
        self.write(buffers, |plaintext| other.poll_read(stream, buffers, plaintext, cx))
    }

    /// Adds the plaintext that `read` appends to what waits for the peer. Returns what `read` returns, and how many bytes
    /// it has added. Nothing has to be done to plaintext for a plain peer: `read` appends it where it waits.
    pub(crate) fn write<R>(
        &mut self,
        buffers: &Buffers,
        read: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Result<(R, usize), Failure> {
        let bytes = &mut self.outbox.bytes;
        let Wire::Tls { tls, received, only_tickets } = &mut self.wire else {
            let before = bytes.len();
            let result = read(bytes);
            return Ok((result, bytes.len() - before));
        };
        let mut plaintext = Vec::new();
        let result = read(&mut plaintext);
        let added = plaintext.len();
        if added > 0 {
            buffers.make_room(bytes);
            *only_tickets = false;
            tls.send(&plaintext, received.bytes(), bytes)?;
        }
        buffers.release(plaintext);
        Ok((result, added))
    }

    /// Adds the end that goes before the FIN: close_notify, or nothing.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        let Wire::Tls { tls, received, .. } = &mut self.wire else { return Ok(()) };
        tls.send_close_notify(received.bytes(), &mut self.outbox.bytes)
    }

    /// Whether what waits may leave with the next answer instead.
    pub(crate) fn can_wait(&self) -> bool {
        let waits = 1..=MOST_TICKETS;
        matches!(self.wire, Wire::Tls { only_tickets: true, .. })
            && waits.contains(&self.outbox.pending().len())
    }

    /// Gives back the buffers that are empty.
    pub(crate) fn settle(&mut self, buffers: &Buffers) {
        self.outbox.settle(buffers);
        if let Wire::Tls { received, .. } = &mut self.wire {
            received.settle(buffers);
        }
    }
}

/// What follows a read from a plain peer.
fn after(read: io::Result<usize>) -> After {
    read.map_or(After::Reset, |bytes| if bytes == 0 { After::End } else { After::Open })
}
