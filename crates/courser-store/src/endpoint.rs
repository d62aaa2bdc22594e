//! A store and all that is needed to get in, checked before anything is served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io};

use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError, TlsCertificates, TlsMode,
};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use zeroize::Zeroizing;

use crate::StoreUrl;
use crate::dialer::Dialer;
use crate::link::{self, Link};
use crate::url::{UrlAuthority, UrlHost};

/// What stands in files beside the URL; the caller reads them.
#[derive(Default)]
pub struct Access {
    /// The password, as it is in its file: one line end at its end is no part of it.
    pub password: Option<Zeroizing<Vec<u8>>>,
    /// Certificates, as PEM, of the authorities that the store's certificate is verified with. None: the system's.
    pub roots: Option<Vec<u8>>,
    /// What we show to a store that wants a certificate of its clients (Redis does, unless configured with
    /// `tls-auth-clients no`).
    pub identity: Option<Identity>,
}

/// A client certificate and its key.
pub struct Identity {
    /// The chain as PEM, our certificate first.
    pub chain: Vec<u8>,
    /// The key as PEM.
    pub key: Zeroizing<Vec<u8>>,
}

/// A store that can be connected to: one for the process, which every worker's [`Store`](crate::Store) shares.
pub struct StoreEndpoint {
    url: StoreUrl,
    password: Option<Zeroizing<String>>,
    certificates: Option<TlsCertificates>,
    dialer: Dialer,
}

impl StoreEndpoint {
    /// Checks everything that can be known without connecting.
    ///
    /// # Errors
    /// [`BadStoreEndpoint`] names the part that is wrong, or the two that do not fit.
    pub fn new(url: StoreUrl, access: Access) -> Result<Arc<Self>, BadStoreEndpoint> {
        let password = password(&url, access.password)?;
        if url.user().is_some() && password.is_none() {
            return Err(BadStoreEndpoint::UserAlone);
        }
        let certificates = certificates(&url, access.roots, access.identity)?;
        let dialer =
            Dialer::start().map_err(|error| BadStoreEndpoint::NoThread { why: error.to_string() })?;
        let target = Self { url, password, certificates, dialer };
        // Parses the certificates, as each connection will.
        target.client().map_err(|error| BadStoreEndpoint::Tls { why: error.to_string() })?;
        Ok(Arc::new(target))
    }

    /// Where it is; its `Display` is fit for a log.
    pub fn url(&self) -> &StoreUrl {
        &self.url
    }

    /// A connection that has been let in; `broken` is called when it is lost.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        broken: impl Fn() + Send + Sync + 'static,
    ) -> Result<Link, RedisError> {
        let config = link::config(broken);
        match self.url.place() {
            UrlAuthority::Server(host) if !self.url.is_tls() => {
                let stream = TcpStream::connect(self.look_up(host).await?.as_slice()).await?;
                stream.set_nodelay(true)?;
                return link::over(stream, &self.login(), config).await;
            }
            UrlAuthority::Socket(path) => {
                return link::over(UnixStream::connect(path).await?, &self.login(), config).await;
            }
            _ => {}
        }
        let target = Arc::clone(self);
        self.dialer.run(async move { target.connect_by_library(&config).await }).await?
    }

    async fn look_up(&self, host: &UrlHost) -> io::Result<Vec<SocketAddr>> {
        let (name, port) = (host.name.clone(), host.port);
        self.dialer.run(async move { Ok(lookup_host((name, port)).await?.collect()) }).await?
    }

    async fn connect_by_library(&self, config: &AsyncConnectionConfig) -> Result<Link, RedisError> {
        Ok(match self.client()? {
            LibraryClient::One(client) => {
                Link::One(client.get_multiplexed_async_connection_with_config(config).await?)
            }
            LibraryClient::Named(mut client) => {
                Link::Named(client.get_async_connection_with_config(config).await?)
            }
            LibraryClient::Cluster(client) => Link::Cluster(client.get_async_connection().await?),
        })
    }

    fn client(&self) -> Result<LibraryClient, RedisError> {
        Ok(match self.url.place() {
            UrlAuthority::Server(host) => LibraryClient::One(Box::new(self.server(self.address(host))?)),
            UrlAuthority::Socket(path) => {
                LibraryClient::One(Box::new(self.server(ConnectionAddr::Unix(path.clone()))?))
            }
            UrlAuthority::Sentinel { sentinels, master } => {
                LibraryClient::Named(Box::new(self.sentinel(sentinels, master)?))
            }
            UrlAuthority::Cluster(nodes) => LibraryClient::Cluster(Box::new(self.cluster(nodes)?)),
        })
    }

    fn server(&self, address: ConnectionAddr) -> Result<Client, RedisError> {
        let info = address.into_connection_info()?.set_redis_settings(self.login());
        match &self.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone()),
            None => Client::open(info),
        }
    }

    /// User and password are for the servers; a sentinel is asked without.
    fn sentinel(&self, sentinels: &[UrlHost], master: &str) -> Result<SentinelClient, RedisError> {
        let sentinels = sentinels.iter().map(|host| self.address(host));
        let mut builder = SentinelClientBuilder::new(sentinels, master, SentinelServerType::Master)?
            .set_client_to_redis_db(i64::from(self.url.db()))
            .set_client_to_redis_protocol(ProtocolVersion::RESP3);
        if let Some(certificates) = &self.certificates {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates.clone());
        }
        if let Some(user) = self.url.user() {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.password {
            builder = builder.set_client_to_redis_password(password.as_str());
        }
        builder.build()
    }

    fn cluster(&self, nodes: &[UrlHost]) -> Result<ClusterClient, RedisError> {
        let nodes = nodes
            .iter()
            .map(|host| self.address(host).into_connection_info())
            .collect::<Result<Vec<_>, _>>()?;
        let mut builder = link::cluster_settings(ClusterClientBuilder::new(nodes));
        if let Some(certificates) = &self.certificates {
            builder = builder.tls(TlsMode::Secure).certs(certificates.clone());
        }
        if let Some(user) = self.url.user() {
            builder = builder.username(user);
        }
        if let Some(password) = &self.password {
            builder = builder.password(password.as_str());
        }
        builder.build()
    }

    fn address(&self, host: &UrlHost) -> ConnectionAddr {
        let (host, port) = (host.name.clone(), host.port);
        if self.url.is_tls() {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        }
    }

    fn login(&self) -> RedisConnectionInfo {
        let mut login = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name()
            .set_db(i64::from(self.url.db()));
        if let Some(user) = self.url.user() {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password.as_str());
        }
        login
    }
}

impl fmt::Debug for StoreEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreEndpoint({})", self.url)
    }
}

/// The library's client for each kind of place.
enum LibraryClient {
    One(Box<Client>),
    Named(Box<SentinelClient>),
    Cluster(Box<ClusterClient>),
}

fn password(
    url: &StoreUrl,
    file: Option<Zeroizing<Vec<u8>>>,
) -> Result<Option<Zeroizing<String>>, BadStoreEndpoint> {
    let Some(file) = file else { return Ok(url.password().cloned()) };
    if url.has_password() {
        return Err(BadStoreEndpoint::TwoPasswords);
    }
    let text = str::from_utf8(&file).map_err(|_| BadStoreEndpoint::PasswordNoText)?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    match text.strip_suffix('\r').unwrap_or(text) {
        "" => Err(BadStoreEndpoint::PasswordEmpty),
        text => Ok(Some(Zeroizing::new(text.to_owned()))),
    }
}

fn certificates(
    url: &StoreUrl,
    roots: Option<Vec<u8>>,
    identity: Option<Identity>,
) -> Result<Option<TlsCertificates>, BadStoreEndpoint> {
    if !url.is_tls() {
        let unused = roots.is_some() || identity.is_some();
        return if unused { Err(BadStoreEndpoint::NoTls { url: url.to_string() }) } else { Ok(None) };
    }
    // The library takes a file without a certificate as an empty set of authorities.
    if roots.as_ref().is_some_and(|pem| !pem.windows(BEGIN.len()).any(|window| window == BEGIN)) {
        return Err(BadStoreEndpoint::NoRoots);
    }
    let client_tls = identity
        .map(|identity| ClientTlsConfig { client_cert: identity.chain, client_key: identity.key.to_vec() });
    Ok(Some(TlsCertificates { client_tls, root_cert: roots }))
}

const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// What is wrong with a store's URL and the files beside it, or does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadStoreEndpoint {
    /// A user without a password.
    UserAlone,
    /// A password in the URL and one in a file.
    TwoPasswords,
    /// The password's file is empty.
    PasswordEmpty,
    /// The password's file is no text.
    PasswordNoText,
    /// Certificates for a connection without TLS.
    NoTls {
        /// The URL.
        url: String,
    },
    /// The file of authorities has no certificate.
    NoRoots,
    /// The thread that connects to it cannot be started.
    NoThread {
        /// Why.
        why: String,
    },
    /// A certificate or key cannot be read.
    Tls {
        /// Why.
        why: String,
    },
}

impl fmt::Display for BadStoreEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UserAlone => f.write_str("a user without a password; name a password file"),
            Self::TwoPasswords => f.write_str("a password in the URL and one in a file; keep the file's"),
            Self::PasswordEmpty => f.write_str("the password file is empty"),
            Self::PasswordNoText => f.write_str("the password file is not UTF-8 text"),
            Self::NoTls { url } => write!(f, "certificates, but {url} is not encrypted; use rediss://"),
            Self::NoRoots => {
                f.write_str("the file of trusted authorities has no certificate; it must be PEM")
            }
            Self::NoThread { why } => write!(f, "no thread can be started to connect to it: {why}"),
            Self::Tls { why } => write!(f, "the certificates for the store cannot be used: {why}"),
        }
    }
}

impl std::error::Error for BadStoreEndpoint {}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str, access: Access) -> Result<Arc<StoreEndpoint>, BadStoreEndpoint> {
        StoreEndpoint::new(StoreUrl::parse(url).expect("the URL is right"), access)
    }

    fn with_password(password: &[u8]) -> Access {
        Access { password: Some(Zeroizing::new(password.to_vec())), ..Access::default() }
    }

    #[test]
    fn a_password_file_may_end_in_a_line_end() {
        for file in ["secret", "secret\n", "secret\r\n"] {
            let target = target("redis://user@host", with_password(file.as_bytes())).expect("it fits");
            assert_eq!(target.password.as_ref().map(|password| password.as_str()), Some("secret"));
            assert_eq!(format!("{target:?}"), "StoreEndpoint(redis://user@host:6379)");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |url, access| target(url, access).expect_err(url);
        assert_eq!(refused("redis://user@host", Access::default()), BadStoreEndpoint::UserAlone);
        assert_eq!(refused("redis://:a@host", with_password(b"b")), BadStoreEndpoint::TwoPasswords);
        assert_eq!(refused("redis://host", with_password(b"\n")), BadStoreEndpoint::PasswordEmpty);
        assert_eq!(refused("redis://host", with_password(b"\xff")), BadStoreEndpoint::PasswordNoText);
        let roots = |pem: &[u8]| Access { roots: Some(pem.into()), ..Access::default() };
        let url = "redis://host:6379".to_owned();
        assert_eq!(refused("redis://host", roots(b"x")), BadStoreEndpoint::NoTls { url });
        assert_eq!(refused("rediss://host", roots(b"x")), BadStoreEndpoint::NoRoots);
        let broken = b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        for url in ["rediss://host", "rediss-sentinel://host/main", "rediss-cluster://host"] {
            let error = refused(url, roots(broken));
            assert!(matches!(error, BadStoreEndpoint::Tls { .. }), "{url}: {error:?}");
        }
    }
}
