//! Which backend, and a connection to it.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use courser_net::{Address, Stream};
use courser_telemetry::{End, EndReason};

use crate::connection::{Client, Ending};
use crate::handshake::Secured;
use crate::settings::Host;

/// A connection with its backend.
pub(crate) struct Connected {
    pub(crate) secured: Secured,
    pub(crate) backend: Stream,
}

/// Connects to the next backend in turn; one that refuses or does not answer in time is passed over for the one after.
/// A client that has gone away already, without a word, gets none: health checks and port scans do not trouble the
/// backends.
pub(crate) async fn connect(mut secured: Secured) -> Result<Connected, Box<Ending>> {
    if secured.client_closed && secured.plaintext.is_empty() {
        return Err(secured.farewell(EndReason::ClosedAfterHandshake));
    }
    match any(&mut secured.client, &secured.host).await {
        Ok(backend) => {
            secured.client.account.connected();
            Ok(Connected { secured, backend })
        }
        Err(end) => Err(secured.farewell(end)),
    }
}

async fn any(client: &mut Client, host: &Host) -> Result<Stream, End> {
    let mut failures = String::new();
    for (index, backend, before) in host.pool.next(client.worker.index) {
        client.account.backend = Some(index);
        let addresses = backend.addresses();
        let mut has_address = false;
        for address in addresses.in_turn(before) {
            has_address = true;
            match one(client, host, address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    client.account.retries += 1;
                    client.worker.events.warn("backend", format_args!("backend {}: {error}", backend.name));
                    failures = format!("{}: {error}", backend.name);
                }
            }
        }
        if !has_address {
            failures = format!("{}: the name has no address", backend.name);
            client.worker.events.warn("backend", format_args!("backend {failures}"));
        }
    }
    Err(End::with(EndReason::NoBackend, failures))
}

async fn one(client: &Client, host: &Host, address: &Address) -> io::Result<Stream> {
    client.deadline.set(host.connect_timeout);
    let mut connecting = pin!(Stream::connect(address));
    poll_fn(|cx| {
        if let Poll::Ready(result) = connecting.as_mut().poll(cx) {
            return Poll::Ready(result);
        }
        client.deadline.poll_expired(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    })
    .await
}
