//! The budget of handshakes in one iteration of a worker's event loop, and the line of those that wait for it.
//!
//! A signature costs 17 us (ECDSA) to 265 us (RSA-2048). When a burst of clients arrives, the runtime would run all
//! their handshakes before it looks at the sockets of established connections again. So handshakes may spend a
//! millisecond per iteration; what is beyond waits in a line until the event loop has looked around and every connection that
//! was ready has moved its bytes. Who is next, the line says (courser-overload).

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use courser_overload::{Class, Line};
use tokio::sync::Notify;

use crate::clock::since_start;
use crate::supervision::Tasks;

/// Time for handshakes in one iteration: about fifty ECDSA handshakes' signatures or four of RSA-2048. A relay waits at
/// most this and one handshake longer.
const BUDGET: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct HandshakeBudget {
    tasks: Tasks,
    spent: Cell<Duration>,
    line: RefCell<Line<Rc<Waiter>>>,
    /// The newest are next, and those who wait too long are sent away.
    is_overload: Cell<bool>,
    /// Handshakes that have begun, since they were last asked for.
    begun: Cell<u32>,
    /// Someone waits.
    waited: Notify,
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A handshake that goes on.
    Begun,
    /// One that may begin.
    New(Class),
}

/// What becomes of a handshake that wants to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is its turn.
    Proceed,
    /// It has waited for too long: it is not served.
    Shed,
}

pub(crate) struct Waiter {
    waker: RefCell<Waker>,
    called: Cell<Option<Decision>>,
}

impl HandshakeBudget {
    /// The budget of the worker whose tasks these are.
    pub(crate) fn new(tasks: Tasks) -> Rc<Self> {
        Rc::new(Self { tasks, ..Self::default() })
    }

    /// Waits until this iteration or a later one has budget left, and it is this one's turn.
    pub(crate) async fn admit(self: &Rc<Self>, stage: Stage) -> Decision {
        let mut waiter = None;
        poll_fn(|cx| self.poll_admit(&mut waiter, stage, cx)).await
    }

    fn poll_admit(
        self: &Rc<Self>,
        waiter: &mut Option<Rc<Waiter>>,
        stage: Stage,
        cx: &mut Context<'_>,
    ) -> Poll<Decision> {
        let has_room = self.spent.get() < BUDGET;
        let Some(waiter) = waiter else {
            if has_room && self.line.borrow().is_empty() {
                return Poll::Ready(Decision::Proceed);
            }
            let new = Waiter { waker: RefCell::new(cx.waker().clone()), called: Cell::new(None) };
            self.enqueue(Rc::clone(waiter.insert(Rc::new(new))), stage);
            return Poll::Pending;
        };
        match waiter.called.get() {
            Some(Decision::Shed) => Poll::Ready(Decision::Shed),
            Some(decision) if has_room => Poll::Ready(decision),
            called => {
                waiter.waker.borrow_mut().clone_from(cx.waker());
                if called.is_some() {
                    // Others have used the budget up meanwhile. It has had its turn in the line.
                    waiter.called.set(None);
                    self.enqueue(Rc::clone(waiter), Stage::Begun);
                }
                Poll::Pending
            }
        }
    }

    /// Runs a handshake's expensive step, charges its time to the iteration and wakes the next in the line if
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

    /// Returns when someone has begun to wait.
    pub(crate) async fn waited(&self) {
        self.waited.notified().await;
    }

    /// From now on the newest are next, or the oldest again.
    pub(crate) fn set_overload(&self, is_overload: bool) {
        self.is_overload.set(is_overload);
    }

    /// A handshake begins.
    pub(crate) fn count_begun(&self) {
        self.begun.set(self.begun.get() + 1);
    }

    /// Handshakes that have begun since this was last asked.
    pub(crate) fn take_begun(&self) -> u32 {
        self.begun.take()
    }

    /// What is asked of the line.
    pub(crate) fn line<T>(&self, ask: impl FnOnce(&Line<Rc<Waiter>>) -> T) -> T {
        ask(&self.line.borrow())
    }

    /// Sends those away who have waited for longer. Returns how many.
    pub(crate) fn shed_older(&self, now: Duration, patience: Duration) -> u32 {
        let mut shed = 0;
        while let Some(waiter) = self.pop_expired(now, patience) {
            waiter.call(Decision::Shed);
            shed += 1;
        }
        shed
    }

    fn pop_expired(&self, now: Duration, patience: Duration) -> Option<Rc<Waiter>> {
        self.line.borrow_mut().pop_expired(now, patience)
    }

    fn enqueue(self: &Rc<Self>, waiter: Rc<Waiter>, stage: Stage) {
        let mut line = self.line.borrow_mut();
        let first = line.is_empty();
        match stage {
            Stage::Begun => line.push_begun(waiter),
            Stage::New(class) => line.push(waiter, class, since_start()),
        }
        drop(line);
        if first {
            self.tasks.spawn("handshakes' budget", Rc::clone(self).drain_line());
            self.waited.notify_one();
        }
    }

    /// Begins new iterations until the line is empty. A yielding task runs again after the event loop has looked for
    /// events and queued the tasks that they wake.
    async fn drain_line(self: Rc<Self>) {
        while !self.line.borrow().is_empty() {
            tokio::task::yield_now().await;
            self.spent.set(Duration::ZERO);
            self.wake_next();
        }
    }

    fn wake_next(&self) {
        let next = self.line.borrow_mut().pop(self.is_overload.get());
        if let Some(waiter) = next {
            waiter.call(Decision::Proceed);
        }
    }
}

impl Waiter {
    fn call(&self, decision: Decision) {
        self.called.set(Some(decision));
        self.waker.borrow().wake_by_ref();
    }
}
