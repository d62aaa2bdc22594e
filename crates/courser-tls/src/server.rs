//! The server's end of one TLS connection: bytes in, bytes and plaintext out; no socket.

use rustls::server::UnbufferedServerConnection;
use rustls::{Error, HandshakeKind, ProtocolVersion};

use courser_session::{ResumptionFailure, SharedSession};

use crate::client_auth::{self, ClientCertificate};
use crate::failure::{self, Failure, FailureKind, UNEXPECTED_MESSAGE};
use crate::names;
use crate::plan::{self, HandshakePlan, KeptSession};
use crate::random;
use crate::record_cipher::{Alert, Sealer};
use crate::records::{self, MAX_HELD, Progress};
use crate::server_config::{ServerTlsConfig, SuiteOrder};

/// One connection.
pub struct ServerConnection {
    tls: UnbufferedServerConnection,
    plan: Option<Box<HandshakePlan>>,
    /// Seals its records; none before the first key.
    sealer: Option<Sealer>,
    /// How it failed. The library may not be asked again then: it would raise its alert twice.
    failed: Option<Box<Failure>>,
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        if std::thread::panicking() {
            Sealer::clear();
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
    /// Why an offered session was not.
    pub miss: Option<ResumptionFailure>,
    /// The session that was made or resumed, if it is kept by its ID.
    pub session: Option<KeptSession>,
    /// The session that was made and is kept by its ID. It holds secrets: take it out, and let it go soon.
    pub made: Option<SharedSession>,
    /// The client's certificate, verified now or when the session was made.
    pub client: Option<ClientCertificate>,
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
    /// A connection on `terms` that uses `group` for the key exchange, with what `plan` says.
    pub fn new(
        terms: &ServerTlsConfig,
        group: u16,
        order: SuiteOrder,
        plan: HandshakePlan,
    ) -> Result<Self, Failure> {
        let tls = UnbufferedServerConnection::new(terms.config(group, order))?;
        Ok(Self { tls, plan: Some(Box::new(plan)), sealer: None, failed: None })
    }

    /// Processes the records in `incoming` as far as they are complete. Plaintext is appended to `plaintext`, records
    /// to send to `outgoing`. On failure `outgoing` ends with the alert that says so to the client, and every further call
    /// fails alike.
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
        let Self { tls, plan, .. } = self;
        let progress = if plan.is_some() {
            random::begin_step();
            plan::enter(plan, || records::drive(tls, incoming, plaintext, outgoing))
        } else {
            records::drive(tls, incoming, plaintext, outgoing)
        };
        self.note_sealer();
        self.forget_refused_session();
        match progress {
            Ok(progress) if incoming.len() - progress.consumed > MAX_HELD => {
                let detail = "a handshake message that does not end within four records".to_owned();
                Err(self.fail(Failure { kind: FailureKind::Protocol, detail }, UNEXPECTED_MESSAGE, outgoing))
            }
            Ok(progress) => Ok(progress),
            Err(error) => {
                let alert = failure::alert_for(&error);
                Err(self.fail(error.into(), alert, outgoing))
            }
        }
    }

    /// Notes the failure, and sees to it that `outgoing` ends with an alert: the library's own, or this one.
    fn fail(&mut self, failure: Failure, alert: u8, outgoing: &mut Vec<u8>) -> Failure {
        match failure.kind {
            FailureKind::NoCertificate => client_auth::correct_alert(outgoing),
            // Who has ended the connection with an alert hears none (RFC 8446, section 6.2).
            FailureKind::AlertReceived => {}
            _ => match self.sealer.as_ref().map_or(Alert::InTheClear, |sealer| sealer.seal_alert(alert)) {
                Alert::Sealed(record) => outgoing.extend(record),
                Alert::InTheClear => records::end_with_alert(outgoing, alert),
                Alert::Superfluous => {}
            },
        }
        self.failed = Some(Box::new(failure.clone()));
        failure
    }

    fn note_sealer(&mut self) {
        if let Some(latest) = Sealer::take_latest() {
            if self.sealer.as_ref().is_some_and(Sealer::has_alerted) {
                latest.note_alerted();
            }
            self.sealer = Some(latest);
        }
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
            miss: plan.miss.filter(|_| !resumed),
            session: plan.session,
            made: plan.made,
            client: self
                .tls
                .peer_certificates()
                .and_then(<[_]>::first)
                .map(|leaf| ClientCertificate::read(leaf)),
        })
    }

    /// Encrypts `plaintext` into records at the end of `outgoing`. `received` is what [`Self::process`] has left: the
    /// library keeps positions in it.
    pub fn send(
        &mut self,
        plaintext: &[u8],
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.check_not_failed()?;
        let sent = records::send(&mut self.tls, plaintext, received, outgoing);
        self.sent(sent, outgoing)
    }

    /// Appends close_notify to `outgoing`; more than once does nothing. `received` as for [`Self::send`].
    pub fn send_close_notify(&mut self, received: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        self.check_not_failed()?;
        let sent = records::send_close_notify(&mut self.tls, received, outgoing);
        self.sent(sent, outgoing)
    }

    fn sent(&mut self, sent: Result<(), Error>, outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        self.note_sealer();
        sent.map_err(|error| {
            let alert = failure::alert_for(&error);
            self.fail(error.into(), alert, outgoing)
        })
    }

    /// Whether TLS 1.3 is being spoken.
    pub fn is_tls13(&self) -> bool {
        self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    fn check_not_failed(&self) -> Result<(), Failure> {
        self.failed.as_deref().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// A session that could be read but was not resumed (another suite or name) lends its age to nobody.
    fn forget_refused_session(&mut self) {
        let resumed = self.resumed();
        if let Some(plan) = self.plan.as_mut().filter(|plan| !resumed && plan.lifespan.is_some()) {
            plan.lifespan = None;
            plan.session = None;
            plan.miss = Some(ResumptionFailure::OtherParameters);
        }
    }
}
