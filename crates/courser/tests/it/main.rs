//! The terminator as its users meet it: the real program, and clients and backends that are not ours.

mod negotiation;
mod certificates;
mod resumption;
mod clients;

mod bad_input;
mod relay;
mod backends;
mod proxy_header;
mod listeners;
mod limits;
mod log;
mod command_line;

mod stage;
mod support;
