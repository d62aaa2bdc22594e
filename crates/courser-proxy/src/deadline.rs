//! Deadlines of connections: one timer wheel per worker (Varghese and Lauck, 1987, scheme 6).
//!
//! A connection has one deadline at a time, moved with every byte. The runtime's own timers cost a lock and a heap or
//! tree operation for each move; here a move to a later time is a store, and the wheel puts the entry where it belongs
//! when it next comes by.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Resolution of deadlines. They fire up to this much late, never early.
const TICK: Duration = Duration::from_millis(100);

/// Slots of the wheel: with [`TICK`] a revolution takes 51.2 s; longer deadlines go round more than once.
const SLOTS: usize = 512;

const NONE: u32 = u32::MAX;

pub(crate) struct Wheel {
    started: Instant,
    inner: RefCell<Inner>,
    /// Wakes the driver when the first entry comes.
    filled: Notify,
}

struct Inner {
    now: u64,
    slots: Box<[u32]>,
    entries: Vec<Entry>,
    free: Vec<u32>,
}

/// A deadline, linked into the list of its slot.
struct Entry {
    due: u64,
    slot: usize,
    previous: u32,
    next: u32,
    expired: bool,
    waker: Option<Waker>,
}

impl Wheel {
    pub(crate) fn new() -> Rc<Self> {
        let slots = vec![NONE; SLOTS].into();
        let inner = Inner { now: 0, slots, entries: Vec::new(), free: Vec::new() };
        Rc::new(Self { started: Instant::now(), inner: RefCell::new(inner), filled: Notify::new() })
    }

    pub(crate) fn deadline(self: &Rc<Self>, after: Duration) -> Deadline {
        let due = self.due(after);
        let mut inner = self.inner.borrow_mut();
        if inner.is_empty() {
            inner.now = ticks(self.started.elapsed());
            self.filled.notify_one();
        }
        Deadline { key: inner.insert(due), wheel: Rc::clone(self) }
    }

    /// Turns the wheel for as long as the worker lives, with a call of `turned` each time; sleeps while it is empty.
    pub(crate) async fn drive(self: Rc<Self>, turned: impl Fn()) {
        loop {
            if self.inner.borrow().is_empty() {
                self.filled.notified().await;
            }
            tokio::time::sleep(TICK).await;
            self.inner.borrow_mut().advance(ticks(self.started.elapsed()));
            turned();
        }
    }

    fn due(&self, after: Duration) -> u64 {
        ticks(self.started.elapsed() + after) + 1
    }

    /// Leaves it as a defect would: its next tick panics.
    #[cfg(test)]
    pub(crate) fn jam(&self) {
        std::mem::forget(self.inner.borrow_mut());
    }
}

fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of SLOTS")]
fn slot_of(due: u64) -> usize {
    (due % SLOTS as u64) as usize
}

impl Inner {
    fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }

    fn insert(&mut self, due: u64) -> u32 {
        let entry = Entry { due, slot: 0, previous: NONE, next: NONE, expired: false, waker: None };
        let key = match self.free.pop() {
            Some(key) => {
                self.entries[key as usize] = entry;
                key
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1)
                    .expect("descriptors run out long before 2^32 connections")
            }
        };
        self.link(key);
        key
    }

    /// A later deadline stays where it is until its slot comes by; an earlier one is moved.
    fn set(&mut self, key: u32, due: u64) {
        let entry = &mut self.entries[key as usize];
        let earlier = due < entry.due;
        entry.due = due;
        entry.expired = false;
        if earlier {
            self.unlink(key);
            self.link(key);
        }
    }

    fn remove(&mut self, key: u32) {
        self.unlink(key);
        self.entries[key as usize].waker = None;
        self.free.push(key);
    }

    fn link(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        entry.slot = slot_of(entry.due.max(self.now + 1));
        let head = std::mem::replace(&mut self.slots[entry.slot], key);
        entry.previous = NONE;
        entry.next = head;
        if head != NONE {
            self.entries[head as usize].previous = key;
        }
    }

    fn unlink(&mut self, key: u32) {
        let Entry { slot, previous, next, .. } = self.entries[key as usize];
        match previous {
            NONE => self.slots[slot] = next,
            previous => self.entries[previous as usize].next = next,
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
    }

    /// Visits every slot up to `now`.
    fn advance(&mut self, now: u64) {
        // Asleep for more than a whole turn, one turn sees everything.
        let first = (self.now + 1).max((now + 1).saturating_sub(SLOTS as u64));
        self.now = now;
        for tick in first..=now {
            self.visit(slot_of(tick));
        }
    }

    fn visit(&mut self, slot: usize) {
        let mut key = std::mem::replace(&mut self.slots[slot], NONE);
        while key != NONE {
            let entry = &mut self.entries[key as usize];
            let next = entry.next;
            if entry.due <= self.now {
                entry.expired = true;
                // Expired entries stay linked, a whole turn away, until their owner moves or drops them.
                entry.due = self.now + SLOTS as u64;
                if let Some(waker) = entry.waker.take() {
                    waker.wake();
                }
            }
            self.link(key);
            key = next;
        }
    }
}

/// A connection's deadline. Dropping it takes it off the wheel.
pub(crate) struct Deadline {
    wheel: Rc<Wheel>,
    key: u32,
}

impl Deadline {
    pub(crate) fn set(&self, after: Duration) {
        let due = self.wheel.due(after);
        self.wheel.inner.borrow_mut().set(self.key, due);
    }

    /// Ready when the deadline has passed; wakes the task when it does.
    pub(crate) fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.wheel.inner.borrow_mut();
        let entry = &mut inner.entries[self.key as usize];
        if entry.expired {
            return Poll::Ready(());
        }
        if !entry.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            entry.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.wheel.inner.borrow_mut().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner() -> Inner {
        Inner { now: 0, slots: vec![NONE; SLOTS].into(), entries: Vec::new(), free: Vec::new() }
    }

    fn expired(inner: &Inner, key: u32) -> bool {
        inner.entries[key as usize].expired
    }

    #[test]
    fn deadlines_fire_once_due_and_not_before() {
        let mut wheel = inner();
        let near = wheel.insert(3);
        let far = wheel.insert(3 + 2 * SLOTS as u64);
        wheel.advance(2);
        assert!(!expired(&wheel, near));
        wheel.advance(3);
        assert!(expired(&wheel, near) && !expired(&wheel, far));
        wheel.advance(2 + 2 * SLOTS as u64);
        assert!(!expired(&wheel, far));
        wheel.advance(3 + 2 * SLOTS as u64);
        assert!(expired(&wheel, far));
    }

    #[test]
    fn moves_are_kept_later_and_earlier() {
        let mut wheel = inner();
        let key = wheel.insert(5);
        wheel.set(key, 9);
        wheel.advance(8);
        assert!(!expired(&wheel, key));
        wheel.set(key, 900);
        wheel.set(key, 20);
        wheel.advance(19);
        assert!(!expired(&wheel, key));
        wheel.advance(20);
        assert!(expired(&wheel, key));
    }

    #[test]
    fn a_sleep_of_more_than_a_turn_misses_nothing() {
        let mut wheel = inner();
        let keys: Vec<_> = (1..2000).map(|due| wheel.insert(due)).collect();
        wheel.advance(5000);
        assert!(keys.iter().all(|&key| expired(&wheel, key)));
    }

    #[test]
    fn removed_entries_leave_the_list_whole() {
        let mut wheel = inner();
        let keys: Vec<_> = (0..5).map(|_| wheel.insert(7)).collect();
        wheel.remove(keys[0]);
        wheel.remove(keys[2]);
        wheel.remove(keys[4]);
        wheel.advance(7);
        assert!(expired(&wheel, keys[1]) && expired(&wheel, keys[3]));
        assert!(!wheel.is_empty());
        wheel.remove(keys[1]);
        wheel.remove(keys[3]);
        assert!(wheel.is_empty());
    }
}
