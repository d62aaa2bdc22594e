//! Intermediate certificates, which many chains have in common, in memory once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rustls::pki_types::CertificateDer;

static SHARED: Mutex<BTreeSet<&'static [u8]>> = Mutex::new(BTreeSet::new());

/// The library wants certificates that are its own or live for ever, so what is shared is never freed: no more than these,
/// some 1.5 MB. The authorities that browsers trust have issued about as many.
const MOST: usize = 1000;

/// Puts what is shared in place of a chain's copies, all but the leaf's.
pub(crate) fn share(chain: &mut [CertificateDer<'static>]) {
    for issuer in chain.iter_mut().skip(1) {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shared.get(issuer.as_ref()).copied();
        if let Some(known) = known {
            *issuer = known.into();
        } else if shared.len() < MOST {
            let first: &'static [u8] = Box::leak(issuer.to_vec().into_boxed_slice());
            shared.insert(first);
            *issuer = first.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_of_one_issuer_have_it_in_common_and_their_leaves_to_themselves() {
        let chain = || ["leaf", "issuer"].map(|name| CertificateDer::from(name.as_bytes().to_vec()));
        let [mut one, mut other] = [chain(), chain()];
        share(&mut one);
        share(&mut other);
        assert_eq!(one, chain());
        assert_eq!(one[1].as_ptr(), other[1].as_ptr());
        assert_ne!(one[0].as_ptr(), other[0].as_ptr());
    }
}
