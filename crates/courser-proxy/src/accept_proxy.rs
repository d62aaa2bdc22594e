//! A PROXY header in front of the first byte: whoever stands in front of us says who its client is. Only those are believed
//! who are listed, and of them a header is required: a client that may choose could forge its address.

use courser_telemetry::{Close, CloseReason};
use courser_wire::proxy::{Addresses, Malformed, v1, v2};

use crate::account::Proxied;
use crate::buffers::Inbox;
use crate::client::{Client, Refusal};

/// Most bytes of a header: HAProxy's bound too (`tune.bufsize`). Fields have certificates in them at most.
const HEADER_LIMIT: usize = 16 * 1024;

/// Waits for the whole header, under the deadline of the handshake. What has come behind it stays in `received`.
pub(crate) async fn accept_proxy(client: &mut Client, received: &mut Inbox) -> Result<(), Refusal> {
    loop {
        client.read_greeting(received).await?;
        let header = parse(received.bytes()).map_err(|malformed| bad(malformed.to_string()))?;
        let announced = announced(received.bytes());
        if announced > HEADER_LIMIT {
            return Err(bad(format!("a PROXY header of {announced} bytes, more than {HEADER_LIMIT}")));
        }
        if let Some(Header { named, fields, length }) = header {
            received.consume(length);
            client.account.set_proxied(named, fields);
            return Ok(());
        }
        received.settle(&client.worker.buffers);
    }
}

struct Header {
    /// Client and destination, unless the connection is the sender's own.
    named: Option<Proxied>,
    /// Of version 2, to be passed on.
    fields: Vec<u8>,
    length: usize,
}

fn parse(received: &[u8]) -> Result<Option<Header>, Malformed> {
    if received.first() == Some(&b'P') {
        let header = v1::parse(received)?;
        return Ok(header.map(|(addresses, length)| Header {
            named: named(&addresses),
            fields: Vec::new(),
            length,
        }));
    }
    let header = v2::parse(received)?;
    Ok(header.map(|(header, length)| Header {
        named: named(&header.addresses),
        fields: v2::fields(&received[..length]),
        length,
    }))
}

/// How long a header of version 2 says that it is, once it does; version 1 has a bound of its own.
fn announced(received: &[u8]) -> usize {
    match received {
        [b'\r', _, _, _, _, _, _, _, _, _, _, _, _, _, high, low, ..] => {
            16 + usize::from(u16::from_be_bytes([*high, *low]))
        }
        _ => 0,
    }
}

fn named(addresses: &Addresses<'_>) -> Option<Proxied> {
    match *addresses {
        Addresses::Ip { source, destination } => Some(Proxied::Ip { source, destination }),
        Addresses::Unix { source, destination } => {
            Some(Proxied::Unix { source: source.to_vec(), destination: destination.to_vec() })
        }
        Addresses::Unspecified => None,
    }
}

fn bad(why: String) -> Refusal {
    (Close::with(CloseReason::BadProxyHeader, why), Vec::new())
}
