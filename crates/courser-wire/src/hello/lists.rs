//! The lists of a hello, borrowed: checked once when they are read, walked without a fault afterwards.

use super::malformed::Malformed;
use crate::bytes::Reader;

/// A list of 16-bit values: cipher suites, groups, versions or signature schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List16<'a>(&'a [[u8; 2]]);

impl<'a> List16<'a> {
    /// From the content of a vector, which has to be there, whole and not empty.
    pub(super) fn filled(content: Option<&'a [u8]>, field: &'static str) -> Result<Self, Malformed> {
        match content.ok_or(Malformed::Truncated(field))?.as_chunks() {
            ([], _) | (_, [_, ..]) => Err(Malformed::BadLength(field)),
            (values, []) => Ok(Self(values)),
        }
    }

    /// How many values there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this value is among them.
    pub fn contains(&self, value: u16) -> bool {
        self.0.contains(&value.to_be_bytes())
    }

    /// The values in the order sent.
    pub fn iter(&self) -> List16Iter<'a> {
        List16Iter(self.0.iter())
    }

    /// The values in the order sent, but for those that mean nothing (RFC 8701).
    pub fn without_grease(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.iter().filter(|&value| !is_grease(value))
    }
}

impl<'a> IntoIterator for List16<'a> {
    type Item = u16;
    type IntoIter = List16Iter<'a>;

    fn into_iter(self) -> List16Iter<'a> {
        self.iter()
    }
}

/// Iterates over a [`List16`].
#[derive(Clone, Debug)]
pub struct List16Iter<'a>(std::slice::Iter<'a, [u8; 2]>);

impl Iterator for List16Iter<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        self.0.next().map(|&bytes| u16::from_be_bytes(bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for List16Iter<'_> {}

/// Names of application protocols (RFC 7301 section 3.1), each of 1 to 255 bytes. They are bytes, not text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolNames<'a>(Reader<'a>);

impl<'a> ProtocolNames<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        const FIELD: &str = "application_layer_protocol_negotiation";
        let list = Reader::new(reader.vector16().ok_or(Malformed::Truncated(FIELD))?);
        let mut rest = list;
        loop {
            match rest.vector8() {
                None => return Err(Malformed::Truncated(FIELD)),
                Some([]) => return Err(Malformed::BadLength(FIELD)),
                Some(_) if rest.is_empty() => return Ok(Self(list)),
                Some(_) => {}
            }
        }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this name is among them.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.iter().any(|offered| offered == name)
    }

    /// The names in the client's order of preference.
    pub const fn iter(&self) -> ProtocolNamesIter<'a> {
        ProtocolNamesIter(self.0)
    }
}

impl<'a> IntoIterator for ProtocolNames<'a> {
    type Item = &'a [u8];
    type IntoIter = ProtocolNamesIter<'a>;

    fn into_iter(self) -> ProtocolNamesIter<'a> {
        self.iter()
    }
}

/// Iterates over [`ProtocolNames`].
#[derive(Clone, Debug)]
pub struct ProtocolNamesIter<'a>(Reader<'a>);

impl<'a> Iterator for ProtocolNamesIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.vector8()
    }
}

/// Key shares (RFC 8446 section 4.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyShares<'a>(Reader<'a>);

impl<'a> KeyShares<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        const FIELD: &str = "key_share";
        let list = Reader::new(reader.vector16().ok_or(Malformed::Truncated(FIELD))?);
        let mut rest = list;
        while !rest.is_empty() {
            let share = rest.u16().and_then(|_| rest.vector16()).ok_or(Malformed::Truncated(FIELD))?;
            if share.is_empty() {
                return Err(Malformed::BadLength(FIELD));
            }
        }
        Ok(Self(list))
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The groups that come with a share, in the order sent.
    pub fn groups(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.iter().map(|(group, _)| group)
    }

    /// Each group with its share, in the order sent.
    pub const fn iter(&self) -> KeySharesIter<'a> {
        KeySharesIter(self.0)
    }
}

impl<'a> IntoIterator for KeyShares<'a> {
    type Item = (u16, &'a [u8]);
    type IntoIter = KeySharesIter<'a>;

    fn into_iter(self) -> KeySharesIter<'a> {
        self.iter()
    }
}

/// Iterates over [`KeyShares`].
#[derive(Clone, Debug)]
pub struct KeySharesIter<'a>(Reader<'a>);

impl<'a> Iterator for KeySharesIter<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.u16()?, self.0.vector16()?))
    }
}

/// Identities of `pre_shared_key` (RFC 8446 section 4.2.11), each of at least one byte; the binders are checked
/// for their framing and not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PskIdentities<'a>(Reader<'a>);

impl<'a> PskIdentities<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let malformed = || Malformed::Truncated("pre_shared_key");
        let list = Reader::new(reader.vector16().ok_or_else(malformed)?);
        let mut binders = Reader::new(reader.vector16().ok_or_else(malformed)?);
        let mut rest = list;
        loop {
            let identity = rest.vector16().ok_or_else(malformed)?;
            rest.u32().ok_or_else(malformed)?;
            let binder = binders.vector8().ok_or_else(malformed)?;
            // A binder is the output of a hash, of 32 bytes at least.
            if identity.is_empty() || binder.len() < 32 {
                return Err(Malformed::BadLength("pre_shared_key"));
            }
            match (rest.is_empty(), binders.is_empty()) {
                (true, true) => return Ok(Self(list)),
                (true, false) => return Err(Malformed::Trailing("pre_shared_key")),
                _ => {}
            }
        }
    }

    /// Whether there is none, that is, whether the extension is absent.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The identity the client would like most.
    pub fn first(&self) -> Option<&'a [u8]> {
        self.iter().next()
    }

    /// The identities in the order sent.
    pub const fn iter(&self) -> PskIdentitiesIter<'a> {
        PskIdentitiesIter(self.0)
    }
}

impl<'a> IntoIterator for PskIdentities<'a> {
    type Item = &'a [u8];
    type IntoIter = PskIdentitiesIter<'a>;

    fn into_iter(self) -> PskIdentitiesIter<'a> {
        self.iter()
    }
}

/// Iterates over [`PskIdentities`].
#[derive(Clone, Debug)]
pub struct PskIdentitiesIter<'a>(Reader<'a>);

impl<'a> Iterator for PskIdentitiesIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let identity = self.0.vector16()?;
        self.0.u32()?;
        Some(identity)
    }
}

/// Whether a value is one that means nothing and is sent to keep servers tolerant (RFC 8701 section 2):
/// 0x0a0a, 0x1a1a, to 0xfafa, among cipher suites, groups, versions, signature schemes and extensions alike.
pub const fn is_grease(value: u16) -> bool {
    let [high, low] = value.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}
