//! The budget of handshakes in one iteration of a worker's event loop.
//!
//! A signature costs 17 us (ECDSA) to 265 us (RSA-2048). When a burst of clients arrives, the runtime would run all
//! their handshakes before it looks at the sockets of established connections again. So handshakes may spend a
//! millisecond per iteration; what is beyond waits in a queue until the event loop has looked around and every connection that
//! was ready has moved its bytes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::supervision::Tasks;

/// Time for handshakes in one iteration: about fifty ECDSA handshakes' signatures or four of RSA-2048. A relay waits at
/// most this and one handshake longer.
const BUDGET: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct HandshakeBudget {
    tasks: Tasks,
    spent: Cell<Duration>,
    queue: RefCell<VecDeque<Waker>>,
}

impl HandshakeBudget {
    /// The budget of the worker whose tasks these are.
    pub(crate) fn new(tasks: Tasks) -> Rc<Self> {
        Rc::new(Self { tasks, ..Self::default() })
    }

    /// Waits until this iteration or a later one has budget left.
    pub(crate) async fn admit(self: &Rc<Self>) {
        let mut waited = false;
        poll_fn(|cx| {
            if self.spent.get() < BUDGET && (waited || self.queue.borrow().is_empty()) {
                return Poll::Ready(());
            }
            waited = true;
            self.enqueue(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Runs a handshake's expensive step, charges its time to the iteration and wakes the next in the queue if
    /// there is budget left. Returns the time as well.
    pub(crate) fn charge<T>(&self, step: impl FnOnce() -> T) -> (T, Duration) {
        let start = Instant::now();
        let result = step();
        let spent = start.elapsed();
        self.spent.set(self.spent.get() + spent);
        if self.spent.get() < BUDGET {
            self.wake_next();
        }
        (result, spent)
    }

    /// A new iteration begins: the event loop has run out of work, so nothing waits.
    pub(crate) fn reset(&self) {
        self.spent.set(Duration::ZERO);
    }

    fn enqueue(self: &Rc<Self>, waker: Waker) {
        let first = self.queue.borrow().is_empty();
        self.queue.borrow_mut().push_back(waker);
        if first {
            self.tasks.spawn("handshakes' budget", Rc::clone(self).drain_queue());
        }
    }

    /// Begins new iterations until the queue is empty. A yielding task runs again after the event loop has looked for
    /// events and queued the tasks that they wake.
    async fn drain_queue(self: Rc<Self>) {
        while !self.queue.borrow().is_empty() {
            tokio::task::yield_now().await;
            self.spent.set(Duration::ZERO);
            self.wake_next();
        }
    }

    fn wake_next(&self) {
        let next = self.queue.borrow_mut().pop_front();
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
