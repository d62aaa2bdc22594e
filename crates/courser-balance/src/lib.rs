//! Which server of a pool gets a connection, and which gets none.
//!
//! Pure: no clock, no socket, no runtime. Time comes as an argument (`now`, since the start of the process), randomness
//! from a counter of turns. So distribution, limits and health can be tried on millions of simulated connections.
//!
//! A [`Pool`] is shared by all workers. Nothing in it is locked unless a server has a limit and is full.

mod affinity;
mod balance;
mod hash;
mod health;
mod latency;
mod pool;
mod queue;
mod retry;
mod server;
mod stick_table;

pub use affinity::AffinityKey;
pub use balance::Balance;
pub use health::{Availability, Drain};
pub use pool::{Current, Pick, Pool, Request};
pub use queue::{Handover, Waiting};
pub use retry::RetryBudget;
pub use server::{Server, ServerPermit, ServerSettings, Sharer};
pub use stick_table::StickTable;
