//! Keeps a worker connected to its store: the only place that waits for connections, and that probes a store whose breaker
//! is open.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::answer::Fault;
use crate::counters::StoreCount;
use crate::link::{CONNECT_TIMEOUT, WRITE_TIMEOUT};
use crate::pauses::Pauses;
use crate::shared::{Connection, Shared};

/// How often an idle connection is tried: a store that died, or a middlebox that forgot the connection, is found before
/// a client needs it.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// A connection that lasted so long was a good one: after it, the pauses begin anew.
const STEADY: Duration = Duration::from_secs(10);

/// What keeps a worker connected to its store, until it is aborted.
pub type Connector = Pin<Box<dyn Future<Output = ()>>>;

/// Connects, keeps the connection until it breaks, rests, and again; forever.
pub(crate) async fn run(store: Rc<Shared>) {
    let mut pauses = Pauses::new();
    loop {
        let began = Instant::now();
        match connect(&store).await {
            Ok(connection) => {
                store.counters.count(StoreCount::Connected);
                use_until_broken(&store, connection).await;
                if began.elapsed() > STEADY {
                    pauses.reset();
                }
            }
            Err(fault) => _ = store.record_failure(&fault),
        }
        sleep(pauses.next(fastrand::f64())).await;
        store.count_open_time();
    }
}

/// A connection that has answered a question in the time that a client would wait for it: the probe that closes the breaker.
async fn connect(store: &Shared) -> Result<Connection, Fault> {
    let broken = Arc::new(Notify::new());
    let notify = Arc::clone(&broken);
    let connecting = store.endpoint.connect(move || notify.notify_one());
    let mut link = timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_| Fault::Timeout)??;
    link.ping(store.timeout).await?;
    Ok(Connection { link, broken })
}

async fn use_until_broken(store: &Shared, mut connection: Connection) {
    store.count_open_time();
    let closed = store.breaker.borrow_mut().close(Instant::now());
    if let Some(after) = closed {
        store.counters.closed(store.endpoint.url(), after);
    }
    store.connection.send_replace(Some(connection.clone()));
    store.run_deletions(&connection).await;
    while timeout(HEARTBEAT, connection.broken.notified()).await.is_err() {
        if let Err(fault) = connection.link.ping(WRITE_TIMEOUT).await {
            store.record_fault(&fault);
            break;
        }
        store.run_deletions(&connection).await;
    }
    store.connection.send_replace(None);
}
