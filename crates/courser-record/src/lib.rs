//! The result file of `courser-bench`: versioned types, JSON, merging.
//!
//! A [`Record`] is everything that is known about a measurement: what was asked, on what, what came out second by
//! second, and whether it may be believed. It is plain owned data, and one JSON document with a committed schema
//! ([`SCHEMA`]). Reports are made from records alone, so whatever a report should say has to be in here.
//!
//! Units are in the names: `_us` is microseconds, `_unix_us` microseconds since 1970-01-01 UTC, `_bytes` bytes.
//! Shares are 0 to 1. A figure that could not be measured is `null`, never 0.
//!
//! # Versions
//! The same version may gain optional fields: a reader ignores what it does not know, and takes a missing optional
//! field as unknown. Whoever reads and writes a record of a newer courser with the same version therefore loses the
//! fields that are new. A change of meaning, a field that is gone, a new required field or a new value of an
//! enumeration is a new version, which older programs refuse by name.
//!
//! A [`Lab`] is the record of a suite: cases on several targets, in interleaved blocks ([`lab::LAB_SCHEMA`]).
//!
//! Bytes in, bytes out: no file, no clock and no socket. The time of a record comes from the caller.

mod aliases;
pub mod encode;
pub mod experiment;
pub mod format;
pub mod lab;
pub mod machine;
pub mod merge;
pub mod read;
pub mod record;
pub mod run;
pub mod second;
pub mod times;
pub mod totals;
pub mod usage;

#[cfg(test)]
mod schema;

pub use encode::{Packed, Summary};
pub use experiment::{
    Arrivals, CloseMode, Expected, Experiment, LoadKind, LoadModel, Phases, Request, Resumption, Share,
    Sockets, Target, TlsOffer, Verification,
};
pub use format::{FORMAT, SCHEMA, VERSION};
pub use lab::Lab;
pub use machine::Machine;
pub use merge::{MergeError, merge};
pub use read::ReadError;
pub use record::{Envelope, Found, Record, Source, Tool};
pub use run::{Finding, Run, RunTimes, Severity, Verdict};
pub use second::{Phase, Second};
pub use totals::{Completions, FAILURE_SAMPLES, FailureSample, Handshake, Negotiated, Outcomes, Totals};
pub use usage::{
    CoreUsage, CpuLimit, GeneratorThread, GeneratorUsage, HandshakeBytes, IdleMemory, RequestBytes,
    ServerThread, ServerUsage, WireCost,
};
