//! OpenSSL's errors as failures of ours.

use courser_tls::{Failure, FailureKind};
use openssl::error::ErrorStack;
use openssl::ssl::{Error, ErrorCode};
use rustls::AlertDescription;

/// What `error` means to a connection whose server has `promised` to resume, or has not.
pub(crate) fn of(error: &Error, promised: bool) -> Failure {
    if error.code() == ErrorCode::ZERO_RETURN {
        // In the middle of a handshake: once it is done, it is no error.
        return alert(0);
    }
    let reason = error.ssl_error().and_then(|stack| stack.errors().first()).map_or(0, reason_code);
    if let Some(code) = reason.checked_sub(ALERTS).and_then(|code| u8::try_from(code).ok()) {
        return alert(code);
    }
    let kind = match reason {
        CERTIFICATE_VERIFY_FAILED | BAD_SIGNATURE => FailureKind::Certificate,
        UNEXPECTED_MESSAGE if promised => FailureKind::FalseResumption,
        reason if INCOMPATIBLE.contains(&reason) => FailureKind::Incompatible,
        _ => FailureKind::Protocol,
    };
    Failure { kind, detail: error.to_string() }
}

/// A fault on this side of the connection.
pub(crate) fn internal(error: &ErrorStack) -> Failure {
    Failure::internal(&error.to_string())
}

/// Named as the other engines' library names it.
fn alert(code: u8) -> Failure {
    Failure { kind: FailureKind::AlertReceived, detail: format!("{:?}", AlertDescription::from(code)) }
}

fn reason_code(error: &openssl::error::Error) -> i32 {
    error.reason_code()
}

/// What OpenSSL adds to an alert's code to make a reason of it (`SSL_AD_REASON_OFFSET`).
const ALERTS: i32 = 1000;

/// Reasons by their numbers in `openssl/sslerr.h`, which are part of OpenSSL's stable interface.
const BAD_SIGNATURE: i32 = 123;
const CERTIFICATE_VERIFY_FAILED: i32 = 134;
const UNEXPECTED_MESSAGE: i32 = 244;

/// What the server chose or has is not what was offered or is not taken: protocol and version, cipher, type and curve
/// of the signature, sizes of keys and digests, renegotiation that is not secure.
const INCOMPATIBLE: [i32; 12] = [258, 266, 396, 261, 370, 378, 383, 394, 397, 398, 399, 338];
