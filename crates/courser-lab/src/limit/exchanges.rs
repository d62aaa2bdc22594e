//! What a server reads and writes for a connection, by the protocol and with as few calls as it allows: RFC 8446, section 2,
//! and RFC 5246, section 7.3. The bytes are those of today's messages; a record's header more or less is no matter here.

use super::Needs;

/// A ClientHello, of a client without a post-quantum share.
const HELLO: u64 = 250;

/// ServerHello, with what follows it of a resumed handshake.
const SERVER_HELLO: u64 = 220;

/// A certificate without a chain and a signature, of a key on a curve; RSA-2048 has some 500 bytes more.
const CERTIFICATE: u64 = 650;

/// ClientKeyExchange (TLS 1.2).
const KEY_EXCHANGE: u64 = 75;

/// ChangeCipherSpec and Finished.
const FINISHED: u64 = 60;

/// close_notify, or a ticket: what confirms a handshake in TLS 1.3.
const CONFIRMATION: u64 = 24;

/// A connection without TLS. Its reads and writes are what a terminator cannot do without.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Exchanges {
    /// Of the handshake, before anything is requested: bytes from the client, and bytes back at once.
    pub(crate) handshake: Vec<[u64; 2]>,
    /// After it: bytes from the client, with all that may stand before the request, and of the answer.
    pub(crate) request: Option<[u64; 2]>,
    /// Of the handshake with the backend, where it has TLS.
    pub(crate) backend: Option<[u64; 2]>,
}

impl Exchanges {
    /// Those of a full connection, or of a resumed one.
    pub(crate) fn of(needs: &Needs, is_full: bool) -> Self {
        let is_tls13 = needs.version == "1.3";
        let flight = SERVER_HELLO + if is_full { CERTIFICATE } else { 0 };
        let mut handshake = vec![[HELLO, flight]];
        // A client that has sent its Finished sends the request with it; a full handshake of TLS 1.2 has to wait.
        let waits = is_full && !is_tls13;
        if waits {
            handshake.push([KEY_EXCHANGE + FINISHED, FINISHED]);
        }
        let has_request = needs.bytes_in + needs.bytes_out > 0;
        let before = if waits { 0 } else { FINISHED };
        if !has_request && !waits {
            handshake.push([FINISHED, if is_tls13 { CONFIRMATION } else { 0 }]);
        }
        Self {
            handshake,
            request: has_request.then_some([before + needs.bytes_in, needs.bytes_out]),
            backend: (has_request && needs.reencrypted).then_some([HELLO, SERVER_HELLO]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::tests::needs;

    fn of(version: &str, is_full: bool, bytes: u64) -> Exchanges {
        let asked = Needs { version: version.into(), bytes_in: bytes, bytes_out: bytes, ..needs() };
        Exchanges::of(&asked, is_full)
    }

    #[test]
    fn tls_1_2_has_a_round_trip_more_unless_it_resumes() {
        let count = |version, is_full| of(version, is_full, 100).handshake.len();
        assert_eq!((count("1.3", true), count("1.3", false)), (1, 1));
        assert_eq!((count("1.2", true), count("1.2", false)), (2, 1));
    }

    #[test]
    fn a_request_comes_with_the_last_message_of_the_handshake() {
        assert_eq!(of("1.3", true, 100).request, Some([160, 100]));
        assert_eq!(of("1.2", true, 100).request, Some([100, 100]), "the client waits for Finished first");
        let bare = of("1.3", true, 0);
        assert_eq!((bare.request, bare.handshake.last()), (None, Some(&[60, 24])));
        assert_eq!(of("1.2", false, 0).handshake.last(), Some(&[60, 0]), "read, and not answered");
    }

    #[test]
    fn a_backend_with_tls_has_a_handshake_too() {
        let asked = Needs { bytes_out: 100, reencrypted: true, ..needs() };
        assert_eq!(Exchanges::of(&asked, true).backend, Some([HELLO, SERVER_HELLO]));
        assert_eq!(Exchanges::of(&Needs { bytes_out: 0, ..asked }, true).backend, None);
    }
}
