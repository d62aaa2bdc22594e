//! Records to text, pages, tables and plots. A pure function: the same record gives the same bytes, and nothing is in a
//! report that is not in its records.
//!
//! Every figure has its unit and the count behind it, and a percentile that the samples do not support is a dash. No
//! text of a record reaches a terminal with its control characters, or a page as markup: parts of it were chosen by
//! servers.

pub mod answer;
pub mod chart;
pub mod csv;
pub mod diff;
pub mod figure;
pub mod grid;
pub mod html;
pub mod lab_text;
pub mod labels;
pub mod layout;
pub mod markdown;
pub mod ranking;
pub mod text;
