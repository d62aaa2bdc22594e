//! The PROXY protocol header: who called, and what TLS agreed on.
//!
//! It leaves at once, together with whatever the client has said already, and never waits for the client: in some
//! protocols the server speaks first.

use courser_telemetry::{Close, CloseReason};
use courser_tls::HandshakeInfo;
use courser_wire::proxy::{Addresses, v1, v2};

use crate::account::Account;
use crate::backend::Connected;
use crate::buffers::Outbox;
use crate::client::{Client, EarlyClose};
use crate::settings::{Forwarding, SendProxy};

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
        None => header(&secured.client, &secured.forwarding),
    };
    let header = match header {
        Ok(header) => header,
        Err(unwritable) => {
            return Err(connected
                .secured
                .close_with_notify(Close::with(CloseReason::Internal, unwritable.to_string())));
        }
    };
    let plaintext_bytes = plaintext.len() as u64;
    let mut to_backend = Outbox::default();
    to_backend.bytes = if header.is_empty() { plaintext } else { [header, plaintext].concat() };
    Ok(HeaderSent { connected, to_backend, plaintext_bytes })
}

/// The header for a backend, empty where it gets none.
pub(crate) fn header(client: &Client, forwarding: &Forwarding) -> Result<Vec<u8>, v2::Unwritable> {
    match forwarding.send_proxy {
        SendProxy::Off => Ok(Vec::new()),
        SendProxy::V1 => Ok(write_v1(client)),
        SendProxy::V2 => write_v2(client),
    }
}

fn write_v1(client: &Client) -> Vec<u8> {
    let mut header = Vec::with_capacity(v1::MAX_LENGTH);
    v1::write(&addresses(client), &mut header);
    header
}

fn write_v2(client: &Client) -> Result<Vec<u8>, v2::Unwritable> {
    let account = &*client.account;
    let unique_id = account.unique_id();
    let header = v2::ProxyHeader {
        command: v2::Command::Proxy,
        addresses: addresses(client),
        alpn: account.handshake.as_deref().and_then(|facts| facts.alpn.as_deref()),
        authority: account.sni.as_deref(),
        unique_id: Some(unique_id.as_bytes()),
        ssl: account.handshake.as_deref().map(|facts| ssl(account, facts)),
        crc32c: true,
    };
    let mut bytes = Vec::with_capacity(256);
    v2::write(&header, &mut bytes)?;
    Ok(bytes)
}

fn ssl<'a>(account: &'a Account, facts: &'a HandshakeInfo) -> v2::Ssl<'a> {
    let identity = account.identity.as_deref();
    let client = facts.client.as_ref();
    v2::Ssl {
        over_tls: true,
        certificate_on_connection: client.is_some() && !facts.resumed,
        certificate_in_session: client.is_some(),
        // A certificate that is not good ends the handshake: one that is there was verified.
        verify: u32::from(client.is_none()),
        common_name: client.and_then(|client| client.common_name.as_deref()),
        version: Some(facts.version_name()),
        cipher: Some(facts.suite_name()),
        signature_algorithm: identity.and_then(|identity| identity.signature_algorithm),
        key_algorithm: identity.map(|identity| identity.key_algorithm.as_str()),
        group: facts.group.and_then(courser_tls::names::group),
        signature_scheme: facts.scheme.and_then(courser_tls::names::scheme),
        ..v2::Ssl::default()
    }
}

fn addresses(client: &Client) -> Addresses<'static> {
    match (client.account.peer, client.stream.local_address()) {
        (Some(source), Some(destination)) => Addresses::Ip { source, destination },
        _ => Addresses::Unspecified,
    }
}
