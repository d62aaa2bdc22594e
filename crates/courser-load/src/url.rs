//! The URL of a target: `https://host:port/path`, or an endpoint, `host:port`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use ::http::Uri;

/// The protocol above TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP over TLS.
    Https,
    /// HTTP over TCP.
    Http,
    /// Bytes over TLS.
    Tls,
    /// Bytes over TCP.
    Tcp,
}

/// Scheme, address and path of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Of a bare `host:port`: [`Scheme::Tls`].
    pub scheme: Scheme,
    /// Name or address; an IPv6 address without brackets.
    pub host: String,
    /// 80 or 443 where none is written.
    pub port: u16,
    /// Path and query; `/` when there is none.
    pub path: String,
    text: String,
}

impl Url {
    /// Whether TLS is spoken.
    pub fn is_secure(&self) -> bool {
        matches!(self.scheme, Scheme::Https | Scheme::Tls)
    }

    /// Host and port as the `Host` field of a request has them (RFC 9110, section 7.2).
    pub fn host_field(&self) -> String {
        let usual = if self.scheme == Scheme::Http { 80 } else { 443 };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// Looks the host up: all addresses of the family of the first one.
    ///
    /// # Errors
    /// When it has none.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<_> = found.map_err(|why| format!("{}: {why}", self.host))?.collect();
        // One address family: the others lead to the same machine, with other costs.
        let family = found.first().ok_or_else(|| format!("{}: no address", self.host))?.is_ipv4();
        Ok(found.into_iter().filter(|address| address.is_ipv4() == family).collect())
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = |why: String| format!("{why}; write https://host:port/path or host:port");
        let whole = if text.contains("://") { text.to_owned() } else { format!("tls://{text}") };
        let uri: Uri = whole.parse().map_err(|why| bad(format!("{why}")))?;
        let scheme = match uri.scheme_str() {
            Some("https") => Scheme::Https,
            Some("http") => Scheme::Http,
            Some("tls") => Scheme::Tls,
            Some("tcp") => Scheme::Tcp,
            other => return Err(bad(format!("{:?} is no scheme of ours", other.unwrap_or_default()))),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| bad("no host".into()))?;
        if uri.port_u16().is_none() && has_port(&uri) {
            return Err(bad("invalid port".into()));
        }
        let usual = if scheme == Scheme::Http { 80 } else { 443 };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            scheme,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(usual),
            path: if path.is_empty() { "/".into() } else { path.to_owned() },
            text: text.to_owned(),
        })
    }
}

/// Whether something is written after the host; the parser takes what is no port, 99999, for none.
fn has_port(uri: &Uri) -> bool {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    authority.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.contains(']'))
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_forms_are_read() {
        let url: Url = "https://[::1]:8443/?s=20k".parse().expect("a URL");
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("::1", 8443, "/?s=20k"));
        assert_eq!(url.host_field(), "[::1]:8443");
        let url: Url = "example.org:443".parse().expect("an endpoint");
        assert_eq!((url.scheme, url.host_field().as_str()), (Scheme::Tls, "example.org"));
        assert_eq!("http://h".parse::<Url>().expect("a URL").port, 80);
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in ["ftp://host/", "https://", "", "https://host:99999/"] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }
}
