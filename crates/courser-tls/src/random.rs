//! Random bytes in small helpings.
//!
//! A full TLS 1.3 handshake asks for randomness seven times besides the key exchange and the signature: a ServerHello
//! random and, for each ticket, two nonces and an age mask. Each helping would be a system call, or half a microsecond of
//! the library's generator; so a thread draws some at a time. Bytes are handed out once, and overwritten as they go.
//!
//! What is drawn comes from the system, and is not kept from one step of a connection to the next: a machine whose
//! snapshot is resumed twice would hand it out twice. A ServerHello random that comes twice is worse than it looks: who
//! replays a TLS 1.2 resumption to both has two streams under the same keys and nonces. Whatever a snapshot catches
//! within a step belongs to a connection whose keys it has caught as well.

use std::cell::RefCell;

use rustix::rand::{GetRandomFlags, getrandom};
use rustls::crypto::{GetRandomFailed, SecureRandom};

/// A ServerHello and its session ID take 64 bytes, each ticket 48.
const STOCK: usize = 128;

struct Stock {
    bytes: [u8; STOCK],
    /// The first `used` bytes are gone.
    used: usize,
}

thread_local! {
    static STOCKED: RefCell<Stock> = const { RefCell::new(Stock { bytes: [0; STOCK], used: STOCK }) };
}

/// The system's generator with a stock for a step.
#[derive(Debug)]
pub(crate) struct Stocked;

impl SecureRandom for Stocked {
    fn fill(&self, out: &mut [u8]) -> Result<(), GetRandomFailed> {
        fill(out)
    }
}

/// Begins a step of a connection: what is left of the one before is gone.
pub(crate) fn begin_step() {
    STOCKED.with_borrow_mut(|stock| {
        stock.bytes[stock.used..].fill(0);
        stock.used = STOCK;
    });
}

/// Fills `out` with random bytes.
pub(crate) fn fill(out: &mut [u8]) -> Result<(), GetRandomFailed> {
    if out.len() > STOCK {
        return draw(out);
    }
    STOCKED.with_borrow_mut(|stock| {
        if STOCK - stock.used < out.len() {
            draw(&mut stock.bytes)?;
            stock.used = 0;
        }
        let helping = &mut stock.bytes[stock.used..stock.used + out.len()];
        out.copy_from_slice(helping);
        helping.fill(0);
        stock.used += out.len();
        Ok(())
    })
}

/// From getrandom(2), which gives less than was asked for beyond 256 bytes when a signal comes.
fn draw(mut out: &mut [u8]) -> Result<(), GetRandomFailed> {
    while !out.is_empty() {
        let drawn = rustix::io::retry_on_intr(|| getrandom(&mut *out, GetRandomFlags::empty()));
        out = &mut out[drawn.map_err(|_| GetRandomFailed)?..];
    }
    Ok(())
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

    /// All that a thread keeps is what it was; what comes next is not.
    #[test]
    fn a_snapshot_that_is_resumed_twice_draws_other_bytes() {
        let step = || {
            begin_step();
            let mut helping = [0; 32];
            fill(&mut helping).expect("the system has randomness");
            helping
        };
        let _ = step();
        let snapshot = STOCKED.with_borrow(|stock| (stock.bytes, stock.used));
        let first = step();
        STOCKED.with_borrow_mut(|stock| (stock.bytes, stock.used) = snapshot);
        assert_ne!(step(), first);
    }

    #[test]
    fn nothing_is_left_of_a_step() {
        fill(&mut [0; 32]).expect("the system has randomness");
        begin_step();
        STOCKED.with_borrow(|stock| assert_eq!((stock.bytes, stock.used), ([0; STOCK], STOCK)));
    }
}
