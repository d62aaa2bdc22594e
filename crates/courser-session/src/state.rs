//! The bytes of a session. They hold its master secret: may not be printed, and are wiped when the last owner goes.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

/// A session's state: opaque bytes, cheap to clone (one reference count), wiped on drop of the last clone.
// The inner box costs an allocation more than Arc<[u8]> would. But an Arc<[u8]> cannot wipe itself, and wiping by
// "am I the last owner?" from outside is a race between two last owners.
#[derive(Clone)]
pub struct State(Arc<Zeroizing<Box<[u8]>>>);

impl State {
    /// What a state of `len` bytes takes on the heap, counted as glibc's allocator counts: see
    /// [`Cache`](crate::Cache).
    pub(crate) fn heap_bytes(len: usize) -> usize {
        /// Two reference counts, a pointer and a length.
        const SHARED_PART: usize = 32;
        allocated(SHARED_PART).saturating_add(allocated(len))
    }
}

/// The size of the block that holds `len` bytes: 8 bytes of header, multiples of 16, at least 32.
fn allocated(len: usize) -> usize {
    match len {
        0 => 0,
        _ => (len.saturating_add(8 + 15) & !15).max(32),
    }
}

impl Deref for State {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for State {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::new(Zeroizing::new(bytes.into())))
    }
}

impl From<Vec<u8>> for State {
    /// Copies, and wipes the vector: shrinking it in place could leave its bytes behind in freed memory.
    fn from(mut bytes: Vec<u8>) -> Self {
        let state = Self::from(&bytes[..]);
        bytes.zeroize();
        state
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_bytes_and_hides_them() {
        let state = State::from(b"master secret".to_vec());
        assert_eq!(&state[..], b"master secret");
        assert_eq!(format!("{state:?}"), "State(13 bytes)");
    }

    #[test]
    fn counts_what_the_allocator_takes() {
        assert_eq!(State::heap_bytes(0), 48);
        assert_eq!(State::heap_bytes(1), 48 + 32);
        assert_eq!(State::heap_bytes(24), 48 + 32);
        assert_eq!(State::heap_bytes(25), 48 + 48);
        assert_eq!(State::heap_bytes(200), 48 + 208);
        assert!(State::heap_bytes(usize::MAX) > usize::MAX / 2);
    }
}
