//! The text of key files and state files: lines of `name = value`. May not open a file, and never repeats a value in
//! an error: it may be a secret.

use std::fmt;
use std::ops::RangeInclusive;

use zeroize::Zeroizing;

use crate::{FleetId, SecretBytes};

/// The lines of a text, each to be taken once. Lines that are empty or begin with `#` are skipped.
pub(crate) struct Fields<'a>(Vec<Field<'a>>);

/// One line, numbered from 1.
pub(crate) struct Field<'a> {
    line: usize,
    name: &'a str,
    value: &'a str,
}

impl<'a> Fields<'a> {
    /// Splits a text whose line `format` has to say `format`.
    pub(crate) fn parse(text: &'a str, format: &'static str) -> Result<Self, BadText> {
        let mut fields = Self(text.lines().enumerate().filter_map(field).collect::<Result<_, _>>()?);
        let found = fields.one("format")?;
        if found.value != format {
            return Err(BadText::OtherFormat { line: found.line, format });
        }
        Ok(fields)
    }

    /// The field of this name, which must be there.
    pub(crate) fn one(&mut self, name: &'static str) -> Result<Field<'a>, BadText> {
        self.optional(name)?.ok_or(BadText::Missing { name })
    }

    /// The field of this name, if it is there.
    pub(crate) fn optional(&mut self, name: &'static str) -> Result<Option<Field<'a>>, BadText> {
        let mut all = self.all(name);
        let field = all.next();
        match all.next() {
            Some(second) => Err(BadText::Twice { line: second.line, name }),
            None => Ok(field),
        }
    }

    /// Every field of this name.
    pub(crate) fn all(&mut self, name: &'static str) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let (taken, rest) = std::mem::take(&mut self.0).into_iter().partition(|field| field.name == name);
        self.0 = rest;
        let taken: Vec<_> = taken;
        taken.into_iter()
    }

    /// Ends the reading: nothing may be left.
    pub(crate) fn finish(self) -> Result<(), BadText> {
        self.0.first().map_or(Ok(()), |field| Err(BadText::Unknown { line: field.line }))
    }
}

fn field((index, line): (usize, &str)) -> Option<Result<Field<'_>, BadText>> {
    let content = line.trim();
    if content.is_empty() || content.starts_with('#') {
        return None;
    }
    let line = index + 1;
    let parts = content.split_once('=').ok_or(BadText::Unknown { line });
    Some(parts.map(|(name, value)| Field { line, name: name.trim(), value: value.trim() }))
}

impl<'a> Field<'a> {
    /// The value's parts, if there are `N`, with blanks between them.
    pub(crate) fn parts<const N: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<[Self; N], BadText> {
        let parts = self.value.split_whitespace().map(|value| Field { line: self.line, name, value });
        let parts: Vec<Self> = parts.take(N + 1).collect();
        parts.try_into().map_err(|_| self.bad(name, expected))
    }

    /// A whole number in decimal digits.
    pub(crate) fn number(
        &self,
        name: &'static str,
        range: RangeInclusive<u64>,
        expected: &'static str,
    ) -> Result<u64, BadText> {
        let number = self.value.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| self.bad(name, expected))
    }

    pub(crate) fn fleet_id(&self, name: &'static str) -> Result<FleetId, BadText> {
        let mut bytes = [0; 8];
        let read = read_hex(self.value, &mut bytes);
        read.map(|()| FleetId::from_bytes(bytes)).ok_or_else(|| self.bad(name, "16 hexadecimal digits"))
    }

    /// `N` secret bytes in hexadecimal digits.
    pub(crate) fn secret<const N: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<SecretBytes<N>, BadText> {
        SecretBytes::filled(|bytes| read_hex(self.value, bytes).ok_or_else(|| self.bad(name, expected)))
    }

    pub(crate) fn bad(&self, name: &'static str, expected: &'static str) -> BadText {
        BadText::Value { line: self.line, name, expected }
    }
}

fn read_hex(digits: &str, bytes: &mut [u8]) -> Option<()> {
    if digits.len() != bytes.len() * 2 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = hex_value(pair[0])? << 4 | hex_value(pair[1])?;
    }
    Some(())
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// A text in the making, wiped when it is dropped. All room is there from the start: a string that grows leaves
/// what it held behind in freed memory.
pub(crate) struct Writer(Zeroizing<String>);

impl Writer {
    /// A text with a comment, and the line that names its format. `room` is that of all the rest, in bytes.
    pub(crate) fn new(comment: &str, format: &str, room: usize) -> Self {
        let text = String::with_capacity(comment.len() + format.len() + 16 + room);
        let mut writer = Self(Zeroizing::new(text));
        writer.push(comment);
        writer.field("format", format);
        writer
    }

    pub(crate) fn field(&mut self, name: &str, value: &str) {
        for part in [name, " = ", value, "\n"] {
            self.push(part);
        }
    }

    pub(crate) fn number(&mut self, name: &str, number: u64) {
        self.field(name, &number.to_string());
    }

    pub(crate) fn secret(&mut self, name: &str, secret: &[u8]) {
        self.field(name, &hex(secret));
    }

    /// A number, and secrets that go with it.
    pub(crate) fn secrets<const N: usize>(&mut self, name: &str, number: u64, secrets: [&[u8; N]; 2]) {
        for part in [name, " = ", &number.to_string(), " ", &hex(secrets[0]), " ", &hex(secrets[1]), "\n"] {
            self.push(part);
        }
    }

    pub(crate) fn finish(self) -> Zeroizing<String> {
        self.0
    }

    fn push(&mut self, text: &str) {
        debug_assert!(self.0.len() + text.len() <= self.0.capacity(), "a secret text must not move");
        self.0.push_str(text);
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> Zeroizing<String> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = Zeroizing::new(String::with_capacity(bytes.len() * 2));
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// What is wrong with a text, and in which line; the advice is added by who knows what the text was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadText {
    OtherFormat { line: usize, format: &'static str },
    Unknown { line: usize },
    Twice { line: usize, name: &'static str },
    Missing { name: &'static str },
    Value { line: usize, name: &'static str, expected: &'static str },
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherFormat { line, format } => write!(f, "line {line}: the format is not `{format}`"),
            Self::Unknown { line } => write!(f, "line {line} is not one that belongs here"),
            Self::Twice { line, name } => write!(f, "line {line}: `{name}` is there twice"),
            Self::Missing { name } => write!(f, "the line `{name} = …` is missing"),
            Self::Value { line, name, expected } => write!(f, "line {line}: `{name}` must be {expected}"),
        }
    }
}
