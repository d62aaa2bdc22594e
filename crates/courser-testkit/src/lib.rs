//! Support for tests and benchmarks: what surrounds the terminator when it is tested from outside.
//!
//! A dev-dependency only: nothing that is shipped may name this crate. It never links the terminator; it starts the
//! program and speaks to it over sockets. Since its callers are tests, its functions panic with the reason when
//! something that has nothing to do with the test goes wrong (no process, port, file or link can be had), unless they
//! return a `Result`. A section on panics names what else they panic at.

pub mod blocked_pipe;
pub mod ca;
pub mod client;
pub mod competitor;
pub mod courser;
pub mod engine;
pub mod fault_proxy;
pub mod faulty_server;
pub mod folder;
pub mod load;
pub mod network;
pub mod open_load;
pub mod origin;
pub mod overlay;
pub mod pebble;
pub mod process;
pub mod skip;
pub mod stuck;
pub mod tools;

pub use blocked_pipe::BlockedPipe;
pub use ca::{Issued, KeyType, Leaf, Pair, TestCa};
pub use courser::Courser;
pub use courser_machine::usage;
pub use courser_tls_client as tls_client;
pub use engine::{Engine, EngineServer, join_cluster};
pub use fault_proxy::{FaultLink, FaultProxy};
pub use faulty_server::{Fault, FaultyServer};
pub use folder::Folder;
pub use open_load::{Offer, OpenLoad};
pub use origin::{Behaviour, OriginServer, body};
pub use pebble::Pebble;
pub use process::{Finished, PATIENCE, Process, Signal};
pub use skip::{leave_out, skip};
pub use stuck::Stuck;
pub use tools::{find, free_port, require};
