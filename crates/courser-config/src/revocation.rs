//! Lists of revoked certificates: reading `client_crl` and `crl`. May not read the files that they name.

use std::path::PathBuf;

use crate::address::located_file;
use crate::named::named;
use crate::problem::{Problem, Problems};
use crate::read::{self, Located};
use crate::value::{Literal, Value};

/// What is revoked, and what is done where that is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// The lists, at least one file, PEM or DER.
    pub files: Vec<Located<PathBuf>>,
    /// Which certificates of a chain are looked up.
    pub depth: CrlDepth,
    /// What is done with a certificate that no list covers.
    pub unknown: CrlFallback,
    /// What is done while a list is older than its authority has promised.
    pub expired: CrlFallback,
}

named! {
    /// Which certificates of a chain are looked up.
    #[derive(Default)]
    CrlDepth {
        /// All but the authority's own.
        #[default]
        Chain = "chain",
        /// The peer's own.
        Leaf = "leaf",
    }
}

named! {
    /// What is done where it is not known whether a certificate is revoked.
    #[derive(Default)]
    CrlFallback {
        /// It is refused.
        #[default]
        Deny = "deny",
        /// It is accepted.
        Allow = "allow",
    }
}

/// Reads a list of files, or a table with one.
pub(crate) fn read(value: &Value) -> Result<Revocation, Problems> {
    let Literal::Table(table) = &value.literal else {
        let files = read::some(value, located_file)?;
        let (unknown, expired) = (CrlFallback::default(), CrlFallback::default());
        return Ok(Revocation { files, depth: CrlDepth::default(), unknown, expired });
    };
    table.refuse_others(&["files", "depth", "unknown", "expired"])?;
    let Some(files) = table.get("files") else {
        return Err(Problem::at(&value.origin, "the table has no `files`", None).into());
    };
    let fallback =
        |key: &str| table.get(key).map_or(Ok(CrlFallback::default()), |value| read::named(value, "value"));
    Ok(Revocation {
        files: read::some(files, located_file)?,
        depth: table.get("depth").map_or(Ok(CrlDepth::default()), |value| read::named(value, "depth"))?,
        unknown: fallback("unknown")?,
        expired: fallback("expired")?,
    })
}
