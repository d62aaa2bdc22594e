//! Keys and self-signed certificates for targets, by the `openssl` program: also of sizes that nothing else makes today.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use super::folder::{make_folder, write};

/// What certificates say; and keys of any size, which distributions' settings refuse.
const SETTINGS: &str = "\
openssl_conf = main
[main]
ssl_conf = modules
[modules]
system_default = defaults
[defaults]
CipherString = DEFAULT:@SECLEVEL=0
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = localhost
[extensions]
subjectAltName = DNS:localhost, IP:127.0.0.1
basicConstraints = critical, CA:FALSE
";

/// A key and its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// What kind of key it has.
    pub kind: KeyKind,
    /// The certificate, PEM.
    pub chain: PathBuf,
    /// The key, PEM.
    pub key: PathBuf,
    /// Both in one file, the certificate first, PEM.
    pub combined: PathBuf,
}

/// A kind of key. Written as in reports: `RSA-2048`, `P-256`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA, with its bits.
    Rsa(u32),
    /// ECDSA on P-256.
    P256,
    /// ECDSA on P-384.
    P384,
    /// Ed25519.
    Ed25519,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa(bits) => write!(f, "RSA-{bits}"),
            Self::P256 => f.write_str("P-256"),
            Self::P384 => f.write_str("P-384"),
            Self::Ed25519 => f.write_str("Ed25519"),
        }
    }
}

impl FromStr for KeyKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rsa = || text.strip_prefix("RSA-")?.parse().ok().filter(|bits| (512..=16_384).contains(bits));
        match text {
            "P-256" => Ok(Self::P256),
            "P-384" => Ok(Self::P384),
            "Ed25519" => Ok(Self::Ed25519),
            _ => rsa().map(Self::Rsa).ok_or_else(|| {
                format!(
                    "{text} is no kind of key; write RSA-2048 (512 to 16384 bits), P-256, P-384 or Ed25519"
                )
            }),
        }
    }
}

/// A key of this kind with a self-signed certificate for `localhost` and 127.0.0.1, in `folder`, readable by its owner
/// alone. What is there already is taken.
///
/// # Errors
/// When `openssl` is missing or refuses, in a sentence.
pub fn certificate(kind: KeyKind, folder: &Path) -> Result<Certificate, String> {
    let file = |end: &str| folder.join(format!("{}{end}", kind.to_string().to_lowercase()));
    let kind = Certificate { kind, chain: file(".crt"), key: file(".key"), combined: file(".pem") };
    // It is made last, and has its name only once it is whole.
    if !kind.combined.exists() {
        make_folder(folder)?;
        make(&kind, folder)?;
    }
    Ok(kind)
}

fn make(kind: &Certificate, folder: &Path) -> Result<(), String> {
    let settings = folder.join("openssl.cnf");
    write(&settings, SETTINGS)?;
    let algorithm = algorithm(kind.kind);
    let algorithm = algorithm.iter().map(String::as_str);
    // Made beforehand: the program keeps the permissions of a file that is there.
    write(&kind.key, "")?;
    write(&kind.chain, "")?;
    let (key, chain) = (text(&kind.key)?, text(&kind.chain)?);
    openssl(["genpkey", "-out", key].into_iter().chain(algorithm), &settings)?;
    openssl(["req", "-x509", "-new", "-sha256", "-days", "3650", "-key", key, "-out", chain], &settings)?;
    let read = |path: &Path| fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()));
    let partial = folder.join(format!("{}.partial", kind.kind));
    write(&partial, &format!("{}{}", read(&kind.chain)?, read(&kind.key)?))?;
    fs::rename(&partial, &kind.combined).map_err(|why| format!("{}: {why}", partial.display()))
}

fn algorithm(kind: KeyKind) -> Vec<String> {
    let curve = |name: &str| ["-algorithm", "EC", "-pkeyopt", name].map(str::to_owned).to_vec();
    match kind {
        KeyKind::Rsa(bits) => vec![
            "-algorithm".to_owned(),
            "RSA".to_owned(),
            "-pkeyopt".to_owned(),
            format!("rsa_keygen_bits:{bits}"),
        ],
        KeyKind::P256 => curve("ec_paramgen_curve:P-256"),
        KeyKind::P384 => curve("ec_paramgen_curve:P-384"),
        KeyKind::Ed25519 => vec!["-algorithm".to_owned(), "ED25519".to_owned()],
    }
}

fn openssl<'a>(arguments: impl IntoIterator<Item = &'a str>, settings: &Path) -> Result<(), String> {
    let mut command = Command::new("openssl");
    let output = command.args(arguments).env("OPENSSL_CONF", settings).stdin(Stdio::null()).output();
    let output =
        output.map_err(|why| format!("openssl, which makes certificates, cannot be started: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("without a word");
    Err(format!("openssl makes no certificate ({}): {last}", output.status))
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{}: no UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_keys_are_read_as_they_are_written() {
        for name in ["RSA-512", "RSA-1024", "RSA-4096", "P-256", "P-384", "Ed25519"] {
            assert_eq!(name.parse::<KeyKind>().map(|kind| kind.to_string()), Ok(name.to_owned()));
        }
        for name in ["RSA-", "RSA-256", "rsa-2048", "P-521", ""] {
            assert!(name.parse::<KeyKind>().is_err(), "{name}");
        }
    }
}
