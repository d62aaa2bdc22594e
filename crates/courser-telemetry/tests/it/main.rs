//! What people read about the log, held to what is written.

mod metrics;
mod page;
