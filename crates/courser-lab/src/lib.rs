//! Suites on several terminators: a suite's cases, its targets, one run measured and judged, and the record that is
//! on disk after every block. It cannot reach the command line, a terminal, a report or the proxy: targets are
//! processes, and the caller shows what `progress.rs` and `measure::Watch` pass to it.

pub mod error;

pub mod selector;
pub mod suite;
pub mod target;
pub mod verify;

mod equal;

pub mod limit;
pub mod profile;

pub mod in_process;
pub mod overheads;
pub mod primitives;
pub mod responder;

pub mod comparing;
pub mod progress;
pub mod run;

mod control;
mod libraries;
mod prepare;
mod request;
pub mod start;
pub mod state;

pub mod block;
pub mod command;
pub mod cores;
mod overload;
pub mod scratch;
pub mod share;
mod window;

pub mod files;
pub mod findings;
pub mod measure;
pub mod reading;
pub mod record_file;
pub mod to_record;
pub mod tuning;

mod clock;
