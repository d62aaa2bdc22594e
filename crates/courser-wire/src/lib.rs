//! Bytes on the wire to types, and back: the TLS records that open a connection, the ClientHello in them,
//! the alert that refuses it, and the PROXY protocol in both versions.
//!
//! Reads no clock, opens no socket, needs no runtime and no other crate. Everything here may be handed bytes
//! that an attacker chose: a function answers with a value or an error, never with a panic, and what it costs
//! is linear in what it was given.

pub mod record;

pub mod hello;

pub mod server_hello;

pub mod alert;

pub mod proxy;

mod bytes;
