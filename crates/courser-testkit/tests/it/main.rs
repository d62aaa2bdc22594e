//! The test support itself, tried on programs that every machine has and on real TLS tools where they are installed.

mod architecture;
mod ca;
mod circles;
mod competitor;
mod documents;
mod faulty_server;
mod hostile;
mod kubernetes;
mod limits_page;
mod network;
mod origin;
mod process;
mod retired_words;
mod skip;
