//! What may stand as a server name or as the host of a backend.

use std::net::IpAddr;

use crate::problem::{Problem, Problems};
use crate::read;
use crate::value::Value;

/// Length of a name in its dotted form: 255 octets on the wire less the two that frame it (RFC 1035, 2.3.4).
const LONGEST_NAME: usize = 253;
/// RFC 1035, section 2.3.4.
const LONGEST_LABEL: usize = 63;

/// A server name in lower case: a DNS name, or one with `*` as its whole first label (RFC 9525, section 6.3).
pub(crate) fn server_name(value: &Value) -> Result<String, Problems> {
    let text = read::text(value, "a server name")?;
    let rest = text.strip_prefix("*.").unwrap_or(text);
    match wrong(rest) {
        None => Ok(text.to_ascii_lowercase()),
        Some((why, help)) => {
            let message = format!("`{text}` is not a server name: {why}");
            Err(Problem::at(&value.origin, message, help.map(str::to_owned)).into())
        }
    }
}

/// Why a text is no DNS name, and what to do about it.
pub(crate) fn wrong(text: &str) -> Option<(String, Option<&'static str>)> {
    if text.is_empty() {
        return Some(("it is empty".to_owned(), None));
    }
    if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return Some((
            "it is an IP address".to_owned(),
            Some("clients send no server name for an IP address; the listener's own settings serve them"),
        ));
    }
    if !text.is_ascii() {
        return Some((
            "it has letters outside ASCII".to_owned(),
            Some("write its A-label, `xn--…` (RFC 5890)"),
        ));
    }
    if text.ends_with('.') {
        return Some((
            "it ends in a dot".to_owned(),
            Some("leave the final dot out, as clients do (RFC 6066, section 3)"),
        ));
    }
    if text.len() > LONGEST_NAME {
        return Some((format!("it is longer than {LONGEST_NAME} characters"), None));
    }
    if text.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
        && !text.ends_with("..")
    {
        return Some(("its last label is a number".to_owned(), None));
    }
    text.split('.').find_map(wrong_label)
}

/// Underscores are let through: they are not host names (RFC 1123), but names in use have them.
fn wrong_label(label: &str) -> Option<(String, Option<&'static str>)> {
    if label.is_empty() {
        return Some(("it has an empty label".to_owned(), None));
    }
    if label.len() > LONGEST_LABEL {
        return Some((format!("a label is longer than {LONGEST_LABEL} characters"), None));
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Some((format!("the label `{label}` starts or ends with a hyphen"), None));
    }
    let allowed = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let letter = label.chars().find(|letter| !allowed(letter))?;
    let help = (letter == '*').then_some("a wildcard stands for the whole first label: `*.a.example`");
    Some((format!("`{letter}` cannot stand in it"), help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_use_are_let_through() {
        for name in
            ["a", "a.example", "xn--bcher-kva.example", "_dmarc.a.example", "1.a2.example", &"a".repeat(63)]
        {
            assert_eq!(wrong(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = ["a"; 127].join(".") + "aa";
        for name in [
            "",
            ".",
            "a..b",
            "-a.b",
            "a-.b",
            "a b",
            "192.0.2.1",
            "[::1]",
            "a.1",
            "a.",
            "*",
            "a.*.b",
            "ä.b",
            &"a".repeat(64),
            &long,
        ] {
            assert!(wrong(name).is_some(), "{name}");
        }
    }
}
