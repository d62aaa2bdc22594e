//! What is the same for every sample: certificates, sizes, cores; and the first exchange, which proves that a
//! terminator does what the case says.

use std::net::SocketAddr;

use courser_testkit::{
    Folder, Issued, KeyType, Leaf, TestCa,
    client::{Client, Connection, HandshakeInfo, Resume, Version},
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
            version: case.version(),
            key: case.key(),
            certificate: self.issued(case).write_combined(&self.folder, "site"),
            resume: case.resume(),
            backend,
            backlog: BACKLOG,
            core: Some(self.cores.server),
        }
    }

    /// Makes the case's connections with every check, chain and signature included: one full, and if the case resumes,
    /// a resumed one.
    pub(crate) fn verify(&self, case: Case, address: SocketAddr) -> Result<(), String> {
        let client = Client::verifying(address, case.version(), case.key(), case.resume(), self.ca.root());
        let full = self.exchange(&client)?;
        expect(&full.handshake_info(), &self.expected(case, false))?;
        if case.version() == Version::Tls13 && full.tickets() != TICKETS {
            return Err(format!("sent {} tickets, the others send {TICKETS}", full.tickets()));
        }
        if case.resume() != Resume::Never {
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
        let (version, suite) = match (case.version(), case.key()) {
            (Version::Tls13, _) => (ProtocolVersion::TLSv1_3, CipherSuite::TLS13_AES_128_GCM_SHA256),
            (Version::Tls12, KeyType::Rsa2048) => {
                (ProtocolVersion::TLSv1_2, CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)
            }
            (Version::Tls12, _) => {
                (ProtocolVersion::TLSv1_2, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
            }
        };
        HandshakeInfo {
            version: Some(version),
            suite: Some(suite),
            // A resumed TLS 1.2 handshake has no key exchange.
            group: (!resumed).then_some(NamedGroup::X25519),
            resumed,
            retried: false,
            certificate: Some(self.issued(case).certificate.clone()),
        }
    }

    fn issued(&self, case: Case) -> &Issued {
        if case.key() == KeyType::Rsa2048 { &self.rsa } else { &self.ecdsa }
    }
}

fn expect(agreed: &HandshakeInfo, expected: &HandshakeInfo) -> Result<(), String> {
    if agreed == expected { Ok(()) } else { Err(format!("agreed on {agreed:?} instead of {expected:?}")) }
}
