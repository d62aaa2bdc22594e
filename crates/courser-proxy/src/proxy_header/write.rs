//! The bytes of a header, from what is known of the client.

use courser_tls::HandshakeInfo;
use courser_wire::proxy::{Addresses, v1, v2};

use crate::account::{Account, Proxied};
use crate::client::Client;
use crate::settings::{Forwarding, SendProxy};

/// The header for a backend, empty where it gets none.
pub(crate) fn header(client: &Client, forwarding: &Forwarding) -> Result<Vec<u8>, v2::Unwritable> {
    let send = forwarding.send_proxy;
    if send == SendProxy::Off {
        return Ok(Vec::new());
    }
    let path = if client.account.client.is_none() { client.stream.local_path() } else { Vec::new() };
    let addresses = addresses(client, &path);
    let mut bytes = Vec::with_capacity(256);
    match send {
        SendProxy::Off => {}
        SendProxy::V1 => v1::write(&addresses, &mut bytes),
        SendProxy::V2Addresses => {
            v2::write(&v2::ProxyHeader { addresses, ..v2::ProxyHeader::default() }, &mut bytes)?;
        }
        SendProxy::V2 => write_fields(&client.account, addresses, None, &mut bytes)?,
        SendProxy::V2ClientCert => {
            let facts = client.account.handshake.as_deref().and_then(|facts| facts.client.as_deref());
            let certificate = facts.map(|client| &*client.der);
            let whole = write_fields(&client.account, addresses, certificate, &mut bytes);
            // A client may have one that no header can hold.
            whole.or_else(|_| write_fields(&client.account, addresses, None, &mut bytes))?;
        }
    }
    Ok(bytes)
}

fn write_fields(
    account: &Account,
    addresses: Addresses<'_>,
    certificate: Option<&[u8]>,
    bytes: &mut Vec<u8>,
) -> Result<(), v2::Unwritable> {
    let unique_id = account.unique_id();
    let mut header = fields(account, addresses, &unique_id);
    if let Some(ssl) = &mut header.ssl {
        ssl.client_certificate = certificate;
    }
    let passed_on = account.proxied.as_ref().map_or(&[][..], |came| &came.fields);
    v2::write_with(&header, passed_on, bytes)
}

fn fields<'a>(account: &'a Account, addresses: Addresses<'a>, unique_id: &'a str) -> v2::ProxyHeader<'a> {
    v2::ProxyHeader {
        command: v2::Command::Proxy,
        addresses,
        alpn: account.handshake.as_deref().and_then(|facts| facts.alpn.as_deref()),
        authority: account.sni.as_deref(),
        unique_id: Some(unique_id.as_bytes()),
        ssl: account.handshake.as_deref().map(|facts| ssl(account, facts)),
        crc32c: true,
    }
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
        key_algorithm: identity.map(|identity| &*identity.key_algorithm),
        group: facts.group.and_then(courser_tls::names::group),
        signature_scheme: facts.scheme.and_then(courser_tls::names::scheme),
        ..v2::Ssl::default()
    }
}

/// As they came in a PROXY header, or those of the socket, whose path is `path`.
fn addresses<'a>(client: &'a Client, path: &'a [u8]) -> Addresses<'a> {
    match client.account.proxied.as_ref().and_then(|came| came.named.as_ref()) {
        Some(&Proxied::Ip { source, destination }) => return Addresses::Ip { source, destination },
        Some(Proxied::Unix { source, destination }) => return Addresses::Unix { source, destination },
        None => {}
    }
    match (client.account.client, client.stream.local_address()) {
        (Some(source), Some(destination)) => Addresses::Ip { source, destination },
        // Clients' sockets mostly have no name.
        _ => Addresses::Unix { source: &[], destination: path },
    }
}
