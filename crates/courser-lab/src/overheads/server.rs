//! The server's end: the terminator's own, or the system's OpenSSL.

use courser_tls::{Failure, ServerConnection};
#[cfg(feature = "openssl")]
use courser_tls_client::OpensslServer;

pub(super) enum Server {
    Own(Box<ServerConnection>),
    #[cfg(feature = "openssl")]
    Openssl(OpensslServer),
}

impl Server {
    /// Takes what it can from the front of `incoming`.
    pub(super) fn process(
        &mut self,
        incoming: &mut Vec<u8>,
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match self {
            Self::Own(server) => {
                let progress = server.process(incoming, plaintext, outgoing)?;
                incoming.drain(..progress.consumed);
                Ok(())
            }
            #[cfg(feature = "openssl")]
            Self::Openssl(server) => {
                let processed = server.process(incoming, plaintext, outgoing);
                incoming.clear();
                processed
            }
        }
    }

    pub(super) fn send(
        &mut self,
        plaintext: &[u8],
        incoming: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match self {
            Self::Own(server) => server.send(plaintext, incoming, outgoing),
            #[cfg(feature = "openssl")]
            Self::Openssl(server) => server.send(plaintext, outgoing),
        }
    }

    /// Whether its client resumed; `None` before the end of the handshake.
    pub(super) fn resumed(&mut self) -> Option<bool> {
        match self {
            Self::Own(server) => server.finish_handshake().map(|facts| facts.resumed),
            #[cfg(feature = "openssl")]
            Self::Openssl(server) => server.resumed(),
        }
    }
}
