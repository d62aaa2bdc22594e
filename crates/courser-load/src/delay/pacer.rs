//! Waits for moments, all of a thread's by one precise timer: the runtime's own rounds each up to a millisecond, which
//! six legs of a handshake would add up.

use std::cell::RefCell;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use courser_net::Timer;
use courser_net::timer::now;
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_local;

/// A clock to wait by.
pub(super) struct Pacer(Rc<Waiting>);

#[derive(Default)]
struct Waiting {
    /// The next first.
    waiters: RefCell<BinaryHeap<Reverse<Waiter>>>,
    /// A waiter has come that is due before all others.
    earlier: Notify,
}

struct Waiter {
    due: Duration,
    wake: oneshot::Sender<()>,
}

impl Pacer {
    /// One for the current thread's runtime.
    ///
    /// # Errors
    /// When descriptors have run out.
    pub(super) fn new() -> io::Result<Self> {
        let waiting = Rc::new(Waiting::default());
        spawn_local(drive(Rc::clone(&waiting), Timer::new()?));
        Ok(Self(waiting))
    }

    /// Waits until the monotonic clock shows `due`.
    pub(super) async fn until(&self, due: Duration) {
        if now() >= due {
            return;
        }
        let (wake, woken) = oneshot::channel();
        if self.0.add(Waiter { due, wake }) {
            self.0.earlier.notify_one();
        }
        // The other end is dropped with the runtime only.
        let _ = woken.await;
    }
}

impl Waiting {
    /// Whether it is due before all others.
    fn add(&self, waiter: Waiter) -> bool {
        let due = waiter.due;
        let earlier = self.next().is_none_or(|next| due < next);
        self.waiters.borrow_mut().push(Reverse(waiter));
        earlier
    }

    fn next(&self) -> Option<Duration> {
        self.waiters.borrow().peek().map(|Reverse(waiter)| waiter.due)
    }

    /// Wakes all that are due.
    fn wake(&self, now: Duration) {
        while self.next().is_some_and(|due| due <= now) {
            let waiter = self.waiters.borrow_mut().pop();
            // One that waits no longer is of a connection that has ended.
            let _ = waiter.map(|Reverse(waiter)| waiter.wake.send(()));
        }
    }
}

async fn drive(waiting: Rc<Waiting>, mut timer: Timer) {
    loop {
        let mut earlier = pin!(waiting.earlier.notified());
        match waiting.next() {
            None => earlier.await,
            Some(due) => {
                let first = |cx: &mut std::task::Context<'_>| match earlier.as_mut().poll(cx) {
                    Poll::Ready(()) => Poll::Ready(()),
                    // It fails only when the runtime ends.
                    Poll::Pending => timer.poll_until(cx, due).map(drop),
                };
                poll_fn(first).await;
            }
        }
        waiting.wake(now());
    }
}

impl Ord for Waiter {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}

impl PartialOrd for Waiter {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiter {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Waiter {}
