use std::time::Duration;

use courser_net::Timer;
use rustix::time::{ClockId, clock_gettime};

use crate::run;

/// The clock that the timer goes by.
fn now() -> Duration {
    clock_gettime(ClockId::Monotonic).try_into().unwrap()
}

#[test]
fn it_never_wakes_early() {
    run(async {
        let mut timer = Timer::new().unwrap();
        for microseconds in [1, 30, 300, 3000] {
            let moment = now() + Duration::from_micros(microseconds);
            timer.until(moment).await.unwrap();
            assert!(now() >= moment);
        }
    });
}

#[test]
fn moments_that_have_passed_are_not_waited_for() {
    run(async {
        let mut timer = Timer::new().unwrap();
        timer.until(Duration::ZERO).await.unwrap();
        timer.until(now() - Duration::from_secs(1)).await.unwrap();
        timer.until(now() - Duration::from_secs(1)).await.unwrap();
    });
}

#[test]
fn an_abandoned_moment_does_not_wake_the_next_one() {
    run(async {
        let mut timer = Timer::new().unwrap();
        let soon = now() + Duration::from_micros(500);
        // Polled once, dropped, and due by the time of the second wait.
        assert!(
            tokio::select! { biased; _ = timer.until(soon) => false, () = std::future::ready(()) => true }
        );
        let mut other = Timer::new().unwrap();
        other.until(soon + Duration::from_micros(500)).await.unwrap();
        let later = now() + Duration::from_millis(5);
        timer.until(later).await.unwrap();
        assert!(now() >= later);
    });
}

#[test]
fn a_moment_beyond_the_clock_is_refused() {
    run(async { assert!(Timer::new().unwrap().until(Duration::MAX).await.is_err()) });
}
