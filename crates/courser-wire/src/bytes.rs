//! A cursor over borrowed bytes, big-endian as both TLS and the PROXY protocol are. It knows no field names:
//! it answers `None` where the bytes end, and the caller says which field that was.

/// Reads from the front of a slice, and never past its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What has not been read yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|&[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(|&bytes| u16::from_be_bytes(bytes))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|&bytes| u32::from_be_bytes(bytes))
    }

    /// A vector behind a length of one byte (`opaque x<0..2^8-1>`, RFC 8446 section 3.4).
    pub(crate) fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// A vector behind a length of two bytes (`opaque x<0..2^16-1>`, RFC 8446 section 3.4).
    pub(crate) fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_in_turn_and_nothing_is_left() {
        let mut reader = Reader::new(&[2, 7, 8, 0, 1, 9]);
        assert_eq!(reader.vector8(), Some(&[7, 8][..]));
        assert_eq!(reader.vector16(), Some(&[9][..]));
        assert!(reader.is_empty());
    }

    #[test]
    fn a_vector_that_claims_more_than_there_is_reads_as_nothing() {
        assert_eq!(Reader::new(&[3, 1, 2]).vector8(), None);
        assert_eq!(Reader::new(&[0, 2, 1]).vector16(), None);
        assert_eq!(Reader::new(&[1]).u16(), None);
    }
}
