//! Returning clients: by session ID and ticket in TLS 1.2, by pre-shared key in TLS 1.3; and when they get a full
//! handshake instead.

mod cache;
mod lifetime;
mod policy;
mod restart;
mod returns;
mod switches;
pub(crate) mod visitor;
