//! What is answered to a request for a path.

use std::net::IpAddr;
use std::sync::Arc;

use courser_telemetry::exposition::TextFormat;
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};

use super::access::Access;
use super::events::{EventStream, Events, Exchange, MOST_STREAMS};
use crate::readiness::Readiness;
use crate::scrape::scrape;
use crate::status_source::StatusSource;

pub(crate) type PageAnswer = Response<Either<Full<Bytes>, EventStream>>;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";
const EVENTS: &str = "text/event-stream";

/// The live page. It has no secret: what it shows it asks for.
const PAGE: &str = include_str!("page.html");

/// It runs its own script alone, named by hash, and talks to this server alone.
const PAGE_POLICY: &str = "default-src 'none'; connect-src 'self'; img-src data:; \
    script-src 'sha256-SYWwW7++SSvqLb4SFQb5bv+SIRpCSKPPCYfnv6tHIJY='; style-src 'sha256-8YtAXcPiUHk86OUbFo5EMUegNfV7Mc6Efed3sN4wij4='; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What there is to see, and for whom.
pub(crate) struct AdminPages {
    pub(crate) access: Access,
    source: Arc<StatusSource>,
    readiness: Arc<Readiness>,
    pub(super) events: Events,
}

impl AdminPages {
    pub(crate) fn new(access: Access, source: Arc<StatusSource>, readiness: Arc<Readiness>) -> Self {
        let events = Events::new(Arc::clone(&source));
        Self { access, source, readiness, events }
    }

    /// Of a client that has connected to `local`, or to a unix socket.
    pub(super) fn answer(
        &self,
        request: &Request<Incoming>,
        local: Option<IpAddr>,
        exchange: &Arc<Exchange>,
    ) -> PageAnswer {
        let header = |name| request.headers().get(name);
        let host = header(HOST).and_then(|host| host.to_str().ok());
        let needs_no_token = matches!(request.uri().path(), "/healthz" | "/readyz" | "/");
        if !self.access.is_for_us(host, local) {
            return text(StatusCode::MISDIRECTED_REQUEST, UNKNOWN_HOST);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused =
                text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD: nothing is changed here\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        if !needs_no_token && !self.access.is_authorized(header(AUTHORIZATION).map(HeaderValue::as_bytes)) {
            let mut refused =
                text(StatusCode::UNAUTHORIZED, "`Authorization: Bearer TOKEN` is missing or wrong\n");
            refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return refused;
        }
        let accept = header(ACCEPT).and_then(|accept| accept.to_str().ok());
        match request.uri().path() {
            // Nobody would read them.
            "/events" if *request.method() == Method::HEAD => with_type(StatusCode::OK, EVENTS, Bytes::new()),
            "/events" => self.stream(exchange),
            path => self.of_path(path, accept.unwrap_or_default()),
        }
    }

    fn of_path(&self, path: &str, accept: &str) -> PageAnswer {
        match path {
            "/" => page(),
            "/healthz" => probe(&self.readiness.health()),
            "/readyz" => probe(&self.readiness.readiness()),
            "/metrics" => self.metrics(accept),
            "/status.json" => with_type(StatusCode::OK, JSON, format!("{}\n", self.source.latest())),
            _ => text(
                StatusCode::NOT_FOUND,
                "there are /, /healthz, /readyz, /metrics, /status.json and /events\n",
            ),
        }
    }

    fn stream(&self, exchange: &Arc<Exchange>) -> PageAnswer {
        let Some(stream) = self.events.open(exchange) else {
            let why = format!("{MOST_STREAMS} streams are open already\n");
            return with_type(StatusCode::SERVICE_UNAVAILABLE, TEXT, why);
        };
        let (head, _) = with_type(StatusCode::OK, EVENTS, Bytes::new()).into_parts();
        Response::from_parts(head, Either::Right(stream))
    }

    /// How many series of metrics there are.
    pub(crate) fn series(&self) -> usize {
        scrape(&self.source, TextFormat::Plain).1
    }

    /// Of now, not of the last status: what was counted before is in it.
    fn metrics(&self, accept: &str) -> PageAnswer {
        let format = TextFormat::for_accept(accept);
        with_type(StatusCode::OK, format.content_type(), scrape(&self.source, format).0)
    }
}

const UNKNOWN_HOST: &str = "this server is not called by that `Host`: add the name to `admin.server_names` \
     (`--admin-server-name`)\n";

fn page() -> PageAnswer {
    let mut page = with_type(StatusCode::OK, HTML, PAGE);
    let headers = page.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    page
}

fn probe(found: &Result<(), String>) -> PageAnswer {
    match found {
        Ok(()) => text(StatusCode::OK, "ok\n"),
        Err(why) => with_type(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
    }
}

fn text(status: StatusCode, text: &'static str) -> PageAnswer {
    with_type(status, TEXT, text)
}

fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> PageAnswer {
    let mut answer = Response::new(Either::Left(Full::new(body.into())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
