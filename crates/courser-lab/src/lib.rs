//! Suites on several terminators: the cases of a suite, how a target is started and verified, where its time goes and
//! what it takes at least, and what TLS costs inside one process. It cannot reach the command line, a report or the
//! proxy: targets are processes, and whoever calls prints.

pub mod error;

pub mod selector;
pub mod suite;
pub mod target;
pub mod verify;

pub mod limit;
pub mod profile;

pub mod in_process;
pub mod overheads;
pub mod primitives;
pub mod responder;

mod clock;
