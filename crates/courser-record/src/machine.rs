//! The machine that a generator ran on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What about a machine can change a result. Plain facts; judging them is for others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// Its name, or a hash of it where names are private.
    pub name: String,
    /// The processor, as it calls itself.
    pub cpu_model: String,
    /// Logical processors that the program may use.
    pub cores: u32,
    /// Name and release of the kernel.
    pub kernel: String,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Limit of open files of the process.
    pub open_files: u64,
    /// The hypervisor or container, `none` on bare metal; null when unknown.
    pub virtualisation: Option<String>,
    /// Cryptographic libraries and their versions.
    pub crypto: BTreeMap<String, String>,
    /// Kernel settings that bear on a load, by name.
    pub sysctls: BTreeMap<String, String>,
    /// Whatever else is known: clock source, governor, network driver and the like.
    pub facts: BTreeMap<String, String>,
}
