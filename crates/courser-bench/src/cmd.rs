//! The verbs, one file each.

pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod delay;
pub(crate) mod handshake;
pub(crate) mod idle;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod origin;
pub(crate) mod overheads;
pub(crate) mod pages;
pub(crate) mod plan;
pub(crate) mod primitives;
pub(crate) mod ramp;
pub(crate) mod records;
pub(crate) mod report;
pub(crate) mod respond;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod start;
pub(crate) mod supervise;
pub(crate) mod system_check;
pub(crate) mod targets;
