//! Which backend, and a connection to it.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use courser_net::{Address, Stream};
use courser_telemetry::{Close, CloseReason};

use crate::client::{Client, EarlyClose};
use crate::handshake::Secured;
use crate::settings::VirtualHost;

pub(crate) struct Connected {
    pub(crate) secured: Secured,
    pub(crate) backend: Stream,
}

/// Connects to the next backend of the round; one that refuses or does not answer in time is passed over for the one after.
/// A client that has gone away already, without a word, gets none: health checks and port scans do not trouble the
/// backends. For one that goes away meanwhile the attempts end.
pub(crate) async fn connect(mut secured: Secured) -> Result<Connected, Box<EarlyClose>> {
    if secured.client_closed && secured.plaintext.is_empty() {
        return Err(secured.close_with_notify(CloseReason::ClosedAfterHandshake));
    }
    match connect_any(&mut secured.client, &secured.host).await {
        Ok(backend) => {
            secured.client.account.connected();
            Ok(Connected { secured, backend })
        }
        Err(end) if end.reason == CloseReason::ClientReset => Err(secured.client.close_silently(end)),
        Err(end) => Err(secured.close_with_notify(end)),
    }
}

async fn connect_any(client: &mut Client, host: &VirtualHost) -> Result<Stream, Close> {
    let (mut full, mut failed) = (Vec::new(), None);
    for (index, backend, before) in host.pool.next(client.worker.index) {
        client.account.backend = Some(index);
        let addresses = backend.addresses();
        let mut has_address = false;
        for address in addresses.rotated(before) {
            has_address = true;
            match connect_one(client, host, address).await? {
                Ok(stream) => return Ok(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => full.push((index, address.clone())),
                Err(error) => failed = Some(failure(client, &backend.name, address, &error)),
            }
        }
        if !has_address {
            failed = Some(Close::with(
                CloseReason::NoBackend,
                warn(client, &backend.name, "the name has no address"),
            ));
        }
    }
    if !full.is_empty() {
        // Boxed, because few connections come here and all would have to hold the room for it.
        return Box::pin(wait_for_room(client, host, &full)).await;
    }
    Err(failed.unwrap_or_else(|| CloseReason::NoBackend.into()))
}

/// An attempt, whose end is the first of an answer, the timeout and the client's own end.
async fn connect_one(
    client: &Client,
    host: &VirtualHost,
    address: &Address,
) -> Result<io::Result<Stream>, Close> {
    client.deadline.set(host.connect_timeout);
    let mut connecting = pin!(Stream::connect(address));
    poll_fn(|cx| {
        if let Poll::Ready(result) = connecting.as_mut().poll(cx) {
            return Poll::Ready(Ok(result));
        }
        if client.stream.poll_reset(cx).is_ready() {
            return Poll::Ready(Err(CloseReason::ClientReset.into()));
        }
        client.deadline.poll_expired(cx).map(|()| Ok(Err(ErrorKind::TimedOut.into())))
    })
    .await
}

/// Tries backends again whose accept queues were full. With a unix socket the kernel refuses at once instead of waiting
/// as with TCP, and makes no event when there is room (connect(2), EAGAIN); hence the pauses.
async fn wait_for_room(
    client: &mut Client,
    host: &VirtualHost,
    full: &[(usize, Address)],
) -> Result<Stream, Close> {
    let until = Instant::now() + host.connect_timeout;
    let mut pause = FIRST_PAUSE;
    while Instant::now() < until {
        wait_out(client, pause).await?;
        pause = (2 * pause).min(LONGEST_PAUSE);
        for (index, address) in full {
            client.account.backend = Some(*index);
            // Another failure may pass too: a backend that restarts refuses for a moment.
            if let Ok(stream) = connect_one(client, host, address).await? {
                return Ok(stream);
            }
        }
    }
    let name = full.first().map(|(_, address)| address.to_string()).unwrap_or_default();
    let seconds = host.connect_timeout.as_secs_f64();
    let why = format!("its accept queue stayed full for {seconds} s: it accepts too slowly");
    client.account.retries += 1;
    Err(Close::with(CloseReason::NoBackend, warn(client, &name, &why)))
}

async fn wait_out(client: &Client, pause: Duration) -> Result<(), Close> {
    let mut pause = pin!(tokio::time::sleep(pause));
    poll_fn(|cx| {
        if client.stream.poll_reset(cx).is_ready() {
            return Poll::Ready(Err(CloseReason::ClientReset.into()));
        }
        pause.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// Counts a failed attempt, and returns whose fault it was: a machine without ports is no fault of its backends.
fn failure(client: &mut Client, backend: &str, address: &Address, error: &io::Error) -> Close {
    client.account.retries += 1;
    if error.kind() == ErrorKind::AddrNotAvailable {
        let why = format!("no local port left towards {address}, or no local address that leads there");
        return Close::with(CloseReason::NoLocalPort, warn(client, backend, &why));
    }
    Close::with(CloseReason::NoBackend, warn(client, backend, &error.to_string()))
}

fn warn(client: &Client, backend: &str, why: &str) -> String {
    client.worker.events.warn("backend", format_args!("backend {backend}: {why}"));
    format!("{backend}: {why}")
}

/// A backend that accepts at all mostly does so within a few turns of its event loop.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// A thousand clients that wait for room are 20,000 attempts a second, about a tenth of a core.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
