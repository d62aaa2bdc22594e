//! From the accept queue to a connection: admission, and what to do when descriptors run out.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use courser_net::AsyncListener;
use courser_telemetry::metrics::Step;

use crate::account::Account;
use crate::client::{Accepted, Client};
use crate::connection;
use crate::settings::Listener;
use crate::worker_state::{Permit, WorkerState};

/// How long accepting rests when the process or the system is out of descriptors or memory: connections that end
/// meanwhile free some, and trying again at once would burn the CPU that they need for it.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Of so many connections one is asked how long it has waited: a system call, which the others need not pay.
const SAMPLED: u64 = 16;

/// Accepts connections and starts their tasks for as long as the worker serves, each by the listener of that moment. Where
/// the process has as many as it may, further ones stay in the kernel's queue.
pub(crate) async fn accept(
    worker: Rc<WorkerState>,
    socket: Rc<AsyncListener>,
    listener: Rc<RefCell<Arc<Listener>>>,
) {
    loop {
        worker.overload.may_accept().await;
        match socket.accept_admitted(|| worker.try_admit(), async || worker.admit().await).await {
            Ok((accepted, permit)) => start(&worker, &listener.borrow(), accepted, permit),
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                let address = socket.address();
                worker.events.warn(
                    "accept",
                    format_args!("cannot accept on {address}: {error}; resting {BACK_OFF:?}"),
                );
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}

/// The last look at the queue, before the socket closes: who is in it was promised a connection.
pub(crate) fn accept_queued(worker: &Rc<WorkerState>, socket: &AsyncListener, listener: &Arc<Listener>) {
    while let Some(permit) = worker.try_admit() {
        match socket.accept_queued() {
            Ok(accepted) => start(worker, listener, accepted, permit),
            Err(error) if is_the_clients(&error) => {}
            Err(_) => return,
        }
    }
}

/// As [`accept_queued`], and waits for room for those who are in the queue.
pub(crate) async fn accept_all(worker: &Rc<WorkerState>, socket: &AsyncListener, listener: &Arc<Listener>) {
    while socket.has_connection() {
        let permit = worker.admit().await;
        match socket.accept_queued() {
            Ok(accepted) => start(worker, listener, accepted, permit),
            Err(error) if is_the_clients(&error) || error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => tokio::time::sleep(BACK_OFF).await,
        }
    }
}

fn start(
    worker: &Rc<WorkerState>,
    listener: &Arc<Listener>,
    accepted: courser_net::Accepted,
    permit: Permit,
) {
    if worker.overload.is_on() {
        accepted.stream.drop_syn_filter();
    }
    let account = Account::open(permit, Arc::clone(listener), accepted.peer);
    if account.number % SAMPLED == 1 {
        // A unix socket knows no such thing.
        if let Ok(info) = accepted.stream.tcp_info() {
            worker.counters.observe(Step::Queue, info.last_received);
        }
    }
    let client = Client {
        deadline: worker.wheel.deadline(listener.handshake_timeout),
        account,
        worker: Rc::clone(worker),
        listener: Arc::clone(listener),
        stream: accepted.stream,
    };
    tokio::task::spawn_local(connection::serve(Accepted { client }));
}

/// Errors of one connection that ended while it waited in the queue (accept(2), "Error handling").
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionReset, HostUnreachable, NetworkUnreachable, PermissionDenied,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | HostUnreachable | NetworkUnreachable | PermissionDenied
    )
}
