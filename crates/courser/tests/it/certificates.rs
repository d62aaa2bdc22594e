//! Which certificate a client gets, and what is said of files that cannot be served.

mod by_client;
mod by_name;
mod files;
mod formats;
mod hello;
mod many;
mod staple;
mod validity;
