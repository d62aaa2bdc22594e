//! Addresses as they are written: where to listen, and where backends are.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use crate::dns;
use crate::problem::{Problem, Problems};
use crate::read::{self, Located, located};
use crate::value::Value;

/// Bytes of a unix socket's address on Linux, less the one that ends a path or begins an abstract name
/// (`sun_path`, unix(7)).
const LONGEST_SOCKET_NAME: usize = 107;

/// Where clients arrive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// `*:443`: every address, IPv6 and IPv4 in one socket (`[::]` without `IPV6_V6ONLY`), or IPv4 alone
    /// where the system has no IPv6.
    Any {
        /// 0 lets the system choose.
        port: u16,
    },
    /// `192.0.2.1:443` or `[2001:db8::1]:443`. `[::]` is IPv6 alone.
    Ip(SocketAddr),
    /// `unix:/run/courser.sock`.
    Unix(PathBuf),
    /// `abstract:courser`, in Linux's abstract namespace, without the leading zero byte.
    Abstract(String),
    /// `systemd` for every socket passed by socket activation, `systemd:web` for those of that name
    /// (`FileDescriptorName=`, sd_listen_fds_with_names(3)).
    Systemd(Option<String>),
}

/// Where plaintext goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BackendAddress {
    /// `10.0.0.3:80` or `[2001:db8::3]:80`; the port is not 0.
    Ip(SocketAddr),
    /// `app.internal:8080`, to be resolved.
    Name {
        /// A host name in lower case.
        host: String,
        /// Not 0.
        port: u16,
    },
    /// `srv:_http._tcp.app.internal`, the SRV records of a service (RFC 2782). In lower case.
    Service(String),
    /// `unix:/run/app.sock`.
    Unix(PathBuf),
    /// `abstract:app`, in Linux's abstract namespace, without the leading zero byte.
    Abstract(String),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any { port } => write!(f, "*:{port}"),
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "abstract:{name}"),
            Self::Systemd(None) => f.write_str("systemd"),
            Self::Systemd(Some(name)) => write!(f, "systemd:{name}"),
        }
    }
}

impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Service(name) => write!(f, "srv:{name}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "abstract:{name}"),
        }
    }
}

impl ListenAddress {
    /// Whether two listeners with these would get each other's connections.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any { port: 0 }, _) => false,
            (Self::Ip(address), _) if address.port() == 0 => false,
            (Self::Any { port }, Self::Ip(address)) | (Self::Ip(address), Self::Any { port }) => {
                address.ip().is_unspecified() && address.port() == *port
            }
            (Self::Systemd(a), Self::Systemd(b)) => a == b || a.is_none() || b.is_none(),
            (a, b) => a == b,
        }
    }
}

pub(crate) fn listen(value: &Value) -> Result<ListenAddress, Problems> {
    let text = read::text(value, "an address")?;
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(ListenAddress::Unix(socket_path(value, path)?));
    }
    if let Some(name) = text.strip_prefix("abstract:") {
        return Ok(ListenAddress::Abstract(abstract_name(value, name)?));
    }
    if let Some(name) = text.strip_prefix("systemd:") {
        return Ok(ListenAddress::Systemd(Some(activation_name(value, name)?)));
    }
    if text == "systemd" {
        return Ok(ListenAddress::Systemd(None));
    }
    let (host, port) = host_and_port(value, text, "443")?;
    match (host, ip(host)) {
        ("*", _) => Ok(ListenAddress::Any { port }),
        (_, Some(ip)) => Ok(ListenAddress::Ip(SocketAddr::new(ip, port))),
        _ => Err(refuse(
            value,
            format!("`{host}` is not an IP address"),
            format!("to listen on every address write `*:{port}`"),
        )),
    }
}

pub(crate) fn backend(value: &Value) -> Result<BackendAddress, Problems> {
    let text = read::text(value, "an address")?;
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(BackendAddress::Unix(socket_path(value, path)?));
    }
    if let Some(name) = text.strip_prefix("abstract:") {
        return Ok(BackendAddress::Abstract(abstract_name(value, name)?));
    }
    if let Some(name) = text.strip_prefix("srv:") {
        return Ok(BackendAddress::Service(service(value, name)?));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let help = format!("leave `{scheme}://` out: write `{}`", rest.trim_end_matches('/'));
        return Err(refuse(value, format!("`{text}` is a URL, not an address"), help));
    }
    let (host, port) = host_and_port(value, text, "80")?;
    if port == 0 {
        return Err(Problem::at(&value.origin, "a backend cannot have port 0", None).into());
    }
    if let Some(ip) = ip(host) {
        return Ok(BackendAddress::Ip(SocketAddr::new(ip, port)));
    }
    match dns::wrong(host) {
        None => Ok(BackendAddress::Name { host: host.to_ascii_lowercase(), port }),
        Some((why, _)) => {
            let message = format!("`{host}` is neither an IP address nor a host name: {why}");
            Err(Problem::at(&value.origin, message, None).into())
        }
    }
}

/// The name of SRV records: a service, a protocol, each with an underscore, and a domain.
fn service(value: &Value, name: &str) -> Result<String, Problems> {
    let mut labels = name.splitn(3, '.');
    let is_marked =
        |label: Option<&str>| label.is_some_and(|label| label.len() > 1 && label.starts_with('_'));
    let (service, protocol, domain) = (labels.next(), labels.next(), labels.next());
    let why = match (is_marked(service) && is_marked(protocol), domain) {
        (true, Some(_)) => dns::wrong(name).map(|(why, _)| why),
        _ => Some("it does not begin with a service and a protocol".to_owned()),
    };
    match why {
        None => Ok(name.to_ascii_lowercase()),
        Some(why) => Err(refuse(
            value,
            format!("`{name}` is not the name of SRV records: {why}"),
            "write for example `srv:_http._tcp.shop.internal`; the port is in the records".to_owned(),
        )),
    }
}

/// Reads the UDP address of a host of a fleet, or of a multicast group.
pub(crate) fn datagram(value: &Value) -> Result<SocketAddr, Problems> {
    let text = read::text(value, "an address")?;
    let (host, port) = host_and_port(value, text, "8888")?;
    match ip(host) {
        _ if port == 0 => Err(Problem::at(&value.origin, "a fleet cannot meet at port 0", None).into()),
        Some(ip) => Ok(SocketAddr::new(ip, port)),
        None => {
            let help = "write for example `10.0.3.20:8888`, or a multicast group: `239.1.1.1:8888`";
            Err(refuse(value, format!("`{host}` is not an IP address"), help.to_owned()))
        }
    }
}

fn host_and_port<'a>(value: &Value, text: &'a str, example: &str) -> Result<(&'a str, u16), Problems> {
    if text.parse::<Ipv6Addr>().is_ok() {
        let help = format!("an IPv6 address with a port stands in brackets: `[2001:db8::1]:{example}`");
        return Err(refuse(value, format!("`{text}` has no port"), help));
    }
    let Some((host, port)) = text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) else {
        return Err(no_port(value, text, example));
    };
    if host.is_empty() {
        let help = format!("write for example `*:{port}` to listen, `127.0.0.1:{port}` for a backend");
        return Err(refuse(value, format!("`{text}` has no address before the port"), help));
    }
    match port.parse() {
        Ok(number) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok((host, number)),
        _ => Err(refuse(value, format!("`{port}` is not a port"), "a whole number up to 65535".to_owned())),
    }
}

fn no_port(value: &Value, text: &str, example: &str) -> Problems {
    let help = match text.parse::<u16>() {
        Ok(port) => format!("write for example `*:{port}` to listen, `127.0.0.1:{port}` for a backend"),
        Err(_) => format!("write `{text}:{example}`"),
    };
    refuse(value, format!("`{text}` is not an address with a port"), help)
}

/// IPv6 only in brackets: `::1:80` can be read in two ways.
fn ip(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}

fn socket_path(value: &Value, path: &str) -> Result<PathBuf, Problems> {
    let path = file_path(value, path)?;
    fits(value, path.as_os_str().len())?;
    Ok(path)
}

/// A path as a setting, with its place.
pub(crate) fn located_file(value: &Value) -> Result<Located<PathBuf>, Problems> {
    located(value, |value| file_path(value, read::text(value, "a file name")?))
}

/// A path of a unix socket as a setting, with its place.
pub(crate) fn located_socket(value: &Value) -> Result<Located<PathBuf>, Problems> {
    located(value, |value| socket_path(value, read::text(value, "a file name")?))
}

/// A path that is not empty, from the folder of the file it stands in.
pub(crate) fn file_path(value: &Value, path: &str) -> Result<PathBuf, Problems> {
    if path.is_empty() || path.contains('\0') {
        return Err(Problem::at(&value.origin, "the path is empty or has a zero byte", None).into());
    }
    Ok(value.origin.resolve(path))
}

fn abstract_name(value: &Value, name: &str) -> Result<String, Problems> {
    if name.is_empty() {
        return Err(refuse(
            value,
            "the abstract name is empty".to_owned(),
            "write `abstract:NAME`".to_owned(),
        ));
    }
    fits(value, name.len())?;
    Ok(name.to_owned())
}

/// systemd allows ASCII without control characters and colons, up to 255 (`FileDescriptorName=`,
/// systemd.socket(5)).
fn activation_name(value: &Value, name: &str) -> Result<String, Problems> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b':';
    if (1..=255).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(name.to_owned());
    }
    let help = "write the `FileDescriptorName=` of the socket unit, or `systemd` for all of its sockets";
    Err(refuse(value, format!("`{name}` is not the name of a passed socket"), help.to_owned()))
}

fn fits(value: &Value, length: usize) -> Result<(), Problems> {
    if length <= LONGEST_SOCKET_NAME {
        return Ok(());
    }
    let message =
        format!("the socket's name has {length} bytes; {LONGEST_SOCKET_NAME} is the most the system takes");
    Err(Problem::at(&value.origin, message, None).into())
}

fn refuse(value: &Value, message: String, help: String) -> Problems {
    Problem::at(&value.origin, message, Some(help)).into()
}
