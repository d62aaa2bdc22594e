//! A request, checked and rendered once, sent many times.

use std::fmt;
use std::io::Write as _;

use bytes::Bytes;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderName, HeaderValue, Version};

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
        Ok(Rendered { method: self.method, keep_alive, close, http2: None })
    }

    /// Renders it for connections of which HTTP/2 may be spoken, too.
    ///
    /// # Errors
    /// As [`Self::render`], and when something in it is HTTP/1.1's alone.
    pub fn render_with_http2(&self) -> Result<Rendered, BadRequest> {
        Ok(Rendered { http2: Some(Http2Request::new(self)?), ..self.render()? })
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
#[derive(Clone, Debug)]
pub struct Rendered {
    method: Method,
    keep_alive: Box<[u8]>,
    close: Box<[u8]>,
    http2: Option<Http2Request>,
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

    /// The same for a connection that speaks HTTP/2; none where that is not offered.
    pub(crate) fn http2(&self) -> Option<&Http2Request> {
        self.http2.as_ref()
    }

    /// For the reader of the answer.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }
}

/// A request as HTTP/2 has it (RFC 9113, section 8.3.1): fields and a body, which the library makes frames of.
#[derive(Clone, Debug)]
pub struct Http2Request {
    method: Method,
    head: http::Request<()>,
    body: Bytes,
}

impl Http2Request {
    /// A request over TLS of what the other one asks for.
    ///
    /// # Errors
    /// [`BadRequest`], when something in it is HTTP/1.1's alone.
    pub(super) fn new(request: &Request) -> Result<Self, BadRequest> {
        let target = || BadRequest::Target(request.target.clone());
        let path: PathAndQuery = request.target.parse().map_err(|_| target())?;
        let uri = Uri::builder().scheme("https").authority(request.host.as_str()).path_and_query(path);
        let mut head = http::Request::new(());
        *head.uri_mut() = uri.build().map_err(|_| target())?;
        *head.method_mut() = request.method.name().parse().expect("GET, HEAD and POST are methods");
        *head.version_mut() = Version::HTTP_2;
        for (name, value) in &request.headers {
            let field = || BadRequest::Field(name.clone());
            if CONNECTION_FIELDS.iter().any(|theirs| theirs.eq_ignore_ascii_case(name)) {
                return Err(BadRequest::OfConnection(name.clone()));
            }
            let parsed: HeaderName = name.parse().map_err(|_| field())?;
            head.headers_mut().append(parsed, HeaderValue::from_str(value).map_err(|_| field())?);
        }
        Ok(Self { method: request.method, head, body: body(request.body).into() })
    }

    /// Method, path, authority and fields.
    pub(crate) fn head(&self) -> http::Request<()> {
        self.head.clone()
    }

    /// For the reader of the answer.
    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// Bytes after the head; none of a GET.
    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }
}

/// Fields that HTTP/2 has no use for, beyond those that no user sets (RFC 9113, section 8.2.2).
const CONNECTION_FIELDS: [&str; 4] = ["Keep-Alive", "Proxy-Connection", "TE", "Upgrade"];

/// Why a request cannot be sent as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRequest {
    /// The target does not begin with a slash, or has a blank or something else than ASCII in it.
    Target(String),
    /// The field of this name has a name or a value that would break the head.
    Field(String),
    /// The field of this name is written by the client itself.
    Ours(String),
    /// The field of this name is of an HTTP/1.1 connection, and HTTP/2 is offered.
    OfConnection(String),
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
            Self::OfConnection(name) => {
                write!(f, "HTTP/2 forbids the header field {name:?}: leave it out, or h2 of --alpn")
            }
            Self::Ours(name) => {
                write!(f, "the header field {name:?} is set by the client itself: leave it out")
            }
        }
    }
}

impl std::error::Error for BadRequest {}
