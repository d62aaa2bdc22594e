//! Names, versions and schemas of the two formats.

/// What [`crate::Record::format`] says in every record.
pub const FORMAT: &str = "courser-record";

/// The version of the format that this crate writes, and the newest that it reads.
pub const VERSION: u32 = 2;

/// The JSON Schema (2020-12) of [`VERSION`], for whoever reads records with other tools.
pub const SCHEMA: &str = include_str!("../schema/record-v2.schema.json");

/// What [`crate::Lab::format`] says in every record of a suite.
pub const LAB_FORMAT: &str = "courser-lab";

/// The version of the format that this crate writes, and the newest that it reads.
pub const LAB_VERSION: u32 = 3;

/// The JSON Schema (2020-12) of [`LAB_VERSION`].
pub const LAB_SCHEMA: &str = include_str!("../schema/lab-v3.schema.json");
