//! Which backend, and a connection to it.

mod families;

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use courser_balance::{AffinityKey, Handover, Pick, Request, ServerPermit};
use courser_net::Stream;
use courser_telemetry::event::{Level, log};
use courser_telemetry::metrics::Metric;
use courser_telemetry::{Close, CloseReason};

use crate::affinity::{Affinity, of_network};
use crate::backend_handshake::{self, SecuredBackend};
use crate::client::{Client, EarlyClose};
use crate::clock::since_start;
use crate::handshake::Secured;
use crate::pool::{Backend, Target};
use crate::settings::Forwarding;
use crate::worker_state::WorkerState;

pub(crate) struct Connected {
    pub(crate) secured: Secured,
    pub(crate) backend: BackendStream,
}

/// A connection to a backend, and its place there, which is given back after the connection is closed.
pub(crate) struct BackendStream {
    pub(crate) stream: Stream,
    pub(crate) place: ServerPermit<Target>,
    /// TLS with it, after its handshake.
    pub(crate) tls: Option<Box<SecuredBackend>>,
}

/// A connection that was made in an attempt.
struct Link {
    stream: Stream,
    tls: Option<Box<SecuredBackend>>,
}

impl Link {
    fn at(self, place: ServerPermit<Target>) -> BackendStream {
        BackendStream { stream: self.stream, place, tls: self.tls }
    }
}

/// Why an attempt has failed.
enum AttemptError {
    Connect(io::Error),
    Handshake(Close),
}

impl From<io::Error> for AttemptError {
    fn from(error: io::Error) -> Self {
        Self::Connect(error)
    }
}

/// Connects to a backend of the pool; one that refuses or does not answer in time is passed over. A client that has gone away
/// already, without a word, gets none: health checks and port scans do not trouble the backends. For one that goes away
/// meanwhile the attempts end.
pub(crate) async fn connect(mut secured: Secured) -> Result<Connected, Box<EarlyClose>> {
    if secured.client_closed && secured.plaintext.is_empty() {
        return Err(secured.close_with_notify(CloseReason::ClosedAfterHandshake));
    }
    match connect_any(&mut secured.client, &secured.forwarding).await {
        Ok(backend) => {
            secured.client.account.connected();
            Ok(Connected { secured, backend })
        }
        Err(end) if end.reason == CloseReason::ClientReset => Err(secured.client.close_silently(end)),
        Err(end) => Err(secured.close_with_notify(end)),
    }
}

async fn connect_any(client: &mut Client, forwarding: &Forwarding) -> Result<BackendStream, Close> {
    let request = forwarding.pool.request(client.worker.index, affinity_key(client, forwarding));
    let (pool, mut now) = (forwarding.pool.servers(), since_start());
    let place = match pool.choose(&request, now) {
        Pick::Server(place) => place,
        choice => {
            let place = next_place(client, forwarding, &request, choice).await?;
            now = since_start();
            place
        }
    };
    let is_good = place.server().availability(now).is_good();
    if pool.set_desperate(!is_good) {
        log_desperation(&forwarding.pool.name, !is_good);
    }
    pool.retries.deposit(now);
    match connect_one(client, forwarding, place).await? {
        (place, Ok(link)) => Ok(link.at(place)),
        // Boxed, because few connections come here and all would have to hold the room for it.
        (place, Err(error)) => Box::pin(connect_another(client, forwarding, request, place, error)).await,
    }
}

/// Logs that a connection goes to a server that is not good, since no other is left, or that this is over.
#[cold]
fn log_desperation(pool: &str, is_desperate: bool) {
    match is_desperate {
        true => log(
            Level::Error,
            format_args!("pool {pool}: NO SERVER IS GOOD: all that are not drained get connections"),
        ),
        false => log(Level::Info, format_args!("pool {pool}: a server is good again")),
    }
}

/// What keeps the client at its server; `None` where nothing does, or the client has no such thing.
fn affinity_key(client: &Client, forwarding: &Forwarding) -> Option<AffinityKey> {
    match forwarding.pool.affinity? {
        Affinity::Source { v4, v6 } => client.address().map(|address| of_network(address, v4, v6)),
        Affinity::ServerName => client.account.sni.as_deref().map(|name| AffinityKey::of(name.as_bytes())),
        Affinity::ClientCertificate => {
            let certificate = client.account.handshake.as_ref()?.client.as_ref()?;
            Some(AffinityKey::of(&certificate.key_hash))
        }
        Affinity::Session => {
            client.account.relay.as_ref()?;
            let (sessions, offered) = (forwarding.pool.sessions.as_ref()?, client.account.offered.as_ref()?);
            sessions.find(offered.session.id.as_ref()?, since_start())
        }
    }
}

/// An attempt, with the handshake where the pool has TLS. The place is that of the server whose result it is.
async fn connect_one(
    client: &mut Client,
    forwarding: &Forwarding,
    place: ServerPermit<Target>,
) -> Result<(ServerPermit<Target>, Result<Link, AttemptError>), Close> {
    let begun = Instant::now();
    let (place, stream) = connect_stream(client, forwarding, place).await?;
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => return Ok((place, Err(error.into()))),
    };
    let Some(tls) = &place.server().target.tls else { return Ok((place, Ok(Link { stream, tls: None }))) };
    client.deadline.set(forwarding.connect_timeout.saturating_sub(begun.elapsed()));
    // Boxed, for those who have none.
    let secured = Box::pin(backend_handshake::secure(client, forwarding, tls, &stream)).await?;
    let link = match secured {
        Ok(secured) => Ok(Link { stream, tls: Some(secured) }),
        Err(close) => Err(AttemptError::Handshake(close)),
    };
    Ok((place, link))
}

/// A connection, or the first of an error, the timeout and the client's own end. Where it is late and a name has addresses
/// of both families, the result may be another server's, whose place is returned with it.
async fn connect_stream(
    client: &mut Client,
    forwarding: &Forwarding,
    place: ServerPermit<Target>,
) -> Result<(ServerPermit<Target>, io::Result<Stream>), Close> {
    let (faster, result) = {
        let server = place.server();
        client.account.backend = Some(Arc::clone(server));
        let races = forwarding.pool.has_both_families() && forwarding.connect_timeout > FAMILY_DELAY;
        client.deadline.set(if races { FAMILY_DELAY } else { forwarding.connect_timeout });
        let begun = Instant::now();
        let mut connecting = pin!(Stream::connect(&server.target.address));
        let result = poll_fn(|cx| {
            if let Poll::Ready(result) = connecting.as_mut().poll(cx) {
                return Poll::Ready(Ok::<_, Close>(Some(result)));
            }
            client.check_reset(cx)?;
            client.deadline.poll_expired(cx).map(|()| Ok(None))
        });
        let (faster, result) = match result.await? {
            Some(result) => (None, result),
            None if races => Box::pin(families::race(client, forwarding, server, connecting)).await?,
            None => (None, Err(ErrorKind::TimedOut.into())),
        };
        if faster.is_none() && result.is_ok() {
            server.connected(begun.elapsed(), since_start());
        }
        (faster, result)
    };
    Ok((faster.unwrap_or(place), result))
}

/// Goes on to other servers, after the first has failed.
async fn connect_another(
    client: &mut Client,
    forwarding: &Forwarding,
    first: Request<'_, Target>,
    mut place: ServerPermit<Target>,
    mut error: AttemptError,
) -> Result<BackendStream, Close> {
    let pool = forwarding.pool.servers();
    let until = Instant::now() + SERVERS_WAITED_FOR * forwarding.connect_timeout;
    let (mut tried, mut full, mut failed) = (Vec::new(), Vec::new(), None);
    loop {
        let server = Arc::clone(place.server());
        if matches!(&error, AttemptError::Connect(error) if error.kind() == ErrorKind::WouldBlock) {
            full.push(Arc::clone(&server));
        } else {
            failed = Some(failure(client, forwarding, &server, &error));
        }
        tried.push(server);
        let request = Request { tried: &tried, ..first };
        let choice = pool.choose(&request, since_start());
        if matches!(choice, Pick::None) || Instant::now() > until || !pool.retries.withdraw(since_start()) {
            break;
        }
        place = match choice {
            Pick::Server(place) => place,
            choice => next_place(client, forwarding, &request, choice).await?,
        };
        match connect_one(client, forwarding, place).await? {
            (place, Ok(link)) => return Ok(link.at(place)),
            (late, Err(why)) => (place, error) = (late, why),
        }
    }
    drop(place);
    if full.is_empty() {
        return Err(failed.unwrap_or_else(|| CloseReason::NoBackend.into()));
    }
    wait_for_room(client, forwarding, &full).await
}

/// Waits for a place where every server has as many connections as it may, and makes sense of a pool that has none.
async fn next_place(
    client: &Client,
    forwarding: &Forwarding,
    request: &Request<'_, Target>,
    mut choice: Pick<Target>,
) -> Result<ServerPermit<Target>, Close> {
    let (pool, limit) = (forwarding.pool.servers(), forwarding.pool.queue_timeout);
    let since = since_start();
    client.deadline.set(limit);
    loop {
        choice = match choice {
            Pick::Server(place) => return Ok(place),
            Pick::None => return Err(no_server(client, forwarding)),
            Pick::Full => match pool.wait(request, since, limit, since_start()) {
                Ok(choice) => choice,
                Err(mut waiting) => match poll_fn(|cx| poll_place(client, &mut waiting, cx)).await? {
                    Handover::Permit(place) => return Ok(place),
                    Handover::Changed => pool.choose(request, since_start()),
                },
            },
        };
    }
}

fn poll_place(
    client: &Client,
    waiting: &mut courser_balance::Waiting<ServerPermit<Target>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Handover<ServerPermit<Target>>, Close>> {
    if let Poll::Ready(handover) = waiting.poll(cx) {
        return Poll::Ready(Ok(handover));
    }
    client.check_reset(cx)?;
    client.deadline.poll_expired(cx).map(|()| Err(CloseReason::QueueTimeout.into()))
}

/// Tries servers again whose accept queues were full. With a unix socket the kernel refuses at once instead of waiting
/// as with TCP, and makes no event when there is room (connect(2), EAGAIN); hence the pauses.
async fn wait_for_room(
    client: &mut Client,
    forwarding: &Forwarding,
    full: &[Arc<Backend>],
) -> Result<BackendStream, Close> {
    let until = Instant::now() + forwarding.connect_timeout;
    let mut pause = FIRST_PAUSE;
    while Instant::now() < until {
        wait_out(client, pause).await?;
        pause = (2 * pause).min(LONGEST_PAUSE);
        for place in full.iter().filter_map(Backend::try_take) {
            // Another failure may pass too: a backend that restarts refuses for a moment.
            if let (place, Ok(link)) = connect_one(client, forwarding, place).await? {
                return Ok(link.at(place));
            }
        }
    }
    client.account.retries += 1;
    let seconds = forwarding.connect_timeout.as_secs_f64();
    let why = format!("its accept queue stayed full for {seconds} s");
    let name = full.first().map_or_else(String::new, |server| server.name.clone());
    Err(Close::with(CloseReason::NoBackend, warn(client, &name, &why)))
}

async fn wait_out(client: &Client, pause: Duration) -> Result<(), Close> {
    let mut pause = pin!(tokio::time::sleep(pause));
    poll_fn(|cx| {
        client.check_reset(cx)?;
        pause.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// Counts a failed attempt, and returns whose fault it was: a machine without ports is no fault of its backends.
fn failure(client: &mut Client, forwarding: &Forwarding, server: &Backend, error: &AttemptError) -> Close {
    client.account.retries += 1;
    let (reason, mut why) = match error {
        AttemptError::Connect(error) if error.kind() == ErrorKind::AddrNotAvailable => {
            let address = &server.target.address;
            let why = format!("no local port left towards {address}, or no local address that leads there");
            return Close::with(CloseReason::NoLocalPort, warn(client, &server.name, &why));
        }
        AttemptError::Connect(error) => (CloseReason::NoBackend, error.to_string()),
        AttemptError::Handshake(close) => (close.reason, close.detail.clone().unwrap_or_default()),
    };
    if let Some(time) = count_failure(&client.worker, forwarding, server) {
        why = format!("ejected for {} s: {why}", time.as_secs());
    }
    Close::with(reason, warn(client, &server.name, &why))
}

/// Counts a connection that a server has failed. Returns for how long it is ejected, if it is now.
pub(crate) fn count_failure(
    worker: &WorkerState,
    forwarding: &Forwarding,
    server: &Backend,
) -> Option<Duration> {
    worker.counters.count(Metric::BackendFailures, 0);
    let ejected = forwarding.pool.servers().failed(server, since_start())?;
    worker.counters.count(Metric::BackendEjections, 0);
    Some(ejected)
}

fn no_server(client: &Client, forwarding: &Forwarding) -> Close {
    let servers = forwarding.pool.servers().servers();
    let why = if servers.is_empty() { "the name has no address" } else { "every server is drained" };
    Close::with(CloseReason::NoBackend, warn(client, &client.account.served_as(), why))
}

fn warn(client: &Client, backend: &str, why: &str) -> String {
    client.worker.events.warn("backend", format_args!("backend {backend}: {why}"));
    format!("{backend}: {why}")
}

/// How long an attempt may take before one to the other family joins in (RFC 8305, section 5: 250 ms).
const FAMILY_DELAY: Duration = Duration::from_millis(250);

/// Servers that may each take the whole `connect_timeout` before a connection ends; those that refuse at once do not count.
const SERVERS_WAITED_FOR: u32 = 3;

/// A backend that accepts at all mostly does so within a few turns of its event loop.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// A thousand clients that wait for room are 20,000 attempts a second, about a tenth of a core.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
