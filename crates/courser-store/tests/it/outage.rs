//! A store that stops, dies and comes back: what that costs those who ask, and what a person reads of it.

use std::task::Poll;
use std::time::Instant;

use courser_store::{Access, StoreCount, StoreFailure};
use courser_testkit::{Engine, Signal};

use crate::support::{FIVE_WAITS, MINUTE, NAME, SHORT, Watched, names, worker};

#[test]
fn a_store_that_stops_answering_costs_five_waits_and_is_used_again_when_it_answers() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::with(&format!("redis://{}", server.address()), Access::default(), SHORT);
            store.until_available().await;
            store.put(&NAME, b"value").await;

            server.signal(Signal::SIGSTOP);
            let (mut waits, began) = (0, Instant::now());
            while store.store.is_available() {
                assert_eq!(store.store.get(&NAME).await, Err(StoreFailure::Timeout));
                waits += 1;
            }
            let took = began.elapsed();
            assert!((1..=5).contains(&waits), "{waits}");
            assert!((SHORT * waits..FIVE_WAITS).contains(&took), "{waits} waits took {took:?}");
            let asked = store.count(StoreCount::Gets);
            for _ in 0..1000 {
                assert_eq!(store.get_at_once(&NAME), Poll::Ready(Err(StoreFailure::Unavailable)));
            }
            assert_eq!(
                [StoreCount::Gets, StoreCount::Skipped].map(|what| store.count(what)),
                [asked, 1000],
                "none is asked"
            );
            store.store.put(&NAME, b"left out", MINUTE);
            assert_eq!(store.count(StoreCount::Dropped), 1);
            store.until_count(StoreCount::BreakerOpenMillis, 1).await;

            server.signal(Signal::SIGCONT);
            store.until_available().await;
            assert_eq!(store.store.get(&NAME).await, Ok(Some(b"value".to_vec())));
            let counts = &store.counters;
            assert_eq!(
                [StoreCount::BreakerOpened, StoreCount::BreakerClosed, StoreCount::BreakerOpenNow]
                    .map(|what| counts.get(what)),
                [1, 1, 0]
            );
            let lines = store.lines();
            let [left, again] = &lines[..] else { panic!("{lines:?}") };
            assert!(
                left.contains("breaker open, not used until it answers in time: no answer in time"),
                "{left}"
            );
            assert!(again.contains("in use again after"), "{again}");
        });
    }
}

#[test]
fn what_is_deleted_meanwhile_is_deleted_when_the_store_is_back() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::with(&format!("redis://{}", server.address()), Access::default(), SHORT);
            store.until_available().await;
            let names: Vec<_> = names(20);
            for name in &names {
                store.put(name, b"value").await;
            }
            server.signal(Signal::SIGSTOP);
            // The first deletion is on its way when the store stops; the others meet one that is left alone.
            store.store.delete(&names[0]);
            while store.store.is_available() {
                assert_eq!(store.store.get(&NAME).await, Err(StoreFailure::Timeout));
            }
            names[1..15].iter().for_each(|name| store.store.delete(name));
            store.until_count(StoreCount::DeletesWaiting, 15).await;

            server.signal(Signal::SIGCONT);
            store.until_count(StoreCount::Deleted, 15).await;
            assert_eq!(
                [StoreCount::DeletesWaiting, StoreCount::DeletesLost].map(|what| store.count(what)),
                [0, 0]
            );
            for (number, name) in names.iter().enumerate() {
                let left = Some(b"value".to_vec()).filter(|_| number >= 15);
                assert_eq!(store.store.get(name).await, Ok(left), "{number}");
            }
        });
    }
}

#[test]
fn a_server_that_restarts_is_used_again_and_gets_what_was_put_meanwhile() {
    for engine in Engine::installed() {
        let mut server = engine.start(&[]);
        worker(async {
            let store = Watched::connected(&format!("redis://{}", server.address())).await;
            store.put(&NAME, b"value").await;
            server.kill();
            store.until("the loss is noticed", || !store.store.is_available()).await;
            assert_eq!(store.get_at_once(&NAME), Poll::Ready(Err(StoreFailure::Unavailable)));
            assert_eq!(
                [StoreCount::Gets, StoreCount::Skipped].map(|what| store.count(what)),
                [0, 1],
                "it is not asked"
            );
            server.restart();
            store.until_available().await;
            assert_eq!(store.store.get(&NAME).await, Ok(None), "it kept nothing on disk");
            store.put(&NAME, b"newer").await;
            assert_eq!(store.store.get(&NAME).await, Ok(Some(b"newer".to_vec())));
        });
    }
}

#[test]
fn a_put_without_a_connection_waits_for_one() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::new(&format!("redis://{}", server.address()));
            assert!(!store.store.is_available(), "nothing has run yet but the constructor");
            assert_eq!(store.get_at_once(&NAME), Poll::Ready(Err(StoreFailure::Unavailable)));
            store.put(&NAME, b"value").await;
            assert_eq!(store.store.get(&NAME).await, Ok(Some(b"value".to_vec())));
        });
    }
}

#[test]
fn nobody_there_is_told_once_for_all_workers() {
    for engine in Engine::installed() {
        let mut server = engine.start(&[]);
        server.kill();
        worker(async {
            let store = Watched::new(&format!("redis://{}", server.address()));
            let other = store.another();
            store.until_count(StoreCount::BreakerOpenNow, 2).await;
            let lines = store.lines();
            assert!(matches!(&lines[..], [line] if line.contains("Connection refused")), "{lines:?}");
            drop(other);
            assert_eq!(store.count(StoreCount::BreakerOpenNow), 1);
            server.restart();
            store.until_line("in use again").await;
            assert_eq!(store.lines().len(), 2, "{:?}", store.lines());
        });
    }
}

#[test]
fn a_store_that_is_dropped_closes_its_connection() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        let clients = || server.command(&["CLIENT", "LIST"]).lines().count();
        worker(async {
            let store = Watched::connected(&format!("redis://{}", server.address())).await;
            assert_eq!(clients(), 2, "ours and the one that asks");
            let Watched { store, counters, .. } = store;
            drop(store);
            let watch = Watched::new("redis://127.0.0.1:1");
            watch.until("the connection is closed", || clients() == 1).await;
            assert_eq!(counters.get(StoreCount::ConnectionsLost), 0);
        });
    }
}
