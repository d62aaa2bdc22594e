//! What an operator sees: files and flags in, settings or messages out.

mod files;
mod flags;
mod pages;
mod snapshot;
