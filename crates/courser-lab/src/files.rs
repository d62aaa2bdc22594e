//! Files that flags name.

use courser_load::tls_options::ReadFile;

/// Reads a file for a load: the engine has no access to any.
pub const READ: ReadFile<'static> = &|path| std::fs::read(path);
