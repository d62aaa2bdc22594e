//! Serial numbers of certificates: by them lists and answers about certificates name them.

/// Longest serial number, bytes (RFC 5280, section 5.2).
pub(crate) const SERIAL: usize = 20;

/// A serial number without the zeros in front that encodings have.
pub(crate) fn serial(number: &[u8]) -> Option<[u8; SERIAL]> {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(number.len());
    let number = &number[start..];
    let mut serial = [0; SERIAL];
    serial.get_mut(SERIAL.checked_sub(number.len())?..)?.copy_from_slice(number);
    Some(serial)
}
