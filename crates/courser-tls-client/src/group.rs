//! Key exchange groups: the library's, and those of the lean engine, which cost the client less, and protect
//! nothing.

mod hybrid;
mod pool;

use courser_tls::TlsConfigError;
use rustls::crypto::{SupportedKxGroup, aws_lc_rs};

/// The lean engine's group for a code point: ours, or the library's where we have none.
pub(crate) fn lean(code: u16) -> Result<&'static dyn SupportedKxGroup, TlsConfigError> {
    if code == u16::from(hybrid::Hybrid.name()) {
        return Ok(&hybrid::Hybrid);
    }
    let ours = pool::GROUPS.iter().find(|group| u16::from(group.name()) == code);
    ours.map_or_else(|| real(code), |group| Ok(group))
}

/// The library's group for a code point.
pub(crate) fn real(code: u16) -> Result<&'static dyn SupportedKxGroup, TlsConfigError> {
    let known = aws_lc_rs::ALL_KX_GROUPS.iter().find(|group| u16::from(group.name()) == code);
    known.copied().ok_or(TlsConfigError::UnknownGroup(code))
}
