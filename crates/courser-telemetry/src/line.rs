//! One line of named values, as logfmt text or as a JSON object.

use std::fmt::{self, Write as _};

/// Builds one line. Values are escaped so that nothing a peer controls can end a value or a line early.
pub struct Line<'a> {
    out: &'a mut String,
    json: bool,
    first: bool,
}

impl<'a> Line<'a> {
    /// Starts a line at the end of `out`.
    pub fn start(out: &'a mut String, json: bool) -> Self {
        if json {
            out.push('{');
        }
        Self { out, json, first: true }
    }

    /// A value that is text.
    pub fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        let quoted = self.json || value.is_empty() || value.bytes().any(|b| !is_bare(b));
        if quoted {
            write_quoted(value, self.out);
        } else {
            self.out.push_str(value);
        }
    }

    /// A value that is text when it is there; `-` in text, `null` in JSON, when it is not.
    pub fn maybe(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => {
                self.name(name);
                self.out.push_str(if self.json { "null" } else { "-" });
            }
        }
    }

    /// A value that prints as plain ASCII without spaces, such as an address.
    pub fn plain(&mut self, name: &str, value: impl fmt::Display) {
        self.name(name);
        let quote = if self.json { "\"" } else { "" };
        let _ = write!(self.out, "{quote}{value}{quote}");
    }

    /// A number.
    pub fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        let _ = write!(self.out, "{value}");
    }

    /// Ends the line.
    pub fn end(self) {
        self.out.push_str(if self.json { "}\n" } else { "\n" });
    }

    fn name(&mut self, name: &str) {
        if !self.first {
            self.out.push(if self.json { ',' } else { ' ' });
        }
        self.first = false;
        let _ = if self.json { write!(self.out, "\"{name}\":") } else { write!(self.out, "{name}=") };
    }
}

fn is_bare(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'"' && byte != b'\\' && byte != b'='
}

/// JSON string syntax (RFC 8259, section 7); everything outside printable ASCII is escaped, in text lines as well.
fn write_quoted(value: &str, out: &mut String) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(c),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(json: bool) -> String {
        let mut out = String::new();
        let mut line = Line::start(&mut out, json);
        line.text("sni", "a\r\nb=\"c\"\u{1F40E}");
        line.text("alpn", "h2");
        line.maybe("host", None);
        line.number("bytes", 7);
        line.end();
        out
    }

    #[test]
    fn text_cannot_be_forged() {
        assert_eq!(line(false), "sni=\"a\\u000d\\u000ab=\\\"c\\\"\\ud83d\\udc0e\" alpn=h2 host=- bytes=7\n");
    }

    #[test]
    fn json_is_one_object_per_line() {
        assert_eq!(
            line(true),
            "{\"sni\":\"a\\u000d\\u000ab=\\\"c\\\"\\ud83d\\udc0e\",\"alpn\":\"h2\",\"host\":null,\"bytes\":7}\n"
        );
    }
}
