//! What is answered to a request for a path.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use courser_telemetry::exposition::TextFormat;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};

use super::access::Access;
use crate::readiness::Readiness;
use crate::scrape::scrape;
use crate::status_source::StatusSource;

pub(crate) type PageAnswer = Response<Full<Bytes>>;

/// How old a status may be: whoever asks, it is taken once a second.
const STATUS_AGE: Duration = Duration::from_secs(1);

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// What there is to see, and for whom.
pub(crate) struct AdminPages {
    pub(crate) access: Access,
    source: Arc<StatusSource>,
    readiness: Arc<Readiness>,
    status: Mutex<Option<(Instant, Bytes)>>,
}

impl AdminPages {
    pub(crate) fn new(access: Access, source: Arc<StatusSource>, readiness: Arc<Readiness>) -> Self {
        Self { access, source, readiness, status: Mutex::default() }
    }

    /// Of a client that has connected to `local`, or to a unix socket.
    pub(super) fn answer(&self, request: &Request<Incoming>, local: Option<IpAddr>) -> PageAnswer {
        let header = |name| request.headers().get(name);
        let host = header(HOST).and_then(|host| host.to_str().ok());
        let is_probe = matches!(request.uri().path(), "/healthz" | "/readyz");
        if !self.access.is_for_us(host, local) {
            return text(StatusCode::MISDIRECTED_REQUEST, UNKNOWN_HOST);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused =
                text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD: nothing is changed here\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        if !is_probe && !self.access.is_authorized(header(AUTHORIZATION).map(HeaderValue::as_bytes)) {
            let mut refused =
                text(StatusCode::UNAUTHORIZED, "`Authorization: Bearer TOKEN` is missing or wrong\n");
            refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return refused;
        }
        let accept = header(ACCEPT).and_then(|accept| accept.to_str().ok());
        self.of_path(request.uri().path(), accept.unwrap_or_default())
    }

    fn of_path(&self, path: &str, accept: &str) -> PageAnswer {
        match path {
            "/healthz" => probe(&self.readiness.health()),
            "/readyz" => probe(&self.readiness.readiness()),
            "/metrics" => self.metrics(accept),
            "/status.json" => with_type(StatusCode::OK, JSON, self.status()),
            _ => text(StatusCode::NOT_FOUND, "there are /healthz, /readyz, /metrics and /status.json\n"),
        }
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

    fn status(&self) -> Bytes {
        let mut last = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((taken, status)) if taken.elapsed() < STATUS_AGE => status.clone(),
            _ => {
                let mut status = serde_json::to_vec(&self.source.status()).unwrap_or_default();
                status.push(b'\n');
                let status = Bytes::from(status);
                *last = Some((Instant::now(), status.clone()));
                status
            }
        }
    }
}

const UNKNOWN_HOST: &str = "this server is not called by that `Host`: add the name to `admin.server_names` \
     (`--admin-server-name`)\n";

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
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
