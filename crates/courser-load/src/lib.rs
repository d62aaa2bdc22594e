//! The load engine: clients that open connections on a schedule fixed in advance, and account for each; and the
//! origin, a backend with objects of any size. It may not read a file, know a file format or print.

pub mod delay;
pub mod http;
pub mod origin;

pub mod inspect;

pub mod plan;
pub mod schedule;
pub mod spec;
pub mod tls_options;
pub mod url;

pub mod run;
mod thread;
mod worker;

mod account;
mod attempt;
mod channel;
mod connection;
mod exchange;

pub mod failure;
pub mod names;
pub mod offered;
pub mod tally;
