//! Records to text. A pure function: the same record gives the same bytes, and nothing is in a report that is not in
//! its records.
//!
//! Every figure has its unit and the count behind it, and a percentile that the samples do not support is a dash. No
//! text of a record reaches a terminal with its control characters: parts of it were chosen by servers.

pub mod figure;
pub mod layout;
pub mod text;
