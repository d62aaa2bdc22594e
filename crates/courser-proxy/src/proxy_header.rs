//! The PROXY protocol header: who called, and what TLS agreed on.
//!
//! It leaves at once, together with whatever the client has said already, and never waits for the client: in some
//! protocols the server speaks first.

pub(crate) mod write;

use courser_telemetry::{Close, CloseReason};

use crate::backend::Connected;
use crate::buffers::Outbox;
use crate::client::{Client, EarlyClose};

/// A connection whose first bytes for the backend are ready.
pub(crate) struct HeaderSent {
    pub(crate) connected: Connected,
    pub(crate) to_backend: Outbox,
    /// How much of it is plaintext.
    pub(crate) plaintext_bytes: u64,
}

/// Puts the header in front of the plaintext.
pub(crate) fn send_proxy_header(mut connected: Connected) -> Result<HeaderSent, Box<EarlyClose>> {
    let secured = &mut connected.secured;
    let plaintext = std::mem::take(&mut secured.plaintext);
    let header = match connected.backend.tls {
        // It has left already, before the handshake with the backend.
        Some(_) => Ok(Vec::new()),
        None => write::header(&secured.client, &secured.forwarding),
    };
    let header = match header {
        Ok(header) => header,
        Err(unwritable) => {
            let close = Close::with(CloseReason::Internal, unwritable.to_string());
            return Err(connected.secured.close_with_notify(close));
        }
    };
    release(&mut secured.client);
    let plaintext_bytes = plaintext.len() as u64;
    let mut to_backend = Outbox::default();
    to_backend.bytes = if header.is_empty() {
        plaintext
    } else {
        let both = [&header[..], &plaintext].concat();
        secured.client.worker.buffers.release(plaintext);
        both
    };
    Ok(HeaderSent { connected, to_backend, plaintext_bytes })
}

/// A connection that lasts does not hold what only the header needs.
fn release(client: &mut Client) {
    if let Some(came) = &mut client.account.proxied {
        came.fields = Vec::new();
    }
    let facts = client.account.handshake.as_deref_mut();
    if let Some(certificate) = facts.and_then(|facts| facts.client.as_deref_mut()) {
        certificate.der = Vec::new();
    }
}
