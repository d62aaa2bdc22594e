//! What an agent orders by.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use courser_tls::Authorities;
use zeroize::Zeroizing;

/// The CA, and how to order from it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of the program's state; everything is in `acme/` below it.
    pub folder: PathBuf,
    /// URL of the CA's directory, https.
    pub directory: String,
    /// What issued the directory's own certificate; `None`: what the system trusts.
    pub directory_ca: Option<Authorities>,
    /// Whom the CA may write to, as URLs.
    pub contact: Vec<String>,
    /// What binds the account to one that there is already (RFC 8555, section 7.3.4).
    pub external: Option<ExternalAccount>,
    /// Profile of certificates; `None`: the CA's default one.
    pub profile: Option<String>,
}

/// The binding to an account that the CA has already.
#[derive(Clone)]
pub struct ExternalAccount {
    /// Key identifier.
    pub id: String,
    /// Key of the message authentication code.
    pub key: Arc<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ExternalAccount {
    /// Reads the text of a file: the key identifier on the first line, the key in base64url on the second.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        use base64::Engine as _;
        use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let (Some(id), Some(key), None) = (lines.next(), lines.next(), lines.next()) else {
            return Err("it has not two lines, the key identifier and the key");
        };
        let key = key.trim_end_matches('=');
        // RFC 8555 has base64url; some CAs show plain base64.
        let decoded = URL_SAFE_NO_PAD.decode(key).or_else(|_| STANDARD_NO_PAD.decode(key));
        let key = decoded.map_err(|_| "its second line is not in base64url")?;
        if key.is_empty() {
            return Err("its second line is empty");
        }
        Ok(Self { id: id.to_owned(), key: Arc::new(Zeroizing::new(key)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_external_account_is_two_lines() {
        let read = |text: &str| ExternalAccount::parse(text).map(|found| (found.id, found.key.to_vec()));
        assert_eq!(read("kid-1\nAAH_\n"), Ok(("kid-1".to_owned(), vec![0, 1, 255])));
        assert_eq!(read("\n kid-1 \n\nAAH/=\n"), Ok(("kid-1".to_owned(), vec![0, 1, 255])));
        for wrong in ["", "kid-1", "kid-1\n?", "kid-1\n=", "kid-1\nAAH_\nmore"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
