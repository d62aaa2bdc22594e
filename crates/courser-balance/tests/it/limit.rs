//! Limits that hold to the connection, and the line of those who wait.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use courser_balance::{Balance, Handover, Pick, Pool, ServerPermit, Waiting};

use crate::support::{place, pool, request};

const PATIENCE: Duration = Duration::from_secs(5);

fn at(millis: u64) -> Duration {
    Duration::from_secs(1000) + Duration::from_millis(millis)
}

fn join(pool: &Pool<usize>, since: u64) -> Waiting<ServerPermit<usize>> {
    pool.wait(&request(0), at(since), PATIENCE, at(since)).expect_err("the pool is full")
}

fn poll(waiting: &mut Waiting<ServerPermit<usize>>) -> Poll<Handover<ServerPermit<usize>>> {
    waiting.poll(&mut Context::from_waker(Waker::noop()))
}

fn is_served(waiting: &mut Waiting<ServerPermit<usize>>) -> Option<ServerPermit<usize>> {
    match poll(waiting) {
        Poll::Ready(Handover::Permit(place)) => Some(place),
        Poll::Ready(Handover::Changed) | Poll::Pending => None,
    }
}

#[test]
fn a_place_that_is_given_back_goes_to_the_first_in_line_and_to_nobody_else() {
    let pool = pool(Balance::Least, &[1], Some(1));
    let held = place(&pool, 0, at(0)).unwrap();
    let (mut first, mut second) = (join(&pool, 0), join(&pool, 1));
    drop(held);
    assert!(place(&pool, 0, at(2)).is_none(), "whoever comes now comes after them");
    let held = is_served(&mut first).expect("the first has it");
    assert!(is_served(&mut second).is_none());
    drop(held);
    assert!(is_served(&mut second).is_some());
}

#[test]
fn once_the_oldest_has_waited_for_half_its_time_the_newest_is_first() {
    let pool = pool(Balance::Least, &[1], Some(1));
    let held = place(&pool, 0, at(0)).unwrap();
    let mut line = [join(&pool, 0), join(&pool, 1000), join(&pool, 2500)];
    drop(held);
    assert!(is_served(&mut line[2]).is_some(), "the third came when the first had waited for 2.5 of 5 s");
}

#[test]
fn who_leaves_with_a_place_in_hand_passes_it_on() {
    let pool = pool(Balance::Least, &[1], Some(1));
    let held = place(&pool, 0, at(0)).unwrap();
    let (first, mut second) = (join(&pool, 0), join(&pool, 1));
    drop(held);
    drop(first);
    assert!(is_served(&mut second).is_some());
    assert_eq!((pool.waiting(), pool.servers()[0].in_flight()), (0, 0));
}

#[test]
fn a_pool_that_changes_is_looked_at_again_by_all_who_wait() {
    let pool = pool(Balance::Least, &[1, 1], Some(1));
    pool.servers()[1].set_down(true, at(0));
    let _held = place(&pool, 0, at(0)).unwrap();
    let mut waiting = [join(&pool, 0), join(&pool, 1)];
    pool.servers()[1].set_down(false, at(2));
    assert!(waiting.iter_mut().all(|one| matches!(poll(one), Poll::Ready(Handover::Changed))));
    assert!(place(&pool, 0, at(3)).is_some());
}

#[test]
fn no_place_of_a_server_that_is_down_is_handed_over() {
    let pool = pool(Balance::Least, &[1, 1], Some(1));
    let [held, _other] = [0, 1].map(|number| place(&pool, number, at(0)).unwrap());
    held.server().set_down(true, at(0));
    let mut waiting = join(&pool, 1);
    drop(held);
    assert!(is_served(&mut waiting).is_none());
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Takes a place as a worker would, waiting for it for at most `patience`.
fn take(pool: &Pool<usize>, number: u64, start: Instant, patience: Duration) -> Option<ServerPermit<usize>> {
    let since = start.elapsed();
    loop {
        match pool.choose(&request(number), start.elapsed()) {
            Pick::Server(place) => return Some(place),
            Pick::None => return None,
            Pick::Full => {}
        }
        let mut waiting = match pool.wait(&request(number), since, patience, start.elapsed()) {
            Ok(Pick::Server(place)) => return Some(place),
            Ok(_) => return None,
            Err(waiting) => waiting,
        };
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            match waiting.poll(&mut cx) {
                Poll::Ready(Handover::Permit(place)) => return Some(place),
                Poll::Ready(Handover::Changed) => break,
                Poll::Pending => {}
            }
            let left = patience.checked_sub(start.elapsed() - since)?;
            thread::park_timeout(left);
        }
    }
}

#[test]
fn sixteen_workers_never_give_a_server_an_eighth_connection_and_lose_no_place() {
    const WORKERS: u32 = 16;
    const EACH: u32 = 20_000;
    let (pool, start) = (pool(Balance::Least, &[1, 1], Some(7)), Instant::now());
    let at_servers = [const { AtomicU32::new(0) }; 2];
    let (served, gone, begin) = (AtomicU32::new(0), AtomicU32::new(0), Barrier::new(WORKERS as usize));
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (pool, at_servers, served, gone, begin) = (&pool, &at_servers, &served, &gone, &begin);
            scope.spawn(move || {
                begin.wait();
                for number in 0..EACH {
                    // Some give up nearly at once, as clients do; some tasks panic with a place in hand.
                    let patience = Duration::from_micros(if number % 3 == 0 { 5 } else { 60_000_000 });
                    let Some(place) = take(pool, u64::from(number + worker), start, patience) else {
                        gone.fetch_add(1, Ordering::Relaxed);
                        continue;
                    };
                    let server = &at_servers[place.server().target];
                    assert!(server.fetch_add(1, Ordering::SeqCst) < 7, "an eighth connection");
                    if number % 7 == 0 {
                        thread::yield_now();
                    }
                    server.fetch_sub(1, Ordering::SeqCst);
                    served.fetch_add(1, Ordering::Relaxed);
                    if number % 1000 == 0 {
                        let panicking = AssertUnwindSafe(|| {
                            let _place = place;
                            std::panic::resume_unwind(Box::new("on purpose"));
                        });
                        assert!(catch_unwind(panicking).is_err());
                    }
                }
            });
        }
    });
    assert_eq!(served.load(Ordering::Relaxed) + gone.load(Ordering::Relaxed), WORKERS * EACH);
    assert!(served.load(Ordering::Relaxed) > WORKERS * EACH / 3, "those with patience are served");
    let left: Vec<_> = pool.servers().iter().map(|server| server.in_flight()).collect();
    assert_eq!((pool.waiting(), left), (0, vec![0, 0]), "every place came back");
}

#[test]
fn a_wait_can_be_awaited() {
    let pool = pool(Balance::Least, &[1], Some(1));
    let held = place(&pool, 0, at(0)).unwrap();
    let mut waiting = join(&pool, 0);
    let mut future = std::pin::pin!(poll_fn(|cx| waiting.poll(cx)));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut cx).is_pending());
    drop(held);
    assert!(future.as_mut().poll(&mut cx).is_ready());
}
