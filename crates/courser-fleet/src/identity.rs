//! What tells the members of a fleet apart. May not be a secret: it stands in clear in every message.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};

use crate::now::UnixMillis;

/// A member's configured name: 1 to 64 printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberName(String);

impl MemberName {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Takes a name.
    ///
    /// # Errors
    /// [`BadMemberName`] if it is empty, too long, or has other characters than printable ASCII.
    pub fn new(name: &str) -> Result<Self, BadMemberName> {
        let printable = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        match (1..=Self::MAX_LEN).contains(&name.len()) && printable {
            true => Ok(Self(name.to_owned())),
            false => Err(BadMemberName),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands for this name in messages.
    pub fn id(&self) -> MemberId {
        let hash = digest(&SHA256, self.0.as_bytes());
        MemberId(hash.as_ref()[..8].try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name that no member can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMemberName;

impl fmt::Display for BadMemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member of a fleet has 1 to 64 printable ASCII characters")
    }
}

impl std::error::Error for BadMemberName {}

/// What stands for a member's name in messages: the first 8 bytes of the name's SHA-256. Shown in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub [u8; 8]);

/// One start of a member: when (milliseconds, 8 bytes big endian), then 8 random bytes. A later start compares greater.
/// Shown in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub [u8; 16]);

impl Incarnation {
    /// A start at `started`. With random bytes no two starts are alike, even of a host whose clock jumps back.
    pub fn new(started: UnixMillis, random: [u8; 8]) -> Self {
        let mut incarnation = [0; 16];
        incarnation[..8].copy_from_slice(&started.0.to_be_bytes());
        incarnation[8..].copy_from_slice(&random);
        Self(incarnation)
    }

    /// When this was, by the member's own clock.
    pub fn started(&self) -> UnixMillis {
        let [time, _] = self.halves();
        UnixMillis(time)
    }

    /// Start time and random part.
    pub(crate) fn halves(&self) -> [u64; 2] {
        let number = u128::from_be_bytes(self.0);
        let half = |number: u128| u64::try_from(number & u128::from(u64::MAX)).expect("64 bits were left");
        [half(number >> 64), half(number)]
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberId({self})")
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_printable_and_not_too_long() {
        for good in ["a", "edge-3.example.org", "with space", &"x".repeat(64)] {
            assert_eq!(MemberName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "new\nline", "ü", &"x".repeat(65)] {
            assert_eq!(MemberName::new(bad), Err(BadMemberName), "{bad:?}");
        }
    }

    #[test]
    fn a_names_id_is_the_beginning_of_its_hash() {
        assert_eq!(MemberName::new("abc").unwrap().id().to_string(), "ba7816bf8f01cfea");
    }

    #[test]
    fn later_starts_compare_greater_and_know_their_time() {
        let incarnations = [(1, [9; 8]), (2, [0; 8]), (2, [1; 8])]
            .map(|(at, random)| Incarnation::new(UnixMillis(at), random));
        assert!(incarnations[0] < incarnations[1] && incarnations[1] < incarnations[2]);
        assert_eq!(incarnations[1].started(), UnixMillis(2));
        assert_eq!(incarnations[2].halves(), [2, 0x0101_0101_0101_0101]);
    }
}
