//! One endpoint, one question, one connection.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use courser_tls_client::ServerName;
use courser_tls_client::flight::{FlightReader, ServerFlight};

use super::question::Question;
use super::{InspectedEndpoint, Options};

/// An endpoint that can be reached, and how many connections that has taken.
pub(super) struct Prober {
    pub(super) address: SocketAddr,
    pub(super) name: ServerName,
    pub(super) host: String,
    pub(super) timeout: Duration,
    pub(super) connections: u32,
}

impl Prober {
    /// Looks the target up and finds the first address that accepts a connection.
    pub(super) fn reach(target: &InspectedEndpoint, options: &Options) -> Result<Self, InspectError> {
        let name = target.server_name().map_err(|error| InspectError::BadName(error.to_string()))?;
        let unknown = |error: io::Error| InspectError::Unknown(error.to_string());
        let addresses = (target.host.as_str(), target.port).to_socket_addrs().map_err(unknown)?;
        let mut failure = InspectError::Unknown("no address".into());
        for address in addresses {
            match TcpStream::connect_timeout(&address, options.timeout) {
                Ok(_) => {
                    let host = target.host.clone();
                    return Ok(Self { address, name, host, timeout: options.timeout, connections: 1 });
                }
                Err(error) => failure = InspectError::Unreachable(error.to_string()),
            }
        }
        Err(failure)
    }

    /// A new connection.
    pub(super) fn connect(&mut self) -> Result<TcpStream, InspectError> {
        let unreachable = |error: io::Error| InspectError::Unreachable(error.to_string());
        let socket = TcpStream::connect_timeout(&self.address, self.timeout).map_err(unreachable)?;
        self.connections += 1;
        let timeout = Some(self.timeout);
        let prepared = socket.set_read_timeout(timeout).and_then(|()| socket.set_write_timeout(timeout));
        prepared.and_then(|()| socket.set_nodelay(true)).map_err(unreachable)?;
        Ok(socket)
    }

    /// What the server says to `question`, before it would be the client's turn.
    pub(super) fn ask(&mut self, question: &Question<'_>) -> Result<Answer, InspectError> {
        let mut socket = self.connect()?;
        let hello = question.hello(&self.name);
        let mut flight = FlightReader::default();
        let ending = socket.write_all(&hello).and_then(|()| listen(&mut socket, &mut flight));
        let said = flight.flight();
        if said.not_tls {
            return Err(InspectError::NotTls);
        }
        Ok(match (&said.version(), said.alert, ending) {
            (Some(_), _, _) => Answer::Said(Box::new(said.clone())),
            (None, Some(alert), _) => Answer::Refused(Refusal::Alert(alert)),
            (None, None, Err(error)) if is_timeout(&error) => Answer::Refused(Refusal::Silent),
            (None, None, _) => Answer::Refused(Refusal::Closed),
        })
    }
}

/// What came of a question.
pub(super) enum Answer {
    /// The server chose something.
    Said(Box<ServerFlight>),
    /// It took nothing.
    Refused(Refusal),
}

impl Answer {
    pub(super) fn said(self) -> Option<Box<ServerFlight>> {
        match self {
            Self::Said(said) => Some(said),
            Self::Refused(_) => None,
        }
    }
}

/// How a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// With a fatal alert, by its code.
    Alert(u8),
    /// It closed or reset the connection without a word.
    Closed,
    /// It let the time pass.
    Silent,
}

/// Why nothing can be said about an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InspectError {
    /// The name to ask for is neither a DNS name nor an address.
    BadName(String),
    /// The host has no address.
    Unknown(String),
    /// No connection can be made.
    Unreachable(String),
    /// What answers is not TLS.
    NotTls,
    /// Connections are accepted, and nothing is ever answered.
    Silent,
    /// Connections are closed without an answer, whatever is offered.
    Closed,
    /// Every version is refused; the code of the last alert (RFC 8446, section 6).
    Refused(u8),
}

impl fmt::Display for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(why) => f.write_str(why),
            Self::Unknown(why) => write!(f, "the host cannot be looked up: {why}"),
            Self::Unreachable(why) => write!(f, "no connection: {why}"),
            Self::NotTls => f.write_str("the server does not speak TLS on this port"),
            Self::Silent => {
                f.write_str("the server answers nothing; give it more time, or look what listens there")
            }
            Self::Closed => f.write_str("the server closes without an answer; look what listens there"),
            Self::Refused(112) => {
                f.write_str("the server knows no such name (alert 112); ask for one that it serves")
            }
            Self::Refused(alert) => write!(f, "the server refuses TLS 1.0 to 1.3 alike (alert {alert})"),
        }
    }
}

impl std::error::Error for InspectError {}

impl From<Refusal> for InspectError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Alert(alert) => Self::Refused(alert),
            Refusal::Closed => Self::Closed,
            Refusal::Silent => Self::Silent,
        }
    }
}

/// Reads until the server waits for the client, or has ended it.
fn listen(socket: &mut TcpStream, flight: &mut FlightReader) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while !(flight.is_finished() || flight.flight().done || flight.flight().retry.is_some()) {
        match socket.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => flight.read(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
