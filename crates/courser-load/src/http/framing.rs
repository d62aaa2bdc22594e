//! An answer's head: its status, and how its body ends (RFC 9112, section 6.3).

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

use super::request::Method;

/// More fields than any real answer has.
pub(crate) const MAX_FIELDS: usize = 96;

/// What counts in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of the head.
    pub(super) length: usize,
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// The server closes after this answer.
    pub(super) closes: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After this many bytes.
    Length(u64),
    /// After its last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// Reads the head at the front of `received`; `None` until it is whole. Says why it is none.
pub(super) fn read_head(received: &[u8], method: Method) -> Result<Option<Head>, &'static str> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = Response::new(&mut []);
    let parsed =
        ParserConfig::default().parse_response_with_uninit_headers(&mut response, received, &mut fields);
    let length = match parsed.map_err(explain)? {
        Status::Complete(length) => length,
        Status::Partial => return Ok(None),
    };
    let status = response.code.ok_or("no status")?;
    let fields = Fields::read(response.headers)?;
    let framing = fields.framing(status, method)?;
    let old = response.version == Some(0) && !fields.keep_alive;
    let closes = fields.close || old || framing == Framing::UntilClose;
    Ok(Some(Head { length, status, framing, closes }))
}

fn explain(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "bad field name",
        httparse::Error::HeaderValue => "bad field value",
        httparse::Error::NewLine => "bad line end",
        httparse::Error::Status => "bad status",
        httparse::Error::TooManyHeaders => "too many fields",
        httparse::Error::Token | httparse::Error::Version => "not HTTP/1",
    }
}

/// The fields that say how long a body is and what becomes of the connection.
#[derive(Default)]
pub(crate) struct Fields {
    length: Option<u64>,
    coded: bool,
    /// `chunked` is the last coding.
    chunked: bool,
    /// `Connection: close`.
    pub(crate) close: bool,
    /// `Connection: keep-alive`.
    pub(crate) keep_alive: bool,
    /// `Expect: 100-continue`.
    pub(crate) waits: bool,
}

impl Fields {
    /// Reads a head's fields. Says what is wrong with them.
    pub(crate) fn read(fields: &[Header<'_>]) -> Result<Self, &'static str> {
        let mut read = Self::default();
        for field in fields {
            // Few names have one of these lengths: most fields are passed over without comparing.
            match field.name.len() {
                6 if field.name.eq_ignore_ascii_case("expect") => read.expect(field.value),
                10 if field.name.eq_ignore_ascii_case("connection") => read.connection(field.value),
                14 if field.name.eq_ignore_ascii_case("content-length") => read.length(field.value)?,
                17 if field.name.eq_ignore_ascii_case("transfer-encoding") => read.coding(field.value),
                _ => {}
            }
        }
        Ok(read)
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn expect(&mut self, value: &[u8]) {
        self.waits = value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
    }

    fn length(&mut self, value: &[u8]) -> Result<(), &'static str> {
        // `parse` alone would take a plus sign.
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let text = str::from_utf8(value).ok().filter(|_| digits);
        let length = text.and_then(|text| text.parse().ok()).ok_or("bad Content-Length")?;
        match self.length.replace(length) {
            Some(other) if other != length => Err("two Content-Lengths"),
            _ => Ok(()),
        }
    }

    fn coding(&mut self, value: &[u8]) {
        self.coded = true;
        let last = value.rsplit(|&byte| byte == b',').next().unwrap_or_default();
        self.chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
    }

    /// Where a request's body ends. Says why that cannot be known.
    pub(crate) fn request_framing(&self) -> Result<Framing, &'static str> {
        match self.framing_as_told()? {
            // Unlike an answer, a request does not end with the connection.
            Framing::UntilClose if self.coded => Err("a coding that is not chunked"),
            Framing::UntilClose => Ok(Framing::Length(0)),
            framing => Ok(framing),
        }
    }

    fn framing(&self, status: u16, method: Method) -> Result<Framing, &'static str> {
        if method == Method::Head || matches!(status, 100..=199 | 204 | 304) {
            return Ok(Framing::Length(0));
        }
        self.framing_as_told()
    }

    fn framing_as_told(&self) -> Result<Framing, &'static str> {
        match (self.coded, self.length) {
            // Two readers could take it differently; section 6.3 allows to refuse it.
            (true, Some(_)) => Err("both Transfer-Encoding and Content-Length"),
            (true, None) if self.chunked => Ok(Framing::Chunked),
            (false, Some(length)) => Ok(Framing::Length(length)),
            (_, None) => Ok(Framing::UntilClose),
        }
    }
}
