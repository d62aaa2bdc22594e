//! CRC32c, the Castagnoli checksum (RFC 4960 appendix B): one byte at a time, as a header has a few hundred.

/// The checksum of all `parts`, one after the other.
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().copied().flatten();
    !bytes.fold(u32::MAX, |sum, &byte| TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ sum >> 8)
}

/// The polynomial 0x1edc6f41, its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        let mut sum = byte;
        let mut bit = 0;
        while bit < 8 {
            sum = sum >> 1 ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte as usize] = sum;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 3720 appendix B.4, and the usual check value.
    #[test]
    fn known_checksums_come_out() {
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(checksum(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(checksum(&[&[0xff; 32]]), 0x62a8_ab43);
        assert_eq!(checksum(&[&ascending]), 0x46dd_794e);
        assert_eq!(checksum(&[b"1234", b"", b"56789"]), 0xe306_9283);
    }
}
