//! One server: what is stored, how long, and under which names.

use std::net::{Ipv6Addr, TcpListener};
use std::time::Duration;

use courser_store::{MAX_VALUE_LEN, StoreCount, StoreFailure};
use courser_testkit::{Engine, leave_out};

use crate::support::{KEY, MINUTE, NAME, Watched, names, worker};

#[test]
fn what_is_put_is_found_until_it_is_deleted() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::connected(&format!("redis://{}", server.address())).await;
            assert_eq!(store.store.get(&NAME).await, Ok(None));
            store.put(&NAME, b"sealed \r\n\0 bytes").await;
            assert_eq!(store.store.get(&NAME).await, Ok(Some(b"sealed \r\n\0 bytes".to_vec())));
            store.put(&NAME, b"newer").await;
            assert_eq!(store.store.get(&NAME).await, Ok(Some(b"newer".to_vec())));
            store.delete(&NAME).await;
            assert_eq!(store.store.get(&NAME).await, Ok(None));
            let counts = &store.counters;
            let counts = [
                StoreCount::Gets,
                StoreCount::Hits,
                StoreCount::Misses,
                StoreCount::Puts,
                StoreCount::Stored,
                StoreCount::Deletes,
                StoreCount::Dropped,
                StoreCount::Errors,
            ]
            .map(|what| counts.get(what));
            assert_eq!(counts, [4, 2, 2, 2, 2, 1, 0, 0]);
            assert!(store.lines().is_empty(), "{:?}", store.lines());
        });
    }
}

#[test]
fn a_server_with_an_ipv6_address_is_reached() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return leave_out("there is no IPv6 on loopback");
    }
    for engine in Engine::installed() {
        let server = engine.start_at(Ipv6Addr::LOCALHOST.into(), &[]);
        worker(async {
            let url = format!("valkey://{}", server.address());
            assert!(url.contains("[::1]:"), "{url}");
            Watched::connected(&url).await.put(&NAME, b"value").await;
        });
    }
}

#[test]
fn what_is_put_has_its_name_its_end_and_its_database() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::connected(&format!("redis+unix://{}?db=3", server.socket().display())).await;
            store.put(&NAME, b"value").await;
        });
        assert_eq!(server.command(&["-n", "3", "KEYS", "*"]), KEY);
        assert_eq!(server.command(&["-n", "3", "GET", KEY]), "value");
        let left: u64 = server.command(&["-n", "3", "PTTL", KEY]).parse().unwrap();
        assert!((30_000..=60_000).contains(&left), "{left} ms");
    }
}

#[test]
fn what_has_ended_is_gone() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::connected(&format!("redis://{}", server.address())).await;
            store.store.put(&NAME, b"value", Duration::from_millis(1));
            store.until_count(StoreCount::Stored, 1).await;
            store.until("the key's end", || server.command(&["DBSIZE"]) == "0").await;
            assert_eq!(store.store.get(&NAME).await, Ok(None));
        });
    }
}

#[test]
fn a_burst_is_pipelined_and_more_than_may_wait_is_left_out() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::connected(&format!("redis://{}", server.address())).await;
            // Nothing of this waits, so nothing has left when the last is put.
            for number in 0..3000_u32 {
                let mut name = NAME;
                name[..4].copy_from_slice(&number.to_be_bytes());
                store.store.put(&name, b"value", MINUTE);
            }
            assert_eq!(store.count(StoreCount::Dropped), 3000 - 1024);
            store.until_count(StoreCount::Stored, 1024).await;
            assert_eq!(server.command(&["DBSIZE"]), "1024");
            store.put(&NAME, b"there is room again").await;
        });
    }
}

#[test]
fn many_questions_at_once_each_get_their_own_answer() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::connected(&format!("redis://{}", server.address())).await;
            for name in names(100) {
                store.put(&name, &name[..1]).await;
            }
            let store = std::rc::Rc::new(store);
            let asked: Vec<_> = names(200)
                .into_iter()
                .map(|name| {
                    let store = std::rc::Rc::clone(&store);
                    tokio::task::spawn_local(async move { store.store.get(&name).await })
                })
                .collect();
            for (number, asked) in asked.into_iter().enumerate() {
                let expected = (number < 100).then(|| vec![u8::try_from(number).unwrap()]);
                assert_eq!(asked.await.unwrap(), Ok(expected), "question {number}");
            }
        });
    }
}

#[test]
fn what_is_too_large_is_neither_stored_nor_taken() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::connected(&format!("redis://{}", server.address())).await;
            store.put(&NAME, &[7; MAX_VALUE_LEN]).await;
            assert_eq!(store.store.get(&NAME).await, Ok(Some(vec![7; MAX_VALUE_LEN])));
            store.store.put(&NAME, &[7; MAX_VALUE_LEN + 1], MINUTE);
            store.store.put(&NAME, b"dead already", Duration::ZERO);
            assert_eq!(store.count(StoreCount::Dropped), 2);
            server.command(&["APPEND", KEY, "x"]);
            assert_eq!(store.store.get(&NAME).await, Err(StoreFailure::Protocol));
        });
    }
}

#[test]
fn values_of_another_type_and_full_memory_are_refusals_and_told_once() {
    for engine in Engine::installed() {
        let server = engine.start(&[]);
        worker(async {
            let store = Watched::connected(&format!("redis://{}", server.address())).await;
            server.command(&["LPUSH", KEY, "x"]);
            for _ in 0..20 {
                assert_eq!(store.store.get(&NAME).await, Err(StoreFailure::Refused));
            }
            server.command(&["CONFIG", "SET", "maxmemory", "1"]);
            store.store.put(&NAME, b"value", MINUTE);
            store.until_count(StoreCount::Errors, 21).await;
            let lines = store.lines();
            assert!(matches!(&lines[..], [line] if line.contains("WRONGTYPE")), "{lines:?}");
            assert!(store.store.is_available(), "an error that comes in time is no reason to leave it alone");
        });
    }
}
