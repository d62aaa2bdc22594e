//! HTTPS to the CA: one connection for each request, over the TLS that backends get.
//!
//! The library's own client would bring a second stack of TLS settings and verification. A connection for each request costs
//! a handshake, of which an order has a dozen, every other month.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use courser_tls::{
    Authorities, BackendConnection, BackendName, BackendTlsConfig, BackendTlsSpec, State, Verify,
};
use http::header::{HOST, HeaderValue, LINK, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For all of one request and its answer.
const REQUEST: Duration = Duration::from_secs(30);

/// For a connection to one of the CA's addresses.
const CONNECT: Duration = Duration::from_secs(5);

/// Most bytes of an answer: a chain has some ten thousand.
const MOST: usize = 1 << 20;

/// Plaintext on its way between TLS and HTTP.
const PIECE: usize = 16 * 1024;

const AGENT: &str = concat!("courser/", env!("CARGO_PKG_VERSION"));

/// The way to a CA.
#[derive(Clone)]
pub(crate) struct Https(Arc<Inner>);

struct Inner {
    tls: BackendTlsConfig,
    /// What the last answer that was an error said of the next try, Unix seconds.
    retry_after: Mutex<Option<i64>>,
    /// The last answer that was none.
    last: Mutex<Answer>,
}

/// What the library has read, for what it does not show.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    /// URL of what comes next of a list (RFC 8288).
    pub(crate) next: Option<String>,
}

impl Https {
    /// `authority`: what issued the directory's own certificate; `None`: what the system trusts.
    pub(crate) fn new(authority: Option<&Authorities>) -> Result<Self, String> {
        let authority = match authority {
            Some(authority) => authority.clone(),
            None => Authorities::system()
                .map_err(|why| format!("the system's authorities cannot be used: {why}"))?,
        };
        let spec = BackendTlsSpec {
            verify: Verify::Authorities(vec![authority]),
            name: BackendName::Own,
            identity: None,
            revocation: None,
        };
        let tls = BackendTlsConfig::new(spec).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(Inner { tls, retry_after: Mutex::default(), last: Mutex::default() })))
    }

    /// What the last answer that was an error said of the next try, Unix seconds.
    pub(crate) fn retry_after(&self) -> Option<i64> {
        *self.0.retry_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last answer that was no error.
    pub(crate) fn last(&self) -> Answer {
        self.0.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The body of what is at `url`.
    pub(crate) async fn get(&self, url: &str) -> Result<Bytes, String> {
        let request = Request::get(url).body(BodyWrapper::default()).map_err(|error| error.to_string())?;
        let response = self.send(request).await?;
        match response.status() {
            StatusCode::OK => Ok(response.into_body()),
            status => Err(format!("{url} answers {status}")),
        }
    }

    /// What a request is answered, also with an error.
    pub(crate) async fn send(&self, request: Request<BodyWrapper<Bytes>>) -> Result<Response<Bytes>, String> {
        let authority = request.uri().authority().map_or("", |authority| authority.as_str()).to_owned();
        let exchanged = timeout(REQUEST, self.exchange(request)).await;
        let response = exchanged.unwrap_or_else(|_| Err("no answer within 30 s".to_owned()));
        let response = response.map_err(|why| format!("{authority}: {why}"))?;
        let is_error = response.status().is_client_error() || response.status().is_server_error();
        *self.0.retry_after.lock().unwrap_or_else(PoisonError::into_inner) =
            retry_after(response.headers()).filter(|_| is_error);
        if !is_error {
            let answer = Answer { body: response.body().clone(), next: next(response.headers()) };
            *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        }
        Ok(response)
    }

    async fn exchange(&self, mut request: Request<BodyWrapper<Bytes>>) -> Result<Response<Bytes>, String> {
        let uri = request.uri().clone();
        let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err("it is no https URL".to_owned());
        };
        let host = authority.host().trim_matches(['[', ']']);
        let stream = connect(host, authority.port_u16().unwrap_or(443)).await?;
        let connection =
            self.0.tls.of_server(Some(host)).connect(None, None).map_err(|failure| failure.to_string())?;
        let secured = Secured::handshake(stream, connection).await?;
        let name = HeaderValue::from_str(authority.as_str()).map_err(|error| error.to_string())?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, name);
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let (near, far) = tokio::io::duplex(PIECE);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(near)).await.map_err(|error| error.to_string())?;
        let failure = Mutex::new(None);
        let answer = async {
            let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MOST).collect().await.map_err(|error| error.to_string())?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let drive = async {
            let carried = async {
                // Dropped with an error, it ends the exchange, which then says less than this.
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = secured.carry(far).await.err();
            };
            let _ = tokio::join!(connection, carried);
            std::future::pending().await
        };
        let answer: Result<_, String> = tokio::select! { answer = answer => answer, never = drive => never };
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        answer.map_err(|why| failure.unwrap_or(why))
    }
}

impl HttpClient for Https {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let https = self.clone();
        Box::pin(async move {
            let response = https.send(request).await.map_err(|why| Error::Other(why.into()))?;
            Ok(response.map(Full::new).into())
        })
    }
}

/// Tries the addresses one after the other.
async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let found = tokio::net::lookup_host((host, port))
        .await
        .map_err(|error| format!("cannot be looked up: {error}"))?;
    let mut why = "it has no address".to_owned();
    for address in found {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = format!("cannot connect to {address}: {error}"),
            Err(_) => why = format!("cannot connect to {address}: no answer"),
        }
    }
    Err(why)
}

/// A TLS connection whose handshake is done.
struct Secured {
    stream: TcpStream,
    connection: BackendConnection,
    /// Records that are not whole yet.
    received: Vec<u8>,
    /// What came with the handshake.
    early: Vec<u8>,
    /// The end of the handshake in TLS 1.3, which leaves with the request, in one segment.
    unsent: Vec<u8>,
}

impl Secured {
    async fn handshake(mut stream: TcpStream, mut connection: BackendConnection) -> Result<Self, String> {
        let (mut received, mut early) = (Vec::new(), Vec::new());
        loop {
            let mut unsent = Vec::new();
            let processed = connection.process(&mut received, &mut early, &mut unsent);
            if let Ok(progress) = &processed {
                received.drain(..progress.consumed);
                if connection.finish_handshake().is_some() {
                    return Ok(Self { stream, connection, received, early, unsent });
                }
            }
            // The alert too, where the handshake has failed.
            let sent = stream.write_all(&unsent).await;
            processed.map_err(|failure| failure.to_string())?;
            sent.map_err(|error| error.to_string())?;
            if stream.read_buf(&mut received).await.map_err(|error| error.to_string())? == 0 {
                return Err("closed in the handshake".to_owned());
            }
        }
    }

    /// Carries bytes both ways until one side ends.
    async fn carry(self, mut plain: DuplexStream) -> Result<(), String> {
        let Self { mut stream, mut connection, mut received, early, mut unsent } = self;
        let text = |error: io::Error| error.to_string();
        plain.write_all(&early).await.map_err(text)?;
        loop {
            let (mut request, mut answer, mut is_over) = (Vec::with_capacity(PIECE), Vec::new(), false);
            tokio::select! {
                read = stream.read_buf(&mut received) => {
                    is_over = read.map_err(text)? == 0;
                    let progress = connection.process(&mut received, &mut answer, &mut unsent);
                    let progress = progress.map_err(|failure| failure.to_string())?;
                    received.drain(..progress.consumed);
                    is_over |= progress.state == State::PeerClosed;
                }
                read = plain.read_buf(&mut request) => {
                    if read.map_err(text)? == 0 {
                        return Ok(());
                    }
                    let sent = connection.send(&request, &mut received, &mut unsent);
                    sent.map_err(|failure| failure.to_string())?;
                }
            }
            stream.write_all(&unsent).await.map_err(text)?;
            unsent.clear();
            plain.write_all(&answer).await.map_err(text)?;
            if is_over {
                return plain.shutdown().await.map_err(text);
            }
        }
    }
}

/// The link to the next page (RFC 8288, section 3).
fn next(headers: &HeaderMap) -> Option<String> {
    let links = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    links.flat_map(|value| value.split(',')).find_map(|link| {
        let (url, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |parameter: &str| matches!(parameter.trim(), "rel=\"next\"" | "rel=next");
        parameters.split(';').any(is_next).then(|| url.to_owned())
    })
}

/// Seconds from now or a date (RFC 9110, section 10.2.3), as Unix seconds.
fn retry_after(headers: &HeaderMap) -> Option<i64> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let until = match value.parse::<u64>() {
        Ok(seconds) => now.saturating_add(seconds),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs(),
    };
    i64::try_from(until).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_other_links() {
        let found = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(LINK, HeaderValue::from_static(value));
            }
            next(&headers)
        };
        let index = "<https://ca.example/dir>;rel=\"index\"";
        assert_eq!(found(&[index, "<https://ca.example/2>;rel=\"next\""]).unwrap(), "https://ca.example/2");
        let both = "<https://ca.example/dir>; rel=\"index\", <https://ca.example/2>; title=x; rel=next";
        assert_eq!(found(&[both]).unwrap(), "https://ca.example/2");
        assert_eq!(found(&[index]), None);
        assert_eq!(found(&["rel=\"next\""]), None);
    }
}
