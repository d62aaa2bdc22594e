//! What is the same for every sample: certificates, sizes, cores; and the first exchange, which proves that a
//! terminator does what the case says.

use std::net::SocketAddr;

use courser_testkit::{
    Folder, Issued, KeyType, Leaf, TestCa,
    client::{Client, Connection, HandshakeInfo, Profile, Resume, Terms, Version},
    competitor::Setting,
};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion};

use crate::{
    Cores,
    case::{ANSWER, Case},
    options::{Options, Scale},
};

/// Length of every listen queue; the kernel caps it at `net.core.somaxconn`.
const BACKLOG: u32 = 4096;

/// TLS 1.3 tickets after a full handshake: what OpenSSL's servers send by default.
const TICKETS: u32 = 2;

pub(crate) struct Stage {
    pub(crate) scale: Scale,
    pub(crate) cores: Cores,
    ca: TestCa,
    ecdsa: Issued,
    rsa: Issued,
    folder: Folder,
}

impl Stage {
    pub(crate) fn new(options: &Options, cores: Cores) -> Self {
        let ca = TestCa::new();
        Self {
            scale: *options.scale(),
            cores,
            ecdsa: ca.issue(&Leaf::new(KeyType::EcdsaP256)),
            rsa: ca.issue(&Leaf::new(KeyType::Rsa2048)),
            ca,
            folder: Folder::new(),
        }
    }

    /// The settings of every terminator for `case`.
    pub(crate) fn setting(&self, case: Case, backend: SocketAddr) -> Setting {
        Setting {
            terms: case.terms(),
            certificate: self.issued(case).write_combined(&self.folder, "site"),
            backend,
            backlog: BACKLOG,
            core: Some(self.cores.server),
        }
    }

    /// Makes the case's connections with every check, chain and signature included: one full, and if the case resumes,
    /// a resumed one.
    pub(crate) fn verify(&self, case: Case, address: SocketAddr) -> Result<(), String> {
        let client = Client::verifying(address, case.terms(), self.ca.root());
        let full = self.exchange(&client)?;
        expect(&full.handshake_info(), &self.expected(case, false))?;
        if case.terms().version == Version::Tls13 && full.tickets() != TICKETS {
            return Err(format!("sent {} tickets, the others send {TICKETS}", full.tickets()));
        }
        if case.terms().resume != Resume::Never {
            expect(&self.exchange(&client)?.handshake_info(), &self.expected(case, true))?;
        }
        Ok(())
    }

    fn exchange(&self, client: &Client) -> Result<Connection, String> {
        let mut connection = client.connect().map_err(|error| format!("first handshake: {error}"))?;
        connection.get(ANSWER, true).map_err(|error| format!("first request: {error}"))?;
        Ok(connection)
    }

    fn expected(&self, case: Case, resumed: bool) -> HandshakeInfo {
        let Terms { version, key, profile, .. } = case.terms();
        let (version, suite) = match (version, key, profile) {
            (Version::Tls13, _, Profile::Sha384) => {
                (ProtocolVersion::TLSv1_3, CipherSuite::TLS13_AES_256_GCM_SHA384)
            }
            (Version::Tls13, _, _) => (ProtocolVersion::TLSv1_3, CipherSuite::TLS13_AES_128_GCM_SHA256),
            (Version::Tls12, KeyType::Rsa2048, _) => {
                (ProtocolVersion::TLSv1_2, CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)
            }
            (Version::Tls12, _, _) => {
                (ProtocolVersion::TLSv1_2, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
            }
        };
        let group =
            if profile == Profile::PostQuantum { NamedGroup::X25519MLKEM768 } else { NamedGroup::X25519 };
        HandshakeInfo {
            version: Some(version),
            suite: Some(suite),
            // A resumed TLS 1.2 handshake has no key exchange.
            group: (!resumed || version == ProtocolVersion::TLSv1_3).then_some(group),
            resumed,
            retried: false,
            certificate: Some(self.issued(case).certificate.clone()),
        }
    }

    fn issued(&self, case: Case) -> &Issued {
        if case.terms().key == KeyType::Rsa2048 { &self.rsa } else { &self.ecdsa }
    }
}

fn expect(agreed: &HandshakeInfo, expected: &HandshakeInfo) -> Result<(), String> {
    if agreed == expected { Ok(()) } else { Err(format!("agreed on {agreed:?} instead of {expected:?}")) }
}
