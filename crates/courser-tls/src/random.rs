//! Random bytes in small helpings.
//!
//! A full TLS 1.3 handshake asks for randomness seven times besides the key exchange and the signature: a ServerHello
//! random and, for each ticket, two nonces and an age mask. Each call costs the library's generator half a
//! microsecond, whether for 4 bytes or for 500, because it mixes fresh hardware entropy into every one. So each
//! thread draws 512 bytes at a time. Bytes are handed out once, and overwritten as they go.

use std::cell::RefCell;

use aws_lc_rs::rand;
use rustls::crypto::{GetRandomFailed, SecureRandom};

const STOCK: usize = 512;

struct Stock {
    bytes: [u8; STOCK],
    /// The first `used` bytes are gone.
    used: usize,
}

thread_local! {
    static STOCKED: RefCell<Stock> = const { RefCell::new(Stock { bytes: [0; STOCK], used: STOCK }) };
}

/// The library's generator with a stock per thread.
#[derive(Debug)]
pub(crate) struct Stocked;

impl SecureRandom for Stocked {
    fn fill(&self, out: &mut [u8]) -> Result<(), GetRandomFailed> {
        fill(out).map_err(|_| GetRandomFailed)
    }
}

/// Fills `out` with random bytes.
pub(crate) fn fill(out: &mut [u8]) -> Result<(), aws_lc_rs::error::Unspecified> {
    if out.len() > STOCK {
        return rand::fill(out);
    }
    STOCKED.with_borrow_mut(|stock| {
        if STOCK - stock.used < out.len() {
            rand::fill(&mut stock.bytes)?;
            stock.used = 0;
        }
        let helping = &mut stock.bytes[stock.used..stock.used + out.len()];
        out.copy_from_slice(helping);
        helping.fill(0);
        stock.used += out.len();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_helping_comes_twice_across_refills_and_threads() {
        let draw = || {
            (0..200)
                .map(|_| {
                    let mut helping = [0; 12];
                    fill(&mut helping).expect("the system has randomness");
                    helping
                })
                .collect::<Vec<_>>()
        };
        let other = std::thread::spawn(draw);
        let mut seen: HashSet<_> = draw().into_iter().collect();
        seen.extend(other.join().expect("drawing does not panic"));
        assert_eq!(seen.len(), 400);
    }

    #[test]
    fn what_was_handed_out_is_overwritten() {
        let mut helping = [0; 32];
        fill(&mut helping).expect("the system has randomness");
        STOCKED.with_borrow(|stock| assert!(stock.bytes[..stock.used].iter().all(|&byte| byte == 0)));
        let mut large = vec![0; 2 * STOCK];
        fill(&mut large).expect("the system has randomness");
        assert!(large.iter().any(|&byte| byte != 0));
    }
}
