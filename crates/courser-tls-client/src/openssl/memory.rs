//! The two directions of a connection, in memory, as OpenSSL reads and writes them.

use std::io::{self, Read, Write};

#[derive(Debug, Default)]
pub(crate) struct Memory {
    incoming: Vec<u8>,
    /// How much of `incoming` has been read.
    read: usize,
    outgoing: Vec<u8>,
}

impl Memory {
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
    }

    pub(crate) fn drain_into(&mut self, outgoing: &mut Vec<u8>) {
        outgoing.append(&mut self.outgoing);
    }
}

impl Read for Memory {
    /// Would block where nothing is left: the end of the connection is for the owner of the socket to see.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = (&self.incoming[self.read..]).read(into)?;
        self.read += count;
        if self.read == self.incoming.len() {
            self.incoming.clear();
            self.read = 0;
        }
        if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
