//! Text for people, out of bytes that a peer chose. It may not be used to compare, store or forward anything:
//! the result is for logs and error messages only.

use std::fmt::Display;

/// `bytes` with everything escaped that could forge, split or colour a log line: what lies outside ASCII's
/// space to `~` becomes `\xNN` (or `\t`, `\r`, `\n`), and quotes and the backslash get a backslash in front.
/// Nothing is allocated; the length grows by four times at most.
pub fn printable(bytes: &[u8]) -> impl Display + '_ {
    bytes.escape_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_made_of_controls_cannot_forge_a_log_line() {
        let hostile = b"a.example\" end=ok\r\n\x1b[31m\\\xff\0";
        assert_eq!(printable(hostile).to_string(), r#"a.example\" end=ok\r\n\x1b[31m\\\xff\x00"#);
    }

    #[test]
    fn an_ordinary_name_stays_as_it_is() {
        assert_eq!(printable(b"www.example.org").to_string(), "www.example.org");
    }
}
