//! The path of a connection, from the accept queue to its line in the log.
//!
//! [`connection`] is the spine: one call per step, each step in the file that bears its name. A connection lives on one
//! [`worker`] thread and takes no process-wide lock. Settings arrive as plain structs in [`settings`]; this crate
//! reads no configuration and no file. Sessions of other hosts come through one handle, `RemoteSessions` of courser-sharing.

mod connection;

mod accept;
mod accept_proxy;
mod account;
mod admission;
mod affinity;
mod backend;
mod backend_handshake;
mod certificate;
mod challenge;
mod challenges;
mod classify;
mod client;
mod close;
mod handshake;
mod pipe;
mod proxy_header;
mod request;
mod resume;
mod route;
mod session_servers;
mod side;

pub mod settings;
pub mod worker;
mod worker_state;

mod buffers;
mod clock;
mod deadline;
mod gates;
mod handshake_budget;
mod orders;
pub mod overload;
mod pool;
mod pulse;
mod resolve;
pub mod supervision;

pub use admission::Admission;
pub use affinity::Affinity;
pub use challenges::{Challenges, PROTOCOL as CHALLENGE_PROTOCOL};
pub use clock::since_start;
pub use courser_overload::{Limits, Prefixes};
pub use orders::{Order, Orders};
pub use overload::{Crowd, OverloadSettings, Visitors};
pub use pool::{Backend, Distribution, Location, Pool, ServerSpec, Target};
pub use pulse::Pulse;
pub use resolve::{Answer, Lookable, Resolver};
pub use settings::Certificates;
pub use supervision::Threads;
pub use worker::{Command, Listeners, Taken, Worker};
