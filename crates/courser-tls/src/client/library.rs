//! A connection as rustls makes it.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::ConnectionState;
use rustls::{CommonState, ContentType, Error, HandshakeKind, HandshakeType, ProtocolVersion};

use super::config::LibraryTerms;
use super::hello::{self, PRE_SHARED_KEY, SESSION_TICKET};
use super::name::ServerName;
use super::sessions::{self, CallContext, ClientSessions, Taken};
use super::spec::Resume;
use super::{ClientFacts, Offered};
use crate::failure::{Failure, FailureKind};
use crate::records::{self, End, Progress, State};

/// Bytes before a record's content (RFC 8446, section 5.1).
const HEADER: usize = 5;

/// How a record begins that holds EndOfEarlyData (RFC 8446, section 4.5): an empty handshake message, its content type
/// and the tag. No other encrypted message of a client is as short.
const END_OF_EARLY_DATA: [u8; HEADER] = [23, 3, 3, 0, 4 + 1 + 16];

/// One connection.
pub(super) struct Connection {
    tls: UnbufferedClientConnection,
    errand: Option<Box<CallContext>>,
    /// The ClientHello, until the first call takes it.
    hello: Vec<u8>,
    offered: Option<Offered>,
    early: EarlyData,
    /// Whether anything of the server has been processed.
    has_listened: bool,
    retried: bool,
    /// How it failed. The library may not be asked again then: it would raise its alert twice.
    failed: Option<Box<Failure>>,
}

/// How early data stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyData {
    /// Not announced.
    None,
    /// Announced, and the server has not answered; so many bytes may still be sent.
    Open(usize),
    /// Taken.
    Accepted,
    /// Thrown away by the server.
    Rejected,
}

impl Connection {
    pub(super) fn new(
        terms: &LibraryTerms,
        name: &ServerName,
        purse: ClientSessions,
    ) -> Result<Self, Failure> {
        let mut connection = Self::begin(terms, name, CallContext::new(terms, purse))?;
        if connection.is_other_than_asked() {
            let mut purse = connection.into_purse();
            purse.forget_session();
            connection = Self::begin(terms, name, CallContext::new(terms, purse))?;
        }
        Ok(connection)
    }

    /// Writes the ClientHello, and stops where early data can follow.
    fn begin(terms: &LibraryTerms, name: &ServerName, errand: CallContext) -> Result<Self, Failure> {
        let mut errand = Some(Box::new(errand));
        let (config, server) = (Arc::clone(&terms.config), name.0.clone());
        let mut tls = sessions::enter(&mut errand, || UnbufferedClientConnection::new(config, server))?;
        let (hello, is_early_data_open) = write_hello(&mut tls)?;
        let taken = errand.as_ref().and_then(|errand| errand.taken);
        let early = match taken {
            Some(Taken::Ticket { early_data }) if is_early_data_open => EarlyData::Open(early_data),
            _ => EarlyData::None,
        };
        Ok(Self {
            offered: taken.and_then(|taken| offered(taken, &hello, terms.resume)),
            tls,
            errand,
            hello,
            early,
            has_listened: false,
            retried: false,
            failed: None,
        })
    }

    /// Where tickets were asked for, a session without one is not resumed by its ID instead.
    fn is_other_than_asked(&self) -> bool {
        let taken = self.errand.as_ref().and_then(|errand| errand.taken);
        taken == Some(Taken::Session) && self.offered.is_none()
    }

    pub(super) fn process(
        &mut self,
        received: &mut [u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        self.check_not_failed()?;
        outgoing.append(&mut self.hello);
        if !self.has_listened {
            if received.is_empty() || !is_tls(received).map_err(|failure| self.fail(failure))? {
                return Ok(Progress { consumed: 0, state: State::Handshaking });
            }
            self.has_listened = true;
        }
        let Self { tls, errand, .. } = self;
        let before = outgoing.len();
        let progress = sessions::enter(errand, || records::drive(tls, received, plaintext, outgoing));
        self.note(&outgoing[before..]);
        progress.map_err(|error| {
            let failure = self.failure(error);
            self.fail(failure)
        })
    }

    /// Notes what the library does not tell afterwards, from what it does: here are the records that it sends.
    fn note(&mut self, sent: &[u8]) {
        self.retried |= self.tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
        if matches!(self.early, EarlyData::Open(_)) && !sent.is_empty() {
            let is_taken = sent.starts_with(&END_OF_EARLY_DATA);
            self.early = if is_taken { EarlyData::Accepted } else { EarlyData::Rejected };
        }
    }

    /// A failure of the library. In a resumption the server has nothing to say between its hello and its Finished.
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

    pub(super) fn send(
        &mut self,
        plaintext: &[u8],
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.check_open()?;
        Ok(records::send(&mut self.tls, plaintext, received, outgoing)?)
    }

    pub(super) fn send_close_notify(
        &mut self,
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.check_open()?;
        Ok(records::send_close_notify(&mut self.tls, received, outgoing)?)
    }

    pub(super) fn send_early(&mut self, plaintext: &[u8], outgoing: &mut Vec<u8>) -> Option<usize> {
        let EarlyData::Open(left) = self.early else { return None };
        if self.has_listened {
            return None;
        }
        outgoing.append(&mut self.hello);
        let taken = &plaintext[..plaintext.len().min(left)];
        let ConnectionState::TransmitTlsData(mut transmit) = self.tls.step(&mut []).state.ok()? else {
            return None;
        };
        let mut early = transmit.may_encrypt_early_data()?;
        records::append(outgoing, records::room(taken), |room| early.encrypt(taken, room)).ok()?;
        self.early = EarlyData::Open(left - taken.len());
        Some(taken.len())
    }

    pub(super) fn facts(&self) -> Option<ClientFacts> {
        if self.tls.is_handshaking() {
            return None;
        }
        let (version, suite) = (self.tls.protocol_version()?, self.tls.negotiated_cipher_suite()?);
        let resumed = self.is_resumed();
        let group = self.tls.negotiated_key_exchange_group().map(|group| u16::from(group.name()));
        Some(ClientFacts {
            version: u16::from(version),
            suite: u16::from(suite.suite()),
            group: group.filter(|_| !resumed || version == ProtocolVersion::TLSv1_3),
            scheme: self.errand.as_ref().and_then(|errand| errand.scheme),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            offered: self.offered,
            resumed,
            retried: self.retried,
            early_data: match self.early {
                EarlyData::None => None,
                EarlyData::Accepted => Some(true),
                EarlyData::Open(_) | EarlyData::Rejected => Some(false),
            },
        })
    }

    fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(super) fn tickets_received(&self) -> u32 {
        self.tls.tls13_tickets_received()
    }

    pub(super) fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let common: &CommonState = self.tls.common();
        let chain = common.peer_certificates().unwrap_or_default();
        chain.iter().map(|certificate| certificate.to_vec()).collect()
    }

    pub(super) fn into_purse(self) -> ClientSessions {
        self.errand.map(|errand| errand.purse).unwrap_or_default()
    }
}

/// The library's first records, and whether early data may follow. The library then waits for word that they have been
/// transmitted; [`records::drive`] gives it.
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

/// With what a session that was taken from the purse is offered, as the ClientHello says.
fn offered(taken: Taken, hello: &[u8], resume: Resume) -> Option<Offered> {
    match taken {
        Taken::Ticket { .. } => hello::extension(hello, PRE_SHARED_KEY).map(|_| Offered::Psk),
        Taken::Session if resume == Resume::SessionId => Some(Offered::SessionId),
        Taken::Session => {
            let ticket = hello::extension(hello, SESSION_TICKET)?;
            (!ticket.is_empty()).then_some(Offered::Ticket)
        }
    }
}

/// Whether the server's first bytes are those of a record; not yet if there are too few.
fn is_tls(received: &[u8]) -> Result<bool, Failure> {
    let is_record = matches!(received, [20..=24] | [20..=24, 3, ..]);
    if is_record {
        return Ok(received.len() >= HEADER);
    }
    let beginning = String::from_utf8_lossy(&received[..received.len().min(40)]);
    let line = beginning.lines().next().unwrap_or_default();
    let detail = format!("the answer is not TLS, it begins with {line:?}");
    Err(Failure { kind: FailureKind::NotTls, detail })
}

/// Whether the server was found to send its certificate, or to ask for the client's, where Finished was due.
fn begins_full_handshake(error: &Error) -> bool {
    match error {
        Error::InappropriateHandshakeMessage { got_type, .. } => {
            matches!(got_type, HandshakeType::Certificate | HandshakeType::CertificateRequest)
        }
        // TLS 1.2 expects ChangeCipherSpec, and the library does not say which message came instead.
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
