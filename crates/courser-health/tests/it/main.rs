//! What others send to checks.

mod exercise;
