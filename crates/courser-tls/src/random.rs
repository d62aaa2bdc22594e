//! Random bytes in small portions, from a buffer.
//!
//! A full TLS 1.3 handshake draws random bytes seven times besides the key exchange and the signature: a ServerHello
//! random and, for each ticket, two nonces and an age mask. Each would be a system call, or half a microsecond of the
//! library's generator; so a thread draws some at a time. Bytes are used once, and overwritten as they go.
//!
//! The bytes come from the system, and none remain from one step of a connection to the next: a machine whose snapshot
//! is resumed twice would use them twice. A ServerHello random that comes twice is worse than it looks: who
//! replays a TLS 1.2 resumption to both has two streams under the same keys and nonces. Whatever a snapshot catches
//! within a step belongs to a connection whose keys it has caught as well.

use std::cell::RefCell;

use rustix::rand::{GetRandomFlags, getrandom};
use rustls::crypto::{GetRandomFailed, SecureRandom};

/// A ServerHello and its session ID take 64 bytes, each ticket 48.
const BUFFER_SIZE: usize = 128;

struct Buffer {
    bytes: [u8; BUFFER_SIZE],
    /// The first `used` bytes are gone.
    used: usize,
}

thread_local! {
    static BUFFER: RefCell<Buffer> = const { RefCell::new(Buffer { bytes: [0; BUFFER_SIZE], used: BUFFER_SIZE }) };
}

/// The system's generator with a buffer for a step.
#[derive(Debug)]
pub struct BufferedRandom;

impl SecureRandom for BufferedRandom {
    fn fill(&self, out: &mut [u8]) -> Result<(), GetRandomFailed> {
        fill(out)
    }
}

/// Begins a step of a connection: wipes what is left of the one before.
pub(crate) fn begin_step() {
    BUFFER.with_borrow_mut(|stock| {
        stock.bytes[stock.used..].fill(0);
        stock.used = BUFFER_SIZE;
    });
}

/// Fills `out` with random bytes.
pub(crate) fn fill(out: &mut [u8]) -> Result<(), GetRandomFailed> {
    if out.len() > BUFFER_SIZE {
        return draw(out);
    }
    BUFFER.with_borrow_mut(|stock| {
        if BUFFER_SIZE - stock.used < out.len() {
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

/// From getrandom(2), which returns fewer bytes beyond 256 when a signal arrives.
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
    fn no_bytes_come_twice_across_refills_and_threads() {
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
    fn used_bytes_are_overwritten() {
        let mut helping = [0; 32];
        fill(&mut helping).expect("the system has randomness");
        BUFFER.with_borrow(|stock| assert!(stock.bytes[..stock.used].iter().all(|&byte| byte == 0)));
        let mut large = vec![0; 2 * BUFFER_SIZE];
        fill(&mut large).expect("the system has randomness");
        assert!(large.iter().any(|&byte| byte != 0));
    }

    /// The thread's buffer is what it was; the bytes drawn next are not.
    #[test]
    fn a_snapshot_that_is_resumed_twice_draws_other_bytes() {
        let step = || {
            begin_step();
            let mut helping = [0; 32];
            fill(&mut helping).expect("the system has randomness");
            helping
        };
        let _ = step();
        let snapshot = BUFFER.with_borrow(|stock| (stock.bytes, stock.used));
        let first = step();
        BUFFER.with_borrow_mut(|stock| (stock.bytes, stock.used) = snapshot);
        assert_ne!(step(), first);
    }

    #[test]
    fn nothing_is_left_of_a_step() {
        fill(&mut [0; 32]).expect("the system has randomness");
        begin_step();
        BUFFER.with_borrow(|stock| assert_eq!((stock.bytes, stock.used), ([0; BUFFER_SIZE], BUFFER_SIZE)));
    }
}
