//! One side of a pipe: plaintext comes out and goes in, whatever its socket carries. What TLS adds is known only here: records,
//! close_notify, answers to key updates, and tickets that may wait for the first answer.

use std::io;
use std::task::{Context, Poll, ready};

use courser_net::{Pieces, Stream};
use courser_tls::{BackendConnection, Failure, MAX_PLAINTEXT, Progress, RecordRoom, ServerConnection, State};

use crate::buffers::{Buffers, Inbox, Outbox};

/// Tickets that wait for the answer to what the client has asked, at most: with a client's certificates in them several
/// come to more than the client may have us hold before it is read.
const MOST_TICKETS: usize = MAX_PLAINTEXT;

/// Plaintext that TCP sends before the first acknowledgement, about, bytes (RFC 6928).
const FIRST_WINDOW: u64 = 14_600;

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

/// Records of application data that are filled by one read, and leave in one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Records {
    count: u8,
    /// Plaintext of each, bytes.
    length: u16,
}

impl Records {
    /// At the start of a connection: a client can decrypt the first before all of TCP's first window has come.
    pub(crate) const FIRST: Self = Self { count: 4, length: 4096 };
    /// Where it is not known whether more follows.
    pub(crate) const FEW: Self = Self { count: 2, length: 16_384 };
    /// While a transfer runs.
    pub(crate) const MANY: Self = Self { count: 4, length: 16_384 };

    /// Plaintext of all, bytes.
    pub(crate) fn plaintext(self) -> usize {
        usize::from(self.count) * self.length()
    }

    /// What is gathered next, after a write that took `written` bytes of a connection that has sent `sent` of plaintext.
    pub(crate) fn after_write(self, written: usize, sent: u64) -> Self {
        if written >= self.plaintext() {
            Self::MANY
        } else if sent < FIRST_WINDOW {
            Self::FIRST
        } else {
            Self::FEW
        }
    }

    /// Those that fit beside so many bytes that wait already, but one at least, with so much around each.
    fn beside(self, waiting: usize, room: RecordRoom) -> Pieces {
        let count = self.plaintext().saturating_sub(waiting).div_ceil(self.length()).max(1);
        Pieces { before: room.before, length: self.length(), after: room.after, count }
    }

    fn length(self) -> usize {
        self.length.into()
    }
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
            return Poll::Ready(Ok(after_read(read)));
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

    /// Reads plaintext from `other`, whose socket is `stream`, and adds it to what waits for this peer: into `records`, if
    /// that is a client and the other plain. Returns what the read says, and how many bytes there were.
    pub(crate) fn poll_take(
        &mut self,
        other: &mut Self,
        stream: &Stream,
        records: Records,
        buffers: &Buffers,
        cx: &mut Context<'_>,
    ) -> Result<(Poll<Result<After, Failure>>, usize), Failure> {
        let waiting = self.outbox.pending().len();
        if let Wire::Tls { tls: Tls::Client(tls), received, only_tickets } = &mut self.wire
            && other.is_plain()
        {
            let bytes = &mut self.outbox.bytes;
            let start = bytes.len();
            let pieces = records.beside(waiting, tls.record_room());
            let make_room = |bytes: &mut Vec<u8>| buffers.make_room_for(pieces.room(), bytes);
            let read = stream.poll_read_pieces(pieces, cx, bytes, make_room);
            let Poll::Ready(Ok(added @ 1..)) = read else {
                return Ok((read.map(|read| Ok(after_read(read))), 0));
            };
            *only_tickets = false;
            tls.seal_records(start, pieces.length, received.bytes(), bytes)?;
            return Ok((Poll::Ready(Ok(After::Open)), added));
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
fn after_read(read: io::Result<usize>) -> After {
    read.map_or(After::Reset, |bytes| if bytes == 0 { After::End } else { After::Open })
}
