//! One thread of an origin: its runtime, its sockets, its buffers and its prepared answers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use courser_net::{AsyncListener, ListenSocket, cpu};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;

use super::answer::{Answer, Shape};
use super::{Counters, Mode, Proxy, connection};

/// Room for what most requests and most pieces of a body need.
const BUFFER: usize = 32 * 1024;
/// Free buffers kept: more than are ever read at the same time by one thread that never waits with one in hand.
const SPARE: usize = 32;
/// Answers kept; each has 64 KiB at most.
const PREPARED: usize = 64;
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
        let state = Rc::new(State {
            proxy,
            mode,
            counters,
            buffers: RefCell::default(),
            prepared: RefCell::default(),
        });
        runtime.block_on(async {
            for socket in sockets {
                tokio::task::spawn_local(accept(Rc::clone(&state), AsyncListener::new(socket)?));
            }
            // Who started the thread waits for this, unless it is gone.
            let _ = ready.send(rustix::thread::gettid().as_raw_nonzero().get());
            let _ = stop.wait_for(|stop| *stop).await;
            Ok(())
        })
    }
}

async fn accept(state: Rc<State>, listener: AsyncListener) {
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                count(&state.counters.accepted);
                tokio::task::spawn_local(connection::serve(Rc::clone(&state), accepted));
            }
            // A client that has gone again is the other reason, and pays nothing for the rest of the others.
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

/// What the connections of a thread share.
pub(super) struct State {
    pub(super) proxy: Proxy,
    pub(super) mode: Mode,
    pub(super) counters: Arc<Counters>,
    buffers: RefCell<Vec<Vec<u8>>>,
    prepared: RefCell<HashMap<Shape, Rc<Answer>>>,
}

impl State {
    /// Gives `buffer` room for some reading: one that has none is replaced, so a connection that waits needs none.
    pub(super) fn make_room(&self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0 {
            *buffer = self.buffers.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(BUFFER));
        } else if buffer.len() == buffer.capacity() {
            buffer.reserve(BUFFER);
        }
    }

    /// Takes an emptied buffer back.
    pub(super) fn give_back(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffer.capacity() == BUFFER && buffers.len() < SPARE {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    /// The answer of this shape, made once.
    pub(super) fn answer(&self, shape: Shape) -> Rc<Answer> {
        let mut prepared = self.prepared.borrow_mut();
        // Objects of more different sizes than these are not the rule; what is thrown away is soon made again.
        if prepared.len() >= PREPARED && !prepared.contains_key(&shape) {
            prepared.clear();
        }
        Rc::clone(prepared.entry(shape).or_insert_with(|| Rc::new(Answer::new(shape, None))))
    }
}

/// Only the counter's own thread writes it, so that no locked instruction is needed.
pub(super) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
