//! Certificates from a CA that speaks ACME (RFC 8555): when to order, the order itself, and the files that come of it.
//!
//! The result is files: a reload takes them, as it takes anybody's. What is under way is in files too, so that a process that
//! is killed at any moment loses nothing and orders nothing twice. [`plan`] decides, without a clock and without a network;
//! [`Agent`] does it, on a thread with a runtime of its own. Reaches no connection of a client: who asks for a challenge
//! (RFC 8737) is answered by whoever implements [`ChallengeBoard`].

mod account;
mod agent;
mod binding;
mod board;
mod certificate;
mod client;
mod entry;
mod folder;
mod handle;
mod http;
mod names;
mod order;
pub mod plan;
mod settings;
mod status;
mod trouble;
mod unread;

pub use agent::Agent;
pub use board::{Challenge, ChallengeBoard, Unanswered};
pub use folder::pair_file;
pub use handle::{Handle, RecordError};
pub use names::NameSet;
pub use settings::{ExternalAccount, Settings};
pub use status::{DryRun, SetStatus, TxtRecord};
