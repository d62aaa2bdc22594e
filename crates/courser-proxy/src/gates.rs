//! The gates that a client passes between its ClientHello and its handshake, and the watch over them. What they let pass is
//! decided in `overload.rs`; here a client that is not served is counted, and its connection reset.

use std::rc::Rc;
use std::time::Duration;

use courser_overload::{Class, Line};
use courser_session::UnixSeconds;
use courser_telemetry::metrics::{Metric, Shed};
use courser_telemetry::{Close, CloseReason};

use crate::client::Client;
use crate::overload::TICK;
use crate::worker_state::WorkerState;

/// Gates 2 and 3: how a client with this ClientHello stands in the line. `has_session`: whether it proves that it has been here by
/// a time.
pub(crate) fn enter(client: &Client, has_session: impl FnOnce(UnixSeconds) -> bool) -> Result<Class, Close> {
    let is_alone = client.worker.handshake_budget.line(Line::is_empty);
    let overload = &client.worker.overload;
    let Client { stream, listener, account, .. } = client;
    let entered = overload.enter(account.client, stream, listener, is_alone, has_session);
    entered.map_err(|why| shed(client, why))
}

/// The handshake of a client whose turn it is begins. An error for one that has closed its side behind its ClientHello: no
/// handshake is for those who are gone.
pub(crate) fn begin(client: &Client) -> Result<(), Close> {
    if !client.stream.has_ended() {
        client.worker.handshake_budget.count_begun();
        client.worker.overload.begin();
        return Ok(());
    }
    let _ = shed(client, Shed::Gone);
    Err(CloseReason::ClosedInHandshake.into())
}

/// A client that has waited in the line for too long.
pub(crate) fn expired(client: &Client) -> Close {
    shed(client, Shed::Deadline)
}

fn shed(client: &Client, why: Shed) -> Close {
    // No alert: the client would try again at once.
    client.stream.reset_on_close();
    client.worker.counters.count(Metric::Shed, why as usize);
    client.worker.overload.shed();
    Close::with(CloseReason::Shed, why.meaning())
}

/// A handshake of this client has cost so much.
pub(crate) fn charge(client: &Client, cost: Duration) {
    client.worker.overload.charge(client.address(), cost);
}

/// Watches the line for as long as someone waits in it, and until overload is over.
pub(crate) async fn watch(worker: Rc<WorkerState>) {
    let (overload, budget) = (&worker.overload, &worker.handshake_budget);
    while overload.is_enabled() {
        budget.waited().await;
        loop {
            tokio::time::sleep(TICK).await;
            let tick = || overload.tick(budget, &worker.pulse, &worker.counters, &worker.events);
            if !overload.is_enabled() || !tick() {
                break;
            }
        }
    }
}
