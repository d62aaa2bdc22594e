//! Names and records that the outside sees: close reasons and their causes, the line of a connection, metrics, and where
//! lines go.
//!
//! Every name that a log reader or a dashboard may rely on is defined here and nowhere else. This crate formats and
//! writes; it opens no socket, knows no TLS and decides nothing about a connection.

pub mod close;
pub mod connection;
pub mod event;
pub mod exposition;
pub mod handshake_result;
pub mod line;
pub mod metrics;
pub mod sink;
pub mod time;

mod log_file;
mod losses;
mod named;
mod writer;

pub use close::{Cause, Close, CloseReason};
pub use connection::{ConnectionRecord, Resumption};
pub use event::Events;
pub use handshake_result::HandshakeResult;
pub use log_file::{LogFile, Reopening};
pub use losses::{LossCause, Losses};
pub use metrics::{Counters, Counts, Directory};
pub use sink::{Format, Lines, Sink};
pub use writer::Output;
