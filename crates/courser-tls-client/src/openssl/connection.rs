//! A connection on OpenSSL.

use std::borrow::Cow;

use courser_tls::{Failure, Progress, State, names};
use openssl::ssl::{Error, ErrorCode, ShutdownState, Ssl, SslSession, SslStream};
use rustls::pki_types;

use super::config::OpensslClientConfig;
use super::memory::Memory;
use super::{failure, scheme, sessions};
use crate::flight::FlightReader;
use crate::handshake_info::{ClientHandshakeInfo, ResumptionMethod};
use crate::rustls_connection::not_tls;
use crate::server_name::ServerName;
use crate::sessions::ClientSessions;
use crate::spec::Resume;

/// One connection.
pub(crate) struct Connection {
    stream: SslStream<Memory>,
    config: OpensslClientConfig,
    name: ServerName,
    sessions: ClientSessions,
    /// The session that was offered, if any: its ID, and by what it was named.
    offered: Option<(Vec<u8>, ResumptionMethod)>,
    /// Reads the clear part of the server's flight.
    flight: FlightReader,
    info: Option<ClientHandshakeInfo>,
    /// TLS 1.3 tickets so far.
    tickets: u32,
    failed: Option<Failure>,
}

impl Connection {
    pub(crate) fn new(
        config: &OpensslClientConfig,
        name: &ServerName,
        mut sessions: ClientSessions,
    ) -> Result<Self, Failure> {
        let mut ssl = Ssl::new(&config.context).map_err(|error| failure::internal(&error))?;
        set_server_name(&mut ssl, name, config.verify).map_err(|error| failure::internal(&error))?;
        let offered = sessions.openssl.offer(&mut ssl, name)?;
        let stream = SslStream::new(ssl, Memory::default()).map_err(|error| failure::internal(&error))?;
        Ok(Self {
            stream,
            config: config.clone(),
            name: name.clone(),
            sessions,
            offered,
            flight: FlightReader::default(),
            info: None,
            tickets: 0,
            failed: None,
        })
    }

    /// Takes all of `received`.
    pub(crate) fn process(
        &mut self,
        received: &[u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        self.check_not_failed()?;
        self.flight.read(received);
        if self.flight.flight().not_tls {
            return Err(self.fail(not_tls(received)));
        }
        self.stream.get_mut().receive(received);
        let was_open = self.info.is_some();
        let (state, sessions) = sessions::collect(|| self.advance(plaintext));
        self.stream.get_mut().drain_into(outgoing);
        let renewed = if was_open { None } else { self.renewed_session() };
        self.store(sessions.into_iter().chain(renewed));
        match state {
            Ok(state) => Ok(Progress { consumed: received.len(), state }),
            Err(error) => Err(self.fail_with(&error)),
        }
    }

    pub(crate) fn send(&mut self, mut plaintext: &[u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        self.check_not_failed()?;
        if self.info.is_none() {
            return Err(Failure::internal("records can only be written after the handshake"));
        }
        while !plaintext.is_empty() {
            match self.stream.ssl_write(plaintext) {
                Ok(written) => plaintext = &plaintext[written..],
                Err(error) => return Err(self.fail_with(&error)),
            }
        }
        self.stream.get_mut().drain_into(outgoing);
        Ok(())
    }

    pub(crate) fn send_close_notify(&mut self, outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        self.check_not_failed()?;
        if self.info.is_none() {
            return Err(Failure::internal("records can only be written after the handshake"));
        }
        if !self.stream.get_shutdown().contains(ShutdownState::SENT) {
            self.stream.shutdown().map_err(|error| self.fail_with(&error))?;
            self.stream.get_mut().drain_into(outgoing);
        }
        Ok(())
    }

    pub(crate) fn handshake_info(&self) -> Option<ClientHandshakeInfo> {
        self.info.clone()
    }

    pub(crate) fn tickets_received(&self) -> u32 {
        self.tickets
    }

    pub(crate) fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let chain = self.stream.ssl().peer_cert_chain();
        chain.into_iter().flatten().filter_map(|certificate| certificate.to_der().ok()).collect()
    }

    pub(crate) fn into_sessions(mut self) -> ClientSessions {
        // OpenSSL spoils the session of a connection that ends without close_notify. The other engines do not: whether
        // the server still accepts it is the server's decision (RFC 5246, section 7.2.1).
        self.stream.set_shutdown(ShutdownState::SENT | ShutdownState::RECEIVED);
        self.sessions
    }

    fn advance(&mut self, plaintext: &mut Vec<u8>) -> Result<State, Error> {
        if self.info.is_none() {
            match self.stream.connect() {
                Ok(()) => self.info = Some(self.read_info()),
                Err(error) if error.code() == ErrorCode::WANT_READ => return Ok(State::Handshaking),
                Err(error) => return Err(error),
            }
        }
        loop {
            match read_record(&mut self.stream, plaintext) {
                Ok(()) => {}
                Err(error) if error.code() == ErrorCode::WANT_READ => return Ok(State::Open),
                Err(error) if error.code() == ErrorCode::ZERO_RETURN => return Ok(State::PeerClosed),
                Err(error) => return Err(error),
            }
        }
    }

    fn read_info(&self) -> ClientHandshakeInfo {
        let (ssl, flight) = (self.stream.ssl(), self.flight.flight());
        let resumed = ssl.session_reused();
        let version = names::version_code(ssl.version_str()).unwrap_or_default();
        ClientHandshakeInfo {
            version,
            suite: ssl.current_cipher().map_or(0, |cipher| u16::from_be_bytes(cipher.protocol_id())),
            group: flight.group(),
            scheme: if resumed { None } else { scheme::used(ssl, flight, version, &self.config.schemes) },
            alpn: ssl.selected_alpn_protocol().map(<[u8]>::to_vec),
            offered: self.offered.as_ref().map(|(_, offered)| *offered),
            resumed,
            retried: flight.retry.is_some(),
            early_data: None,
        }
    }

    /// The session with the new ticket that has come with a resumption up to TLS 1.2. OpenSSL does not hand that one
    /// over by itself, and will not offer the one before again.
    fn renewed_session(&self) -> Option<SslSession> {
        let info = self.info.as_ref()?;
        let is_renewed = info.resumed && info.version < TLS13 && self.flight.flight().tickets > 0;
        self.stream.ssl().session().filter(|_| is_renewed).map(ToOwned::to_owned)
    }

    /// Stores the sessions that the server sent, if the resumption method is theirs.
    fn store(&mut self, sessions: impl Iterator<Item = SslSession>) {
        let Some(info) = &self.info else { return };
        let old = info.version < TLS13;
        for session in sessions {
            self.tickets += u32::from(!old);
            let (stored, context, name) = (&mut self.sessions.openssl, &self.config.context, &self.name);
            match self.config.resume {
                Resume::Never => {}
                Resume::SessionId if old && !session.id().is_empty() => {
                    stored.replace(context, name, session, ResumptionMethod::SessionId);
                }
                // A server that sends none gives an ID, and the library would take the one for the other.
                Resume::Ticket if old && self.flight.flight().tickets > 0 => {
                    stored.replace(context, name, session, ResumptionMethod::Ticket);
                }
                Resume::Ticket if !old => {
                    stored.push_ticket(context, name, session, self.config.max_tickets);
                }
                Resume::SessionId | Resume::Ticket => {}
            }
        }
    }

    fn check_not_failed(&self) -> Result<(), Failure> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn fail_with(&mut self, error: &Error) -> Failure {
        let failure = failure::of(error, self.server_resumes());
        self.fail(failure)
    }

    fn fail(&mut self, failure: Failure) -> Failure {
        self.failed = Some(failure.clone());
        failure
    }

    /// Whether the server has agreed to resume: by the pre-shared key it chose, or by the session ID it repeats.
    fn server_resumes(&self) -> bool {
        let (Some((id, _)), Some(hello)) = (&self.offered, &self.flight.flight().hello) else { return false };
        if hello.version < TLS13 { !id.is_empty() && hello.session_id == *id } else { hello.psk }
    }
}

/// Sets the server's name for server name indication, and for the verification if there is one.
fn set_server_name(
    ssl: &mut Ssl,
    name: &ServerName,
    verifies: bool,
) -> Result<(), openssl::error::ErrorStack> {
    let text: Cow<'_, str> = name.0.to_str();
    match &name.0 {
        pki_types::ServerName::IpAddress(address) if verifies => {
            ssl.param_mut().set_ip(std::net::IpAddr::from(*address))?;
        }
        pki_types::ServerName::DnsName(_) => {
            ssl.set_hostname(&text)?;
            if verifies {
                ssl.param_mut().set_host(&text)?;
            }
        }
        _ => {}
    }
    ssl.set_connect_state();
    Ok(())
}

/// Appends what is left of the next record to `plaintext`.
pub(super) fn read_record(stream: &mut SslStream<Memory>, plaintext: &mut Vec<u8>) -> Result<(), Error> {
    let start = plaintext.len();
    plaintext.resize(start + MAX_PLAINTEXT, 0);
    let read = stream.ssl_read(&mut plaintext[start..]);
    plaintext.truncate(start + *read.as_ref().unwrap_or(&0));
    read.map(drop)
}

const TLS13: u16 = 0x0304;

/// Largest plaintext of a record (RFC 8446, section 5.1).
const MAX_PLAINTEXT: usize = 1 << 14;
