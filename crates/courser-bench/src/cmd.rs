//! The verbs, one file each.

pub(crate) mod calibrate;
pub(crate) mod handshake;
pub(crate) mod idle;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod origin;
pub(crate) mod overheads;
pub(crate) mod primitives;
pub(crate) mod ramp;
pub(crate) mod records;
pub(crate) mod respond;
pub(crate) mod search;
