//! Many sessions in one file. May not open it: bytes go out to a vector and come in from a reader.
//!
//! The file begins with the line `courser sessions 1`; then follow records, each a length (4 bytes, big endian) and as many
//! sealed bytes. Whatever is wrong with a file costs the sessions that it concerns, and no more.

use std::io::Read;

use super::{MAX_SEALED_LEN, Vault};
use crate::seal::NONCE_LEN;
use crate::{ResumptionFailure, SharedSession, UnixSeconds};

impl Vault {
    /// What a file of sessions begins with.
    pub const FILE_HEADER: &[u8] = b"courser sessions 1\n";

    /// Appends one record to `file`; nothing if [`seal`](Self::seal) would refuse the session. `nonce` is 12 random bytes.
    pub fn append(
        &self,
        file: &mut Vec<u8>,
        session: &SharedSession,
        nonce: [u8; NONCE_LEN],
        now: UnixSeconds,
    ) {
        let Some(sealed) = self.seal_as(BOUND_TO, session, nonce, now) else { return };
        let len = u32::try_from(sealed.len()).expect("what is sealed has under 70,000 bytes");
        file.extend_from_slice(&len.to_be_bytes());
        file.extend_from_slice(&sealed);
    }

    /// The sessions of a file that may be resumed at `now`. `file` should be buffered.
    pub fn read<R: Read>(&self, file: R, now: UnixSeconds) -> SavedSessions<'_, R> {
        let counts = SavedCounts::default();
        let mut sessions = SavedSessions { vault: self, file, now, record: Vec::new(), ended: false, counts };
        let mut header = [0; Self::FILE_HEADER.len()];
        if sessions.fill(&mut header) != header.len() || header != Self::FILE_HEADER {
            sessions.damaged();
        }
        sessions
    }
}

/// Gives one session after the other, and counts what it leaves out.
pub struct SavedSessions<'a, R> {
    vault: &'a Vault,
    file: R,
    now: UnixSeconds,
    /// The room for one record, used again.
    record: Vec<u8>,
    ended: bool,
    counts: SavedCounts,
}

/// What was in a file of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedCounts {
    /// Sessions that were given.
    pub taken: u64,
    /// Records of sessions that are over, or of keys that are gone or of another fleet.
    pub over: u64,
    /// Records that are not what was written; a file that ends too early counts as one.
    pub damaged: u64,
}

impl<R: Read> SavedSessions<'_, R> {
    /// What was found so far.
    pub fn counts(&self) -> SavedCounts {
        self.counts
    }

    /// Reads the next record. Says whether there is one.
    fn record(&mut self) -> bool {
        let mut len = [0; 4];
        match self.fill(&mut len) {
            0 => {
                self.ended = true;
                return false;
            }
            4 => {}
            _ => return self.damaged(),
        }
        let len = usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX);
        if len > MAX_SEALED_LEN {
            return self.damaged();
        }
        let mut record = std::mem::take(&mut self.record);
        record.resize(len, 0);
        let read = self.fill(&mut record);
        self.record = record;
        read == len || self.damaged()
    }

    /// Where the next record would begin is not known, so that this is the end.
    fn damaged(&mut self) -> bool {
        self.counts.damaged += 1;
        self.ended = true;
        false
    }

    /// Reads until `room` is full or nothing more comes, and returns how many bytes that was.
    fn fill(&mut self, room: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < room.len() {
            match self.file.read(&mut room[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        filled
    }
}

impl<R: Read> Iterator for SavedSessions<'_, R> {
    type Item = SharedSession;

    fn next(&mut self) -> Option<SharedSession> {
        while !self.ended && self.record() {
            match self.vault.open_as(BOUND_TO, &self.record, self.now) {
                Ok(session) => {
                    self.counts.taken += 1;
                    return Some(session);
                }
                Err(ResumptionFailure::Expired | ResumptionFailure::UnknownKey) => self.counts.over += 1,
                Err(_) => self.counts.damaged += 1,
            }
        }
        None
    }
}

const BOUND_TO: &[u8] = b"record";
