//! Who is served when more clients come than can be: whether there are too many, what share of whom is let in, and who is
//! next.
//!
//! Pure: no clock, no socket, no runtime. Time comes as an argument, and what was seen is handed in every few milliseconds. So
//! steps, ramps, bursts and clients that come again can be tried in simulation.
//!
//! Each worker has a [`Control`] and a [`Line`] of its own.

mod control;
mod line;
mod networks;
mod shares;

pub use control::{Change, Control, Limits, Seen};
pub use line::{Class, Line};
pub use networks::{Prefix, Prefixes};
pub use shares::Shares;
