//! What an authority has signed: certificates, lists of revoked ones and answers about them are in the same frame (RFC 5280,
//! sections 4.1 and 5.1; RFC 6960, section 4.2.1).

use x509_parser::asn1_rs::{Any, BitString, FromDer};

use crate::chain_limits::library_algorithms;

pub(crate) struct Signed {
    /// With its own header.
    pub(crate) content: Vec<u8>,
    algorithm: Vec<u8>,
    signature: Vec<u8>,
}

impl Signed {
    /// Reads SEQUENCE { content, AlgorithmIdentifier, BIT STRING }; returns also what stands in it behind the signature.
    pub(crate) fn read(der: &[u8]) -> Option<(Self, &[u8])> {
        let (_, frame) = Any::from_der(der).ok()?;
        let (behind, _) = Any::from_der(frame.data).ok()?;
        let content = frame.data.get(..frame.data.len() - behind.len())?;
        let (behind, algorithm) = Any::from_der(behind).ok()?;
        let (behind, signature) = BitString::from_der(behind).ok()?;
        let signed = Self {
            content: content.to_vec(),
            algorithm: algorithm.data.to_vec(),
            signature: signature.as_ref().to_vec(),
        };
        Some((signed, behind))
    }

    /// Whether a key's owner signed it; `key` is SubjectPublicKeyInfo without its outermost header.
    pub(crate) fn is_by(&self, key: &[u8]) -> bool {
        let parts = Any::from_der(key).ok().and_then(|(rest, algorithm)| {
            let (_, bits) = BitString::from_der(rest).ok()?;
            Some((algorithm.data.to_vec(), bits.as_ref().to_vec()))
        });
        let Some((key_algorithm, bits)) = parts else { return false };
        let fitting = library_algorithms().all.iter().filter(|known| {
            known.signature_alg_id().as_ref() == self.algorithm
                && known.public_key_alg_id().as_ref() == key_algorithm
        });
        fitting.into_iter().any(|known| known.verify_signature(&bits, &self.content, &self.signature).is_ok())
    }
}
