//! One check of one server.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use courser_net::{Address, Stream};
use courser_tls::BackendTls;
use tokio::time::timeout;

use crate::agent::{self, Report};
use crate::channel::{Channel, text};
use crate::status_line;

/// How a server is reached.
#[derive(Clone, Copy)]
pub struct Endpoint<'a> {
    /// Where it is.
    pub address: &'a Address,
    /// TLS with it.
    pub tls: Option<&'a BackendTls>,
}

/// How a server is checked.
#[derive(Debug, PartialEq)]
pub struct Probe {
    /// What has to succeed.
    pub kind: ProbeKind,
    /// Another port than the server's.
    pub port: Option<u16>,
    /// PROXY header in front: one that says that the connection is no client's.
    pub header: Vec<u8>,
    /// For the whole check.
    pub timeout: Duration,
}

/// What has to succeed.
#[derive(Debug, PartialEq)]
pub enum ProbeKind {
    /// To connect.
    Tcp,
    /// A handshake in which the server proves who it is.
    Tls,
    /// A request.
    Http {
        /// As in the request line.
        path: String,
        /// `Host`; `None`: as the server is configured.
        host: Option<String>,
        /// Status codes that are good.
        status: Vec<RangeInclusive<u16>>,
    },
    /// Nothing: the agent is obeyed.
    Agent,
}

impl ProbeKind {
    /// As in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Http { .. } => "http",
            Self::Agent => "agent",
        }
    }
}

/// What a check has seen, for people, and what an agent has said.
pub(crate) type Seen = Result<(String, Option<Report>), String>;

impl Probe {
    pub(crate) async fn run(&self, name: &str, endpoint: &Endpoint<'_>) -> Seen {
        let checked = timeout(self.timeout, self.check(name, endpoint)).await;
        checked.unwrap_or_else(|_| Err("no answer".to_owned()))
    }

    async fn check(&self, name: &str, endpoint: &Endpoint<'_>) -> Seen {
        let target = at_port(endpoint.address, self.port);
        let stream = Stream::connect(&target).await.map_err(|error| text(&error))?;
        let mut channel = Channel::plain(stream);
        channel.write(&self.header).await?;
        let mut version = None;
        if let Some(tls) = endpoint.tls.filter(|_| self.speaks_tls()) {
            let (secured, agreed) = channel.secure(tls).await?;
            (channel, version) = (secured, Some(agreed));
        }
        match &self.kind {
            ProbeKind::Tcp => Ok(("connected".to_owned(), None)),
            ProbeKind::Tls => Ok((version.unwrap_or("no TLS").to_owned(), None)),
            ProbeKind::Http { path, host, status } => {
                let host = host.clone().unwrap_or_else(|| host_of(name, &target));
                http(&mut channel, path, &host, status).await
            }
            ProbeKind::Agent => agent(&mut channel).await,
        }
    }

    /// Whether it makes a handshake where the server has TLS. Who answers HTTP at another port is somebody else.
    fn speaks_tls(&self) -> bool {
        match self.kind {
            ProbeKind::Tls => true,
            ProbeKind::Http { .. } => self.port.is_none(),
            ProbeKind::Tcp | ProbeKind::Agent => false,
        }
    }
}

async fn http(channel: &mut Channel, path: &str, host: &str, good: &[RangeInclusive<u16>]) -> Seen {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: courser-check\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    channel.write(request.as_bytes()).await?;
    let read = |bytes: &[u8]| status_line::read(bytes).map_err(|_| "the answer is not HTTP/1".to_owned());
    let code = answer(channel, read).await?;
    // Unread bytes would make a reset of the close, which some servers log.
    let _ = timeout(LAST_BYTES, discard(channel)).await;
    match good.iter().any(|range| range.contains(&code)) {
        true => Ok((format!("HTTP {code}"), None)),
        false => Err(format!("HTTP {code}")),
    }
}

async fn agent(channel: &mut Channel) -> Seen {
    let read = |bytes: &[u8]| {
        agent::read(bytes).map_err(|_| format!("the agent's line is longer than {} bytes", agent::LONGEST))
    };
    let report = answer(channel, read).await?;
    Ok((report.line.clone(), Some(report)))
}

/// Reads until `read` has made something of the bytes.
async fn answer<T>(
    channel: &mut Channel,
    read: impl Fn(&[u8]) -> Result<Option<T>, String>,
) -> Result<T, String> {
    let mut bytes = Vec::new();
    loop {
        let got = channel.read(&mut bytes).await?;
        if let Some(answer) = read(&bytes)? {
            return Ok(answer);
        }
        if got == 0 {
            return Err(if bytes.is_empty() {
                "closed without an answer"
            } else {
                "closed within its answer"
            }
            .to_owned());
        }
    }
}

/// Reads what is left of an answer, up to a bound.
async fn discard(channel: &mut Channel) {
    let (mut bytes, mut left) = (Vec::new(), MOST_DISCARDED);
    while left > 0 {
        bytes.clear();
        match channel.read(&mut bytes).await {
            Ok(got) if got > 0 => left = left.saturating_sub(got),
            _ => return,
        }
    }
}

fn at_port(target: &Address, port: Option<u16>) -> Address {
    match (target, port) {
        (Address::Ip(address), Some(port)) => Address::Ip(SocketAddr::new(address.ip(), port)),
        _ => target.clone(),
    }
}

/// As the server is configured, without the address that stands behind a name.
fn host_of(name: &str, target: &Address) -> String {
    match target {
        Address::Ip(_) => name.split(' ').next().unwrap_or_default().to_owned(),
        Address::Unix(_) | Address::Abstract(_) => "localhost".to_owned(),
    }
}

/// What is read of an answer beyond its first line. A page for checks is shorter.
const MOST_DISCARDED: usize = 16 * 1024;

/// Time for the rest of an answer whose status is known.
const LAST_BYTES: Duration = Duration::from_millis(100);
