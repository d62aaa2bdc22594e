//! What a client checks of a server's certificate: everything, the signature alone, or nothing but for a sample.
//!
//! One verifier does all of it, because the library resumes a session only under the very verifier that it was made
//! under. Whether it verifies is in the [`CallContext`](super::sessions::CallContext) of the connection.

use std::sync::Arc;

use courser_tls::TlsConfigError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, PeerMisbehaved, RootCertStore, SignatureScheme};

use crate::certificate::CertificateInfo;
use crate::sessions;
use crate::spec::{Engine, Trust};

/// Verifies if the current context requires it, and records the scheme of the server's signature there.
#[derive(Debug)]
pub(crate) struct Verifier {
    offered: Vec<SignatureScheme>,
    algorithms: WebPkiSupportedAlgorithms,
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Whether a key that the library cannot verify with is passed over.
    passes_small_keys: bool,
}

impl Verifier {
    /// For these signature schemes, code points; all that the library can verify if there are none.
    pub(crate) fn new(
        engine: Engine,
        schemes: &[u16],
        trust: &Trust,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TlsConfigError> {
        let algorithms = provider.signature_verification_algorithms;
        let known = algorithms.supported_schemes();
        let scheme = |&code: &u16| {
            let found = known.iter().find(|scheme| u16::from(**scheme) == code);
            found.copied().ok_or(TlsConfigError::UnknownScheme(code))
        };
        let offered = schemes.iter().map(scheme).collect::<Result<Vec<_>, _>>()?;
        let chain = match trust {
            Trust::Any => None,
            Trust::Roots(roots) => Some(webpki(roots, provider)?),
        };
        Ok(Self {
            offered: if offered.is_empty() { known } else { offered },
            algorithms,
            chain,
            passes_small_keys: engine == Engine::Lean,
        })
    }

    /// Whether the library verifies with this certificate's key: not with RSA below 2048 bits, which published experiments
    /// used. The lean engine passes those over.
    fn can_verify(&self, leaf: &CertificateDer<'_>) -> bool {
        let key = |leaf| CertificateInfo::read(leaf).map(|info| info.key);
        let bits = |key: String| key.strip_prefix("RSA")?.parse::<u32>().ok();
        !self.passes_small_keys || key(leaf).and_then(bits).is_none_or(|bits| bits >= 2048)
    }

    /// Records the scheme, which has to be one of those offered: the library does not check. Returns whether to verify.
    fn record_scheme(&self, scheme: SignatureScheme) -> Result<bool, Error> {
        if !self.offered.contains(&scheme) {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        }
        let noted = sessions::with_current(|context| {
            context.scheme = Some(u16::from(scheme));
            context.verify
        });
        Ok(noted.unwrap_or(true))
    }
}

fn webpki(
    roots: &[Vec<u8>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TlsConfigError> {
    let bad = |error: String| TlsConfigError::BadRoot(error);
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(CertificateDer::from(root.clone())).map_err(|error| bad(error.to_string()))?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .map_err(|error| bad(error.to_string()))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.chain {
            Some(chain) if sessions::with_current(|context| context.verify).unwrap_or(true) => {
                chain.verify_server_cert(leaf, intermediates, name, ocsp_response, now)
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.record_scheme(signed.scheme)? && self.can_verify(leaf) {
            return verify_tls12_signature(message, leaf, signed, &self.algorithms);
        }
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.record_scheme(signed.scheme)? && self.can_verify(leaf) {
            return verify_tls13_signature(message, leaf, signed, &self.algorithms);
        }
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.offered.clone()
    }
}
