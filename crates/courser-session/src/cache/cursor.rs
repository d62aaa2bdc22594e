//! Where an export goes on. May come from another host: every value is safe.

/// A place in a cache, good for this cache alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(super) shard: u32,
    /// The slots below this one are still to come.
    pub(super) below: u32,
}

impl Cursor {
    /// The beginning.
    pub const START: Self = Self { shard: 0, below: u32::MAX };

    /// As a number, for messages.
    pub const fn to_u64(self) -> u64 {
        (self.shard as u64) << 32 | self.below as u64
    }

    /// The cursor that [`to_u64`](Self::to_u64) gave. Any number is one.
    pub const fn from_u64(number: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
        Self { shard: u32::from_be_bytes([a, b, c, d]), below: u32::from_be_bytes([e, f, g, h]) }
    }

    pub(super) const fn shard(self) -> usize {
        self.shard as usize
    }

    pub(super) const fn next_shard(self) -> Self {
        Self { shard: self.shard + 1, ..Self::START }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_back() {
        for cursor in [Cursor::START, Cursor { shard: 7, below: 0 }, Cursor { shard: u32::MAX, below: 9 }] {
            assert_eq!(Cursor::from_u64(cursor.to_u64()), cursor);
        }
    }
}
