//! Buffers that belong to a worker and are lent to connections while bytes move, so that an idle connection has none.

use std::cell::RefCell;

/// Room for two full TLS records: 2 x (16384 + 256 + 5) bytes, rounded up to 4 KiB (RFC 8446, section 5.2).
pub(crate) const BUFFER_BYTES: usize = 36 * 1024;

/// Buffers kept for the next connection; a burst's further ones are freed.
const KEPT: usize = 32;

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

    /// Takes a buffer back.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        if buffer.capacity() >= BUFFER_BYTES && buffer.capacity() <= 2 * BUFFER_BYTES && spare.len() < KEPT {
            buffer.clear();
            spare.push(buffer);
        }
    }

    /// Makes room in `bytes` for at least one full record, keeping what is in it.
    pub(crate) fn make_room(&self, bytes: &mut Vec<u8>) {
        if bytes.capacity() == 0 {
            *bytes = self.take();
        } else if bytes.capacity() - bytes.len() < BUFFER_BYTES / 2 {
            let mut buffer = self.take();
            buffer.reserve(bytes.len() + BUFFER_BYTES / 2);
            buffer.append(bytes);
            self.give(std::mem::replace(bytes, buffer));
        }
    }

    /// Before a wait: gives back what is empty, and cuts what is not to its length, so that a peer that stops in the
    /// middle of a record holds no more memory than it has sent.
    pub(crate) fn settle(&self, bytes: &mut Vec<u8>) {
        if bytes.capacity() == 0 {
            return;
        }
        let rest = if bytes.is_empty() { Vec::new() } else { bytes.as_slice().to_vec() };
        self.give(std::mem::replace(bytes, rest));
    }
}

/// Bytes on their way out: a buffer and how far it has been written.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    /// Bytes not yet written.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.written == self.bytes.len()
    }

    /// Gives the buffer back when nothing waits.
    pub(crate) fn settle(&mut self, buffers: &Buffers) {
        if self.is_empty() {
            buffers.give(std::mem::take(&mut self.bytes));
        }
    }

    /// Notes that `count` more bytes were written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written += count;
        if self.is_empty() {
            self.bytes.clear();
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_holds_what_it_sent_and_no_more() {
        let buffers = Buffers::default();
        let mut bytes = Vec::new();
        buffers.make_room(&mut bytes);
        assert!(bytes.capacity() >= BUFFER_BYTES);
        bytes.extend_from_slice(b"half a record");
        buffers.settle(&mut bytes);
        assert_eq!((bytes.as_slice(), bytes.capacity()), (&b"half a record"[..], 13));
        buffers.make_room(&mut bytes);
        assert!(bytes.capacity() - bytes.len() >= BUFFER_BYTES / 2);
        assert_eq!(bytes, b"half a record");
        bytes.clear();
        buffers.settle(&mut bytes);
        assert_eq!(bytes.capacity(), 0);
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
