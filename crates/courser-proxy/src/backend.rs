//! Which backend, and a connection to it.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use courser_net::{Address, Stream};
use courser_telemetry::{End, EndReason};
use courser_tls::ServerConnection;

use crate::buffers::Outbox;
use crate::connection::{Client, Ending};
use crate::handshake::Secured;
use crate::settings::Host;

/// A connection with its backend.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) host: Arc<Host>,
    pub(crate) tls: Box<ServerConnection>,
    pub(crate) received: Vec<u8>,
    pub(crate) plaintext: Vec<u8>,
    pub(crate) tickets: Outbox,
    pub(crate) client_closed: bool,
    pub(crate) backend: Stream,
}

/// Connects to the next backend in turn; one that refuses or does not answer in time is passed over for the one after.
/// A client that has gone away already, without a word, gets none: health checks and port scans do not trouble the
/// backends.
pub(crate) async fn connect(secured: Secured) -> Result<Connected, Box<Ending>> {
    let Secured { mut client, host, mut tls, mut received, plaintext, tickets, client_closed } = secured;
    if client_closed && plaintext.is_empty() {
        return Err(farewell(
            client,
            &mut tls,
            &mut received,
            EndReason::ClosedAfterHandshake.into(),
            tickets,
        ));
    }
    match any(&mut client, &host).await {
        Ok(backend) => {
            client.account.connected();
            Ok(Connected { client, host, tls, received, plaintext, tickets, client_closed, backend })
        }
        Err(end) => Err(farewell(client, &mut tls, &mut received, end, tickets)),
    }
}

/// The client gets a clean close.
fn farewell(
    client: Client,
    tls: &mut ServerConnection,
    received: &mut [u8],
    end: End,
    tickets: Outbox,
) -> Box<Ending> {
    let mut bytes = tickets.bytes;
    // A connection that can no longer write has nothing to say.
    let _ = tls.send_close_notify(received, &mut bytes);
    client.ending(end, bytes)
}

async fn any(client: &mut Client, host: &Host) -> Result<Stream, End> {
    let count = host.backends.len();
    let first = client.worker.next_backend();
    let mut failures = String::new();
    for index in (0..count).map(|step| (first + step) % count) {
        let backend = &host.backends[index];
        client.account.backend = Some(index);
        for address in backend.addresses().iter() {
            match one(client, host, address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    client.account.retries += 1;
                    client.worker.events.warn("backend", format_args!("backend {}: {error}", backend.name));
                    failures = format!("{}: {error}", backend.name);
                }
            }
        }
        if backend.addresses().is_empty() {
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
