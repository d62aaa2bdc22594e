//! The load engine: clients that open connections on a schedule fixed in advance, and account for each; and the
//! origin, a backend with objects of any size. It knows no file format and prints nothing.

pub mod http;
pub mod origin;

pub mod inspect;

pub mod choice;
pub mod plan;
pub mod schedule;

pub mod run;
mod worker;

mod connection;
mod channel;
mod account;

pub mod failure;
pub mod names;
pub mod offered;
pub mod tally;

pub mod machine;
pub mod overheads;
pub mod primitives;
pub mod usage;

mod clock;
