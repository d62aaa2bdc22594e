//! One ticket, kept: hosts of different releases must open each other's.

use crate::{NOW, policy, ticketer, two_hours};

const CAPTURED: &str = include_str!("ticket_v1.hex");

/// `ticket_v1.py` makes the same ticket with another library (pyca/cryptography, on OpenSSL).
#[test]
fn the_format_is_what_it_was() {
    let ticket = ticketer(0x42).seal(&policy("example.org"), two_hours(NOW), b"state", [7; 12], NOW).unwrap();
    let hex: String = ticket.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, CAPTURED.trim());
}

#[test]
fn a_kept_ticket_opens() {
    let text = CAPTURED.trim();
    let bytes = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap());
    let opened = ticketer(0x42).open(&policy("example.org"), &bytes.collect::<Vec<_>>(), NOW).unwrap();
    assert_eq!(opened.state, b"state");
    assert_eq!(opened.lifespan, two_hours(NOW));
}
