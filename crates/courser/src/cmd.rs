//! One file per command.

pub(crate) mod backend;
pub(crate) mod check;
pub(crate) mod fleet;
pub(crate) mod import;
pub(crate) mod pages;
pub(crate) mod reload;
pub(crate) mod serve;
pub(crate) mod upgrade;
