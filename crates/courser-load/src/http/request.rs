//! A request, checked and rendered once, sent many times.

use std::fmt;
use std::io::Write as _;

use super::body::body;

/// What is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// An object.
    #[default]
    Get,
    /// An object's head alone: its answer has no body, whatever it says of one.
    Head,
    /// An answer to a body.
    Post,
}

impl Method {
    /// As it stands in the request.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
        }
    }
}

/// What the client wants of the connection after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// More requests follow.
    KeepAlive,
    /// It was the last one: `Connection: close`.
    Close,
}

/// A request before it is rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub method: Method,
    /// Path and query: `/?s=20k`.
    pub target: String,
    /// Value of the `Host` field: `example.org` or `127.0.0.1:8000`.
    pub host: String,
    /// Further fields in this order, beyond `Host`, `Connection` and `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// Bytes of the body, which is [`body`]'s; a GET has none when this is 0.
    pub body: usize,
}

impl Request {
    /// Renders it for both kinds of connection.
    ///
    /// # Errors
    /// [`BadRequest`], when something in it would not arrive as what it is meant to be.
    pub fn render(&self) -> Result<Rendered, BadRequest> {
        self.check()?;
        let keep_alive = self.bytes(Then::KeepAlive).into_boxed_slice();
        let close = self.bytes(Then::Close).into_boxed_slice();
        Ok(Rendered { method: self.method, keep_alive, close })
    }

    fn check(&self) -> Result<(), BadRequest> {
        if !self.target.starts_with('/') || !self.target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadRequest::Target(self.target.clone()));
        }
        let host = ("Host".to_owned(), self.host.clone());
        for (name, value) in self.headers.iter().chain([&host]) {
            check_field(name, value)?;
        }
        let ours = |name: &str| OURS.iter().any(|ours| ours.eq_ignore_ascii_case(name));
        match self.headers.iter().find(|(name, _)| ours(name)) {
            Some((name, _)) => Err(BadRequest::Ours(name.clone())),
            None => Ok(()),
        }
    }

    fn bytes(&self, then: Then) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256 + self.body);
        let connection = if then == Then::Close { "Connection: close\r\n" } else { "" };
        let (method, target, host) = (self.method.name(), &self.target, &self.host);
        let mut add = |text: fmt::Arguments<'_>| bytes.write_fmt(text).expect("memory takes every byte");
        add(format_args!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{connection}"));
        for (name, value) in &self.headers {
            add(format_args!("{name}: {value}\r\n"));
        }
        if self.body > 0 || self.method == Method::Post {
            add(format_args!("Content-Length: {}\r\n", self.body));
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body(self.body));
        bytes
    }
}

fn check_field(name: &str, value: &str) -> Result<(), BadRequest> {
    // RFC 9110, sections 5.1 and 5.6.2: a name is a token.
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let visible = |char: char| char == '\t' || !char.is_control();
    if name.is_empty() || !name.bytes().all(token) || !value.chars().all(visible) {
        return Err(BadRequest::Field(name.to_owned()));
    }
    Ok(())
}

/// Fields that decide how long a message is and what becomes of the connection.
const OURS: [&str; 4] = ["Host", "Connection", "Content-Length", "Transfer-Encoding"];

/// A request's bytes, body included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    method: Method,
    keep_alive: Box<[u8]>,
    close: Box<[u8]>,
}

impl Rendered {
    /// The bytes to send.
    #[must_use]
    pub fn bytes(&self, then: Then) -> &[u8] {
        match then {
            Then::KeepAlive => &self.keep_alive,
            Then::Close => &self.close,
        }
    }

    /// For the reader of the answer.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }
}

/// Why a request cannot be sent as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRequest {
    /// The target does not begin with a slash, or has a blank or something else than ASCII in it.
    Target(String),
    /// The field of this name has a name or a value that would break the head.
    Field(String),
    /// The field of this name is written by the client itself.
    Ours(String),
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(target) => {
                write!(
                    f,
                    "{target:?} is no request target: begin with / and percent-encode what is not ASCII"
                )
            }
            Self::Field(name) => {
                write!(f, "the header field {name:?} has a name or a value that HTTP cannot carry")
            }
            Self::Ours(name) => {
                write!(f, "the header field {name:?} is set by the client itself: leave it out")
            }
        }
    }
}

impl std::error::Error for BadRequest {}
