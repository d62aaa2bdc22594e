//! What holds for any bytes as a server's flight; shared with the fuzz target.

use courser_tls_client::flight::FlightReader;

/// However the bytes are cut, the same flight is read.
///
/// # Panics
/// When it has not.
pub(crate) fn flight(input: &[u8]) {
    let (mut whole, mut pieces) = (FlightReader::default(), FlightReader::default());
    whole.read(input);
    input.chunks(1 + input.len() % 7).for_each(|piece| pieces.read(piece));
    assert_eq!(whole.flight(), pieces.flight());
    assert_eq!(whole.is_finished(), pieces.is_finished());
    let flight = whole.flight();
    assert!(!flight.not_tls || flight.version().is_none(), "a TLS record remains one");
    assert!(flight.group().is_none() || flight.hello.is_some());
}
