//! What a load client needs of HTTP/1.1 (RFC 9112): a request rendered once, and a reader that says whether the answer
//! is the right one. A wrong answer is a failure, not a fast success. Of HTTP/2 (RFC 9113) the request alone is here, and
//! the reader takes its answers: frames are the library's.
//!
//! No socket and no clock: bytes in, verdict out. Reading allocates only when an answer's head comes in pieces.

mod request;

mod answer;

pub(crate) mod framing;

pub(crate) mod chunks;

pub(crate) mod body;

pub use answer::{Answer, BodyCheck, Expect, ExpectedStatus, Progress, WrongAnswer};
pub use body::body;
pub use request::{BadRequest, Http2Request, Method, Rendered, Request, Then};

/// The longest head that is read, in bytes; real servers stay below 16 KiB.
pub const HEAD_LIMIT: usize = 32 * 1024;

#[cfg(test)]
mod tests;
