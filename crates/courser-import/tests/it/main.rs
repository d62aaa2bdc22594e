//! Imports of texts. That courser then does what the originals do is held by the tests of `courser`, with the originals.

mod any_text;
mod ciphers;
mod haproxy;
mod hitch;
mod memory;
mod stunnel;
