//! Version 2: binary, with room for what was learnt from the handshake (section 2.2).

mod field;
mod header;
mod parse;
mod ssl;
mod write;

use header::HEADER;
pub use header::{Command, ProxyHeader};
pub use parse::{fields, parse};
pub use ssl::Ssl;
pub use write::{Unwritable, write, write_with};

/// The longest header: 16 bytes and what their length can count.
pub const MAX_LENGTH: usize = HEADER + u16::MAX as usize;

#[cfg(test)]
mod tests;
