//! Whether a certificate is valid now.

use std::time::{SystemTime, UNIX_EPOCH};

use courser_tls::identity::Validity;

/// Seconds in a day, for people.
const DAY: i64 = 86_400;

/// In words; `None` for a certificate that is valid.
pub(crate) fn out_of_validity(validity: Validity) -> Option<String> {
    match validity {
        Validity::Valid => None,
        Validity::NotYet { seconds } => {
            Some(format!("is not valid yet, for another {} days", seconds / DAY + 1))
        }
        Validity::Expired { seconds } => Some(format!("has expired, {} days ago", seconds / DAY)),
    }
}

/// Unix seconds.
pub(crate) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(now).unwrap_or(i64::MAX)
}
