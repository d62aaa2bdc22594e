//! A connection as rustls makes it.

use std::sync::Arc;

use courser_tls::internals::records::{self, RustlsConnection};
use courser_tls::{Failure, FailureKind, Progress, State};
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::ConnectionState;
use rustls::{CommonState, ContentType, Error, HandshakeKind, HandshakeType, ProtocolVersion};

use crate::handshake_info::{ClientHandshakeInfo, ResumptionMethod};
use crate::hello::{self, PRE_SHARED_KEY, SESSION_TICKET};
use crate::rustls_config::RustlsClientConfig;
use crate::server_name::ServerName;
use crate::sessions::{self, CallContext, ClientSessions, OfferedSession};
use crate::spec::Resume;

/// Bytes before a record's content (RFC 8446, section 5.1).
const HEADER: usize = 5;

/// How a record begins that holds EndOfEarlyData (RFC 8446, section 4.5): an empty handshake message, its content type
/// and the tag. No other encrypted message of a client is as short.
const END_OF_EARLY_DATA: [u8; HEADER] = [23, 3, 3, 0, 4 + 1 + 16];

/// One connection.
pub(crate) struct Connection {
    tls: UnbufferedClientConnection,
    context: Option<Box<CallContext>>,
    /// The ClientHello, until the first call takes it.
    hello: Vec<u8>,
    offered: Option<ResumptionMethod>,
    early: EarlyData,
    /// Whether anything of the server has been processed.
    has_received: bool,
    retried: bool,
    /// Set once it has failed. The library may not be called again then: it would send its alert twice.
    failed: Option<Box<Failure>>,
}

/// How early data stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyData {
    /// Not offered.
    None,
    /// Offered, and the server has not answered; so many bytes may still be sent.
    Offered(usize),
    /// Taken.
    Accepted,
    /// Thrown away by the server.
    Rejected,
}

impl Connection {
    pub(crate) fn new(
        config: &RustlsClientConfig,
        name: &ServerName,
        sessions: ClientSessions,
    ) -> Result<Self, Failure> {
        let mut connection = Self::start(config, name, config.call_context(sessions))?;
        if connection.offers_session_id_instead() {
            let mut sessions = connection.into_sessions();
            sessions.clear_session();
            connection = Self::start(config, name, config.call_context(sessions))?;
        }
        Ok(connection)
    }

    /// Writes the ClientHello, and stops where early data can follow.
    fn start(config: &RustlsClientConfig, name: &ServerName, context: CallContext) -> Result<Self, Failure> {
        let mut context = Some(Box::new(context));
        let (rustls, server) = (Arc::clone(&config.rustls), name.0.clone());
        let mut tls = sessions::enter(&mut context, || UnbufferedClientConnection::new(rustls, server))?;
        let (hello, is_early_data_open) = write_hello(&mut tls)?;
        let taken = context.as_ref().and_then(|context| context.offered);
        let early = match taken {
            Some(OfferedSession::Ticket { early_data }) if is_early_data_open => {
                EarlyData::Offered(early_data)
            }
            _ => EarlyData::None,
        };
        Ok(Self {
            offered: taken.and_then(|taken| offered(taken, &hello, config.resume)),
            tls,
            context,
            hello,
            early,
            has_received: false,
            retried: false,
            failed: None,
        })
    }

    /// Whether a session without a ticket would be resumed by its ID, where the caller wants tickets.
    fn offers_session_id_instead(&self) -> bool {
        let taken = self.context.as_ref().and_then(|context| context.offered);
        taken == Some(OfferedSession::Session) && self.offered.is_none()
    }

    pub(crate) fn process(
        &mut self,
        received: &mut [u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        self.check_not_failed()?;
        outgoing.append(&mut self.hello);
        if !self.has_received {
            if received.is_empty() || !is_tls(received).map_err(|failure| self.fail(failure))? {
                return Ok(Progress { consumed: 0, state: State::Handshaking });
            }
            self.has_received = true;
        }
        let Self { tls, context, .. } = self;
        let before = outgoing.len();
        let progress = sessions::enter(context, || records::process(tls, received, plaintext, outgoing));
        self.update_state(&outgoing[before..]);
        progress.map_err(|error| {
            let failure = self.failure(error);
            self.fail(failure)
        })
    }

    /// Derives what the library does not report from the records that it sends.
    fn update_state(&mut self, sent: &[u8]) {
        self.retried |= self.tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
        if matches!(self.early, EarlyData::Offered(_)) && !sent.is_empty() {
            let is_taken = sent.starts_with(&END_OF_EARLY_DATA);
            self.early = if is_taken { EarlyData::Accepted } else { EarlyData::Rejected };
        }
    }

    /// A failure of the library. In a resumption the server sends nothing between its hello and its Finished.
    fn failure(&self, error: Error) -> Failure {
        let is_false = self.is_resumed() && self.tls.is_handshaking() && begins_full_handshake(&error);
        let Failure { kind, detail } = Failure::from(error);
        Failure { kind: if is_false { FailureKind::FalseResumption } else { kind }, detail }
    }

    fn fail(&mut self, failure: Failure) -> Failure {
        self.failed = Some(Box::new(failure.clone()));
        failure
    }

    fn check_not_failed(&self) -> Result<(), Failure> {
        self.failed.as_deref().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn check_open(&self) -> Result<(), Failure> {
        self.check_not_failed()?;
        if self.tls.is_handshaking() {
            return Err(Failure::internal("records can only be written after the handshake"));
        }
        Ok(())
    }

    pub(crate) fn send(
        &mut self,
        plaintext: &[u8],
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.check_open()?;
        Ok(records::send(&mut self.tls, plaintext, received, outgoing)?)
    }

    pub(crate) fn send_close_notify(
        &mut self,
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.check_open()?;
        Ok(records::send_close_notify(&mut self.tls, received, outgoing)?)
    }

    pub(crate) fn send_early(&mut self, plaintext: &[u8], outgoing: &mut Vec<u8>) -> Option<usize> {
        let EarlyData::Offered(left) = self.early else { return None };
        if self.has_received {
            return None;
        }
        outgoing.append(&mut self.hello);
        let taken = &plaintext[..plaintext.len().min(left)];
        let ConnectionState::TransmitTlsData(mut transmit) = self.tls.step(&mut []).state.ok()? else {
            return None;
        };
        let mut early = transmit.may_encrypt_early_data()?;
        records::append(outgoing, records::max_records_len(taken), |room| early.encrypt(taken, room)).ok()?;
        self.early = EarlyData::Offered(left - taken.len());
        Some(taken.len())
    }

    pub(crate) fn handshake_info(&self) -> Option<ClientHandshakeInfo> {
        if self.tls.is_handshaking() {
            return None;
        }
        let (version, suite) = (self.tls.protocol_version()?, self.tls.negotiated_cipher_suite()?);
        let resumed = self.is_resumed();
        let group = self.tls.negotiated_key_exchange_group().map(|group| u16::from(group.name()));
        Some(ClientHandshakeInfo {
            version: u16::from(version),
            suite: u16::from(suite.suite()),
            group: group.filter(|_| !resumed || version == ProtocolVersion::TLSv1_3),
            scheme: self.context.as_ref().and_then(|context| context.scheme),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            offered: self.offered,
            resumed,
            retried: self.retried,
            early_data: match self.early {
                EarlyData::None => None,
                EarlyData::Accepted => Some(true),
                EarlyData::Offered(_) | EarlyData::Rejected => Some(false),
            },
        })
    }

    fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(crate) fn tickets_received(&self) -> u32 {
        self.tls.tls13_tickets_received()
    }

    pub(crate) fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let common: &CommonState = self.tls.common();
        let chain = common.peer_certificates().unwrap_or_default();
        chain.iter().map(|certificate| certificate.to_vec()).collect()
    }

    pub(crate) fn into_sessions(self) -> ClientSessions {
        self.context.map(|context| context.sessions).unwrap_or_default()
    }
}

/// The library's first records, and whether early data may follow. The library then waits for word that they have been
/// transmitted; [`records::process`] gives it.
fn write_hello(tls: &mut UnbufferedClientConnection) -> Result<(Vec<u8>, bool), Failure> {
    let mut hello = Vec::new();
    loop {
        match tls.step(&mut []).state? {
            ConnectionState::EncodeTlsData(mut data) => records::encode(&mut data, &mut hello),
            ConnectionState::TransmitTlsData(mut transmit) => {
                return Ok((hello, transmit.may_encrypt_early_data().is_some()));
            }
            _ => return Err(Failure::internal("the library has written no ClientHello")),
        }
    }
}

/// How a session is offered, read from the ClientHello.
fn offered(taken: OfferedSession, hello: &[u8], resume: Resume) -> Option<ResumptionMethod> {
    match taken {
        OfferedSession::Ticket { .. } => {
            hello::extension(hello, PRE_SHARED_KEY).map(|_| ResumptionMethod::Psk)
        }
        OfferedSession::Session if resume == Resume::SessionId => Some(ResumptionMethod::SessionId),
        OfferedSession::Session => {
            let ticket = hello::extension(hello, SESSION_TICKET)?;
            (!ticket.is_empty()).then_some(ResumptionMethod::Ticket)
        }
    }
}

/// Whether the server's first bytes are those of a record; not yet if there are too few.
fn is_tls(received: &[u8]) -> Result<bool, Failure> {
    let is_record = matches!(received, [20..=24] | [20..=24, 3, ..]);
    if is_record {
        return Ok(received.len() >= HEADER);
    }
    Err(not_tls(received))
}

/// The server's first bytes are no record.
pub(crate) fn not_tls(received: &[u8]) -> Failure {
    let beginning = String::from_utf8_lossy(&received[..received.len().min(40)]);
    let line = beginning.lines().next().unwrap_or_default();
    Failure { kind: FailureKind::NotTls, detail: format!("the answer is not TLS, it begins with {line:?}") }
}

/// Whether the server sent its certificate, or requested the client's, where Finished was due.
fn begins_full_handshake(error: &Error) -> bool {
    match error {
        Error::InappropriateHandshakeMessage { got_type, .. } => {
            matches!(got_type, HandshakeType::Certificate | HandshakeType::CertificateRequest)
        }
        // TLS 1.2 expects ChangeCipherSpec, and the library does not report which message came instead.
        Error::InappropriateMessage { expect_types, got_type } => {
            *got_type == ContentType::Handshake && expect_types[..] == [ContentType::ChangeCipherSpec]
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_in_place_of_finished_begins_a_full_handshake() {
        let got = |expected, got_type| {
            begins_full_handshake(&Error::InappropriateHandshakeMessage {
                expect_types: vec![expected],
                got_type,
            })
        };
        assert!(got(HandshakeType::Finished, HandshakeType::Certificate));
        assert!(got(HandshakeType::Finished, HandshakeType::CertificateRequest));
        assert!(got(HandshakeType::NewSessionTicket, HandshakeType::Certificate));
        assert!(!got(HandshakeType::Finished, HandshakeType::KeyUpdate));
    }
}
