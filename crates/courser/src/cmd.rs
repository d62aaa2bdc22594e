//! One file per command.

pub(crate) mod acme;
pub(crate) mod backend;
pub(crate) mod check;
pub(crate) mod fleet;
pub(crate) mod harden;
pub(crate) mod import;
pub(crate) mod pages;
pub(crate) mod reload;
pub(crate) mod serve;
#[cfg(feature = "top")]
pub(crate) mod top;
pub(crate) mod upgrade;
