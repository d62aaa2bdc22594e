//! The lists of a hello, borrowed: checked once when they are read, walked without a fault afterwards.

use std::iter;

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
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u16> + use<'a> {
        self.0.iter().map(|&bytes| u16::from_be_bytes(bytes))
    }

    /// The values in the order sent, but for those that mean nothing (RFC 8701).
    pub fn without_grease(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.iter().filter(|&value| !is_grease(value))
    }
}

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

    /// Whether this name is the only one.
    pub fn are_only(&self, name: &[u8]) -> bool {
        let mut names = self.iter();
        names.next() == Some(name) && names.next().is_none()
    }

    /// The names in the client's order of preference.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut names = self.0;
        iter::from_fn(move || names.vector8())
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
    pub fn iter(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let mut shares = self.0;
        iter::from_fn(move || Some((shares.u16()?, shares.vector16()?)))
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

    /// The identities in the order sent.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut identities = self.0;
        iter::from_fn(move || {
            let identity = identities.vector16()?;
            identities.u32()?;
            Some(identity)
        })
    }
}

/// Whether a value is one that means nothing and is sent to keep servers tolerant (RFC 8701 section 2):
/// 0x0a0a, 0x1a1a, to 0xfafa, among cipher suites, groups, versions, signature schemes and extensions alike.
pub const fn is_grease(value: u16) -> bool {
    let [high, low] = value.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}
