//! The server's end of one TLS connection: bytes in, bytes and plaintext out; no socket.

use std::sync::Arc;

use rustls::server::UnbufferedServerConnection;
use rustls::{Error, HandshakeKind, ProtocolVersion};

use courser_session::{ResumptionFailure, SharedSession};

use crate::ciphers::Ciphers;
use crate::client_auth::{self, ClientCertificate, ClientVerifier};
use crate::failure::{self, Failure, FailureKind, UNEXPECTED_MESSAGE};
use crate::names;
use crate::plan::{self, CachedSession, HandshakePlan};
use crate::random;
use crate::record_cipher::{Alert, RecordRoom, Sealed};
use crate::records::{self, MAX_HELD, Progress, State};
use crate::server_config::{ServerTlsConfig, SuiteOrder};

/// One connection.
pub struct ServerConnection {
    tls: UnbufferedServerConnection,
    plan: Option<Box<HandshakePlan>>,
    /// Looks up the client's certificates once, where a session was resumed.
    client_sessions: Option<Arc<ClientVerifier>>,
    pub(crate) ciphers: Ciphers,
    /// Set once it has failed. The library may not be called again then: it would send its alert twice.
    failure: Option<Box<Failure>>,
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        if std::thread::panicking() {
            Ciphers::clear();
        }
    }
}

/// What a finished handshake agreed on.
#[derive(Clone, Debug)]
pub struct HandshakeInfo {
    /// Protocol version, code point.
    pub version: u16,
    /// Cipher suite, code point.
    pub suite: u16,
    /// Key exchange group, code point; none for a TLS 1.2 resumption.
    pub group: Option<u16>,
    /// Signature scheme, code point; none for a resumption.
    pub scheme: Option<u16>,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// Why an offered session was not resumed.
    pub resumption_failure: Option<ResumptionFailure>,
    /// The session that was created or resumed, if the cache holds it.
    pub session: Option<CachedSession>,
    /// The session that was created and cached. It holds secrets: take it out, and drop it soon.
    pub new_session: Option<SharedSession>,
    /// The client's certificate, verified in this handshake or in the one that created the session.
    pub client: Option<Box<ClientCertificate>>,
}

impl HandshakeInfo {
    /// Name of the version.
    pub fn version_name(&self) -> &'static str {
        names::version(self.version).unwrap_or("unknown")
    }

    /// Name of the suite.
    pub fn suite_name(&self) -> &'static str {
        names::suite(self.suite).unwrap_or("unknown")
    }
}

impl ServerConnection {
    /// A connection under `config` that uses `group` for the key exchange and what `plan` contains.
    pub fn new(
        config: &ServerTlsConfig,
        group: u16,
        order: SuiteOrder,
        plan: HandshakePlan,
    ) -> Result<Self, Failure> {
        let tls = UnbufferedServerConnection::new(config.config(group, order))?;
        let client_sessions = config.client_sessions.clone();
        Ok(Self {
            tls,
            plan: Some(Box::new(plan)),
            client_sessions,
            ciphers: Ciphers::default(),
            failure: None,
        })
    }

    /// Processes the records in `incoming` as far as they are complete. Plaintext is appended to `plaintext`, records
    /// to send to `outgoing`. On failure `outgoing` ends with the alert for the client, and every further call fails
    /// alike.
    ///
    /// At most [`MAX_HELD`] bytes are left unconsumed: a client that makes us wait for the end of a message for longer
    /// has failed.
    pub fn process(
        &mut self,
        incoming: &mut [u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        self.check_not_failed()?;
        let (before, mut before_library) = (plaintext.len(), plaintext.len());
        let Self { tls, plan, ciphers, .. } = self;
        let progress = if plan.is_some() {
            random::begin_step();
            plan::enter(plan, || records::process(tls, incoming, plaintext, outgoing))
        } else {
            let (consumed, is_all) = ciphers.open(incoming, plaintext);
            if is_all {
                return Ok(Progress { consumed, state: State::Open });
            }
            before_library = plaintext.len();
            let progress = records::process(tls, &mut incoming[consumed..], plaintext, outgoing);
            progress.map(|progress| Progress { consumed: consumed + progress.consumed, ..progress })
        };
        self.ciphers.update();
        if let Ok(progress) = &progress {
            let got_data = plaintext.len() > before_library;
            self.ciphers.library_has_read(&incoming[progress.consumed..], progress.state, got_data);
        }
        self.discard_refused_session();
        match progress {
            Ok(progress) if incoming.len() - progress.consumed > MAX_HELD => {
                let detail = "a handshake message that does not end within four records".to_owned();
                Err(self.fail(Failure { kind: FailureKind::Protocol, detail }, UNEXPECTED_MESSAGE, outgoing))
            }
            Ok(progress) => match self.check_session(progress.state) {
                Ok(()) => Ok(progress),
                Err(error) => {
                    // Nothing of a client without a certificate that holds is passed on.
                    plaintext.truncate(before);
                    let alert = failure::alert_for(&error);
                    Err(self.fail(error.into(), alert, outgoing))
                }
            },
            Err(error) => {
                let alert = failure::alert_for(&error);
                Err(self.fail(error.into(), alert, outgoing))
            }
        }
    }

    /// A session must not outlive the revocation of what it rests on: after its resumption its certificates are looked up.
    fn check_session(&mut self, state: State) -> Result<(), Error> {
        if self.client_sessions.is_none() || state == State::Handshaking {
            return Ok(());
        }
        match self.client_sessions.take().zip(self.tls.peer_certificates()) {
            Some((sessions, chain)) if self.resumed() => sessions.check_session(chain),
            _ => Ok(()),
        }
    }

    /// Records the failure, and ends `outgoing` with an alert: the library's own, or this one.
    fn fail(&mut self, failure: Failure, alert: u8, outgoing: &mut Vec<u8>) -> Failure {
        match failure.kind {
            FailureKind::NoCertificate => client_auth::correct_alert(outgoing),
            // A peer that ended the connection with an alert gets none (RFC 8446, section 6.2).
            FailureKind::AlertReceived => {}
            _ => match self.ciphers.seal_alert(alert) {
                Alert::Sealed(record) => outgoing.extend(record),
                Alert::InTheClear => records::append_alert(outgoing, alert),
                Alert::AlreadySent => {}
            },
        }
        self.failure = Some(Box::new(failure.clone()));
        failure
    }

    /// What the handshake agreed on, once it is done: the client's Finished is verified. The plan ends here.
    pub fn finish_handshake(&mut self) -> Option<HandshakeInfo> {
        if self.tls.is_handshaking() {
            return None;
        }
        let (version, suite) = (self.tls.protocol_version()?, self.tls.negotiated_cipher_suite()?);
        let plan = self.plan.take()?;
        let resumed = self.resumed();
        let group = self.tls.negotiated_key_exchange_group().map(|group| u16::from(group.name()));
        Some(HandshakeInfo {
            version: u16::from(version),
            suite: u16::from(suite.suite()),
            group: group.filter(|_| !resumed || version == ProtocolVersion::TLSv1_3),
            scheme: plan.scheme.filter(|_| !resumed),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            resumed,
            resumption_failure: plan.resumption_failure.filter(|_| !resumed),
            session: plan.session,
            new_session: plan.new_session,
            client: self
                .tls
                .peer_certificates()
                .and_then(<[_]>::first)
                .map(|leaf| Box::new(ClientCertificate::read(leaf))),
        })
    }

    /// Encrypts `plaintext` into records at the end of `outgoing`. `received` is what [`Self::process`] has left: the
    /// library holds positions in it.
    pub fn send(
        &mut self,
        plaintext: &[u8],
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if plaintext.is_empty() {
            return self.check_not_failed();
        }
        let start = outgoing.len();
        let RecordRoom { before, after } = self.record_room();
        outgoing
            .reserve(plaintext.len() + plaintext.len().div_ceil(records::MAX_PLAINTEXT) * (before + after));
        for part in plaintext.chunks(records::MAX_PLAINTEXT) {
            let between = if outgoing.len() == start { 0 } else { after };
            outgoing.resize(outgoing.len() + between + before, 0);
            outgoing.extend_from_slice(part);
        }
        self.seal_records(start, records::MAX_PLAINTEXT, received, outgoing)
    }

    /// What a record has around its plaintext, for [`Self::seal_records`]. It changes with the keys.
    pub fn record_room(&self) -> RecordRoom {
        self.ciphers.room()
    }

    /// Encrypts what `outgoing` has from `start` on, where it is: plaintext of records with [`Self::record_room`] around
    /// each, `length` bytes in all but the last, which may have less and has nothing behind it yet. `received` as for
    /// [`Self::send`]. On failure nothing of the plaintext is left in `outgoing`.
    pub fn seal_records(
        &mut self,
        start: usize,
        length: usize,
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if let Err(failure) = self.check_not_failed() {
            outgoing.truncate(start);
            return Err(failure);
        }
        let sent = self.try_seal_records(start, length, received, outgoing);
        self.check_sent(sent, outgoing)
    }

    fn try_seal_records(
        &mut self,
        start: usize,
        length: usize,
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let RecordRoom { before, after } = self.record_room();
        outgoing.resize(outgoing.len() + after, 0);
        let record_len = before + length + after;
        let mut sealed = start;
        let not_sealed = outgoing[start..].chunks_mut(record_len).find_map(|record| {
            match self.ciphers.seal(record) {
                Ok(Sealed::All) => sealed += record.len(),
                not_sealed => return Some(not_sealed),
            }
            None
        });
        let Some(not_sealed) = not_sealed else { return Ok(()) };
        let plaintext_of = |record: &[u8]| record[before..record.len() - after].to_vec();
        let plaintext: Vec<u8> = outgoing[sealed..].chunks(record_len).flat_map(plaintext_of).collect();
        outgoing.truncate(sealed);
        if not_sealed? == Sealed::Exhausted {
            records::update_key(&mut self.tls, received, outgoing)?;
            self.ciphers.update();
        }
        records::send(&mut self.tls, &plaintext, received, outgoing)
    }

    /// Appends close_notify to `outgoing`; more than once does nothing. `received` as for [`Self::send`].
    pub fn send_close_notify(&mut self, received: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        self.check_not_failed()?;
        let sent = records::send_close_notify(&mut self.tls, received, outgoing);
        self.check_sent(sent, outgoing)
    }

    fn check_sent(&mut self, sent: Result<(), Error>, outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        self.ciphers.update();
        sent.map_err(|error| {
            let alert = failure::alert_for(&error);
            self.fail(error.into(), alert, outgoing)
        })
    }

    /// Whether TLS 1.3 was negotiated.
    pub fn is_tls13(&self) -> bool {
        self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    fn check_not_failed(&self) -> Result<(), Failure> {
        self.failure.as_deref().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// A session that could be opened but was not resumed (another suite or name): the new session gets its own lifespan.
    fn discard_refused_session(&mut self) {
        let resumed = self.resumed();
        if let Some(plan) = self.plan.as_mut().filter(|plan| !resumed && plan.lifespan.is_some()) {
            plan.lifespan = None;
            plan.session = None;
            plan.resumption_failure = Some(ResumptionFailure::OtherParameters);
        }
    }
}
