//! The name of a session in the cache. May not interpret it.

use std::fmt;

/// A session ID: 1 to 32 bytes (RFC 5246, section 7.4.1.2), stored inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId {
    len: u8,
    /// Zero beyond `len`, so that the derived comparison is right.
    bytes: [u8; Self::MAX_LEN],
}

impl SessionId {
    /// The longest session ID, in bytes.
    pub const MAX_LEN: usize = 32;

    /// The ID's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl TryFrom<&[u8]> for SessionId {
    type Error = BadSessionId;

    fn try_from(id: &[u8]) -> Result<Self, BadSessionId> {
        let len = match u8::try_from(id.len()) {
            Ok(len) if (1..=Self::MAX_LEN).contains(&id.len()) => len,
            _ => return Err(BadSessionId { len: id.len() }),
        };
        let mut bytes = [0; Self::MAX_LEN];
        bytes[..id.len()].copy_from_slice(id);
        Ok(Self { len, bytes })
    }
}

/// Shows the length alone: who reads a log should not be able to name a session.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({} bytes)", self.len)
    }
}

/// The bytes cannot be a session ID: there are none, or more than 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSessionId {
    /// How many bytes there were.
    pub len: usize,
}

impl fmt::Display for BadSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a session ID has 1 to 32 bytes, this one has {}", self.len)
    }
}

impl std::error::Error for BadSessionId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_it_was_given() {
        for len in 1..=32 {
            let bytes = vec![7; len];
            assert_eq!(SessionId::try_from(&bytes[..]).unwrap().as_bytes(), bytes);
        }
    }

    #[test]
    fn refuses_impossible_lengths() {
        for len in [0, 33, 255, 256, 257] {
            assert_eq!(SessionId::try_from(&vec![7; len][..]), Err(BadSessionId { len }));
        }
    }

    #[test]
    fn trailing_zeros_are_part_of_the_name() {
        let short = SessionId::try_from(&[1][..]).unwrap();
        let long = SessionId::try_from(&[1, 0][..]).unwrap();
        assert_ne!(short, long);
    }
}
