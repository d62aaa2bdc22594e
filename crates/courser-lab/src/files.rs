//! Files that flags name.

use std::io::Read;
use std::path::Path;

use courser_load::tls_options::ReadFile;
use sha2::{Digest, Sha256};

/// Reads a file for a load: the engine has no access to any.
pub const READ: ReadFile<'static> = &|path| std::fs::read(path);

/// SHA-256 of a file, hexadecimal; none when it cannot be read.
pub fn sha256(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    let digits = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Some(digits)
}
