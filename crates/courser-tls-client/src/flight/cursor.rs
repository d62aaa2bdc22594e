//! A cursor over borrowed bytes, big-endian as TLS is. `None` where the bytes end.

#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A vector behind a length of one byte (RFC 8446, section 3.4).
    pub(super) fn vector8(&mut self) -> Option<Self> {
        let length = self.u8()?;
        self.take(length.into()).map(Self)
    }

    /// A vector behind a length of two bytes.
    pub(super) fn vector16(&mut self) -> Option<Self> {
        let length = self.u16()?;
        self.take(length.into()).map(Self)
    }

    /// A vector behind a length of three bytes.
    pub(super) fn vector24(&mut self) -> Option<Self> {
        let [high, middle, low] = self.array()?;
        let length = u32::from_be_bytes([0, high, middle, low]);
        self.take(usize::try_from(length).ok()?).map(Self)
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }
}
