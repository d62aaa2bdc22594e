//! Buffers that belong to a worker and are lent to connections while bytes move, so that an idle connection has none.

use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll};

use courser_net::Stream;

/// Room for four full TLS records: 4 x (16384 + 256 + 5) bytes, rounded up to 4 KiB (RFC 8446, section 5.2). What the kernel
/// sends or acknowledges at once is up to 64 KiB, and costs nearly as much for less.
pub(crate) const BUFFER_BYTES: usize = 68 * 1024;

/// Spare buffers of a worker at most; a burst's further ones are freed.
const MAX_SPARE: usize = 32;

/// A worker's spare buffers.
#[derive(Default)]
pub(crate) struct Buffers {
    spare: RefCell<Vec<Vec<u8>>>,
}

impl Buffers {
    /// An empty buffer of [`BUFFER_BYTES`].
    pub(crate) fn take(&self) -> Vec<u8> {
        self.spare.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    pub(crate) fn release(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() == 0 {
            return;
        }
        let mut spare = self.spare.borrow_mut();
        if buffer.capacity() >= BUFFER_BYTES
            && buffer.capacity() <= 2 * BUFFER_BYTES
            && spare.len() < MAX_SPARE
        {
            buffer.clear();
            spare.push(buffer);
        }
    }

    /// Makes room in `bytes` for at least one full record, keeping what is in it.
    pub(crate) fn make_room(&self, bytes: &mut Vec<u8>) {
        self.make_room_for(BUFFER_BYTES / 2, bytes);
    }

    /// Makes room in `bytes` for so many more, keeping what is in it.
    pub(crate) fn make_room_for(&self, more: usize, bytes: &mut Vec<u8>) {
        let needed = bytes.len() + more;
        if bytes.capacity() < needed && needed <= BUFFER_BYTES {
            // What waits is little, tickets mostly. Growing would copy all the room around it as well, at each step.
            let mut lent = self.take();
            lent.extend_from_slice(bytes);
            *bytes = lent;
        }
        bytes.reserve(more);
    }
}

/// What a client has sent and has not been consumed yet: a record that is not complete, or records that wait for the end
/// of the message that is in them.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Waits until there is something to read, and appends it. Returns the number of bytes; 0 is the end of the stream.
    ///
    /// What has waited is not moved for a few bytes more: they are read into a lent buffer and appended. So a client
    /// that trickles pays for each byte once, however much waits already.
    #[inline]
    pub(crate) fn poll_read(
        &mut self,
        stream: &Stream,
        buffers: &Buffers,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Self { bytes } = self;
        if bytes.capacity() == 0 || bytes.capacity() - bytes.len() >= BUFFER_BYTES / 2 {
            let read = stream.poll_read(cx, bytes, |bytes| buffers.make_room(bytes));
            if read.is_pending() {
                self.settle(buffers);
            }
            return read;
        }
        let mut lent = Vec::new();
        let read = stream.poll_read(cx, &mut lent, |lent| buffers.make_room(lent));
        bytes.extend_from_slice(&lent);
        buffers.release(lent);
        read
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.bytes.drain(..count);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Before a wait: gives back what is empty, and cuts what is much too large, so that a peer that stops in the middle
    /// of a record holds at most twice the memory of what it has sent.
    pub(crate) fn settle(&mut self, buffers: &Buffers) {
        let Self { bytes } = self;
        if bytes.is_empty() {
            buffers.release(std::mem::take(bytes));
        } else if bytes.capacity() > 2 * bytes.len() {
            let rest = bytes.as_slice().to_vec();
            buffers.release(std::mem::replace(bytes, rest));
        }
    }

    /// All that is in it.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Gives the buffer back with all that is in it.
    pub(crate) fn discard(self, buffers: &Buffers) {
        buffers.release(self.bytes);
    }
}

/// Bytes on their way out: a buffer and how far it has been written.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written == self.bytes.len()
    }

    /// Gives the buffer back when nothing waits.
    pub(crate) fn settle(&mut self, buffers: &Buffers) {
        if self.is_empty() {
            buffers.release(std::mem::take(&mut self.bytes));
        }
    }

    /// Throws away what waits.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }

    /// Notes that `count` more bytes were written. What was written goes once it is half of all: a peer that never takes
    /// everything has us hold no more than one that does, and each byte is moved once at most.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written += count;
        if 2 * self.written >= self.bytes.len() {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_idle_connection_holds_what_it_sent_and_no_more() {
        let buffers = Buffers::default();
        let mut inbox = Inbox::default();
        buffers.make_room(&mut inbox.bytes);
        assert!(inbox.bytes.capacity() >= BUFFER_BYTES);
        inbox.bytes.extend_from_slice(b"half a record");
        inbox.settle(&buffers);
        assert_eq!((inbox.bytes.as_slice(), inbox.bytes.capacity()), (&b"half a record"[..], 13));
        inbox.bytes.clear();
        inbox.settle(&buffers);
        assert_eq!(inbox.bytes.capacity(), 0);
    }

    #[test]
    fn what_waits_moves_into_a_spare_buffer_that_comes_back() {
        let buffers = Buffers::default();
        buffers.release(Vec::with_capacity(BUFFER_BYTES));
        let place = buffers.spare.borrow()[0].as_ptr();
        let mut tickets = b"two tickets".to_vec();
        buffers.make_room(&mut tickets);
        assert_eq!((tickets.as_slice(), tickets.as_ptr()), (&b"two tickets"[..], place));
        buffers.release(tickets);
        assert_eq!(buffers.spare.borrow().len(), 1);
    }

    #[tokio::test]
    async fn a_trickle_behind_much_that_waits_moves_it_seldom() {
        let buffers = Buffers::default();
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let stream = Stream::new(ours.into(), true);
        let mut inbox = Inbox { bytes: vec![7; 60_000] };
        let (mut moves, mut place) = (0, inbox.bytes.as_ptr());
        for _ in 0..1_000 {
            (&theirs).write_all(b"x").unwrap();
            let read = std::future::poll_fn(|cx| inbox.poll_read(&stream, &buffers, cx)).await;
            assert_eq!(read.unwrap(), 1);
            inbox.settle(&buffers);
            moves += usize::from(place != inbox.bytes.as_ptr());
            place = inbox.bytes.as_ptr();
        }
        assert_eq!(inbox.bytes.len(), 61_000);
        assert!(moves <= 2, "moved {moves} times for 1,000 bytes");
        assert!(inbox.bytes.capacity() <= 2 * inbox.bytes.len());
    }

    #[test]
    fn an_outbox_that_is_never_empty_does_not_grow() {
        let mut outbox = Outbox::default();
        outbox.bytes.push(0);
        for round in 0..1_000_u32 {
            outbox.bytes.extend_from_slice(&[round.to_le_bytes()[0]; 10_000]);
            outbox.advance(10_000);
            assert_eq!(outbox.pending(), [round.to_le_bytes()[0]]);
        }
        assert!(outbox.bytes.capacity() < 50_000, "{} bytes", outbox.bytes.capacity());
    }

    #[test]
    fn an_outbox_remembers_how_far_it_got() {
        let mut outbox = Outbox::default();
        outbox.bytes.extend_from_slice(b"abc");
        outbox.advance(2);
        assert_eq!(outbox.pending(), b"c");
        outbox.advance(1);
        assert!(outbox.is_empty() && outbox.bytes.is_empty());
    }
}
