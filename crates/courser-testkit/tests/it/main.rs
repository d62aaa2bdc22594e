//! The test support itself, tried on programs that every machine has and on real TLS tools where they are installed.

mod architecture;
mod ca;
mod hostile;
mod liar;
mod limits_page;
mod network;
mod origin;
mod process;
mod rival;
mod skip;
