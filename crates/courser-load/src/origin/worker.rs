//! One thread of an origin: its runtime, its sockets, its buffers and its prepared answers.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use courser_net::{AsyncListener, ListenSocket, cpu};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;

use super::state::{State, count};
use super::{Counters, Mode, Proxy, connection};

/// How long to rest when no connection can be accepted: the usual reason is that descriptors have run out.
const REST: Duration = Duration::from_millis(50);

/// A thread before it runs.
pub(super) struct Worker {
    pub(super) sockets: Vec<ListenSocket>,
    pub(super) cpu: Option<usize>,
    pub(super) proxy: Proxy,
    pub(super) mode: Mode,
    pub(super) counters: Arc<Counters>,
    pub(super) stop: watch::Receiver<bool>,
}

impl Worker {
    /// Tells its thread's number when it is ready, and serves until told to stop.
    pub(super) fn run(self, ready: &Sender<i32>) -> io::Result<()> {
        let Self { sockets, cpu, proxy, mode, counters, mut stop } = self;
        if let Some(cpu) = cpu {
            cpu::pin(cpu)?;
        }
        let runtime =
            Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
        let state = Rc::new(State::new(proxy, mode, counters));
        runtime.block_on(async {
            for (socket, page) in sockets.into_iter().zip(1..) {
                tokio::task::spawn_local(accept(Rc::clone(&state), AsyncListener::new(socket)?, page));
            }
            // Who started the thread waits for this, unless it is gone.
            let _ = ready.send(rustix::thread::gettid().as_raw_nonzero().get());
            let _ = stop.wait_for(|stop| *stop).await;
            Ok(())
        })
    }
}

/// Accepts connections for as long as its runtime lives. `page` is the address's number.
pub(super) async fn accept(state: Rc<State>, listener: AsyncListener, page: u8) {
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                count(&state.counters.accepted);
                tokio::task::spawn_local(connection::serve(Rc::clone(&state), accepted, page));
            }
            // A client that has gone again is the other reason, and pays nothing for the rest of the others.
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}
