//! Servers that are none: each is counted, bounded, and costs no handshake.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use courser_store::{Access, StoreCount, StoreFailure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

use crate::support::{MINUTE, NAME, PATIENT, SHORT, Watched, worker};

const GREETING: &[u8] = b"%1\r\n$5\r\nproto\r\n:3\r\n";

/// What a bad server does with a connection.
#[derive(Clone)]
enum Behaviour {
    /// Accepts and says nothing.
    Silent,
    /// Says this at once, and nothing else.
    Babbles(&'static [u8]),
    /// Closes at once.
    Closes,
    /// Is a good server until it is asked for a value: then it says this.
    Answers(Rc<[u8]>),
    /// Is a good server until it is asked for a value: then it sends one that never ends, and says how much was taken of
    /// it.
    Endless(Rc<Cell<usize>>),
}

async fn start(behaviour: Behaviour) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((client, _)) = listener.accept().await {
            spawn_local(serve(client, behaviour.clone()));
        }
    });
    format!("redis://{address}")
}

async fn serve(mut client: TcpStream, behaviour: Behaviour) {
    if let Behaviour::Babbles(what) = behaviour {
        let _ = client.write_all(what).await;
    }
    if matches!(behaviour, Behaviour::Closes) {
        return;
    }
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(len @ 1..) = client.read(&mut buffer).await {
        let asked = &buffer[..len];
        let sent = client.write_all(&answers(asked, &behaviour)).await;
        let is_asked = asked.windows(6).any(|window| window == b"\nGET\r\n");
        if sent.is_err() || (is_asked && matches!(behaviour, Behaviour::Endless(_))) {
            break;
        }
    }
    if let Behaviour::Endless(taken) = behaviour {
        while let Ok(sent) = client.write(&buffer).await {
            taken.set(taken.get() + sent);
        }
    }
}

/// Commands are recognised by their names alone; each is one line of its own.
fn answers(asked: &[u8], behaviour: &Behaviour) -> Vec<u8> {
    let line = |line: &str| match (line, behaviour) {
        (_, Behaviour::Silent | Behaviour::Babbles(_) | Behaviour::Closes) => Vec::new(),
        ("HELLO", _) => GREETING.to_vec(),
        ("PING", _) => b"+PONG\r\n".to_vec(),
        ("SET" | "DEL", _) => b"+OK\r\n".to_vec(),
        ("GET", Behaviour::Answers(what)) => what.to_vec(),
        ("GET", Behaviour::Endless(_)) => b"$9000000000\r\n".to_vec(),
        _ => Vec::new(),
    };
    String::from_utf8_lossy(asked).split("\r\n").flat_map(line).collect()
}

/// A store that lets us in.
async fn connected(behaviour: Behaviour, timeout: Duration) -> Watched {
    let store = Watched::with(&start(behaviour).await, Access::default(), timeout);
    store.until_available().await;
    store
}

#[test]
fn one_that_never_lets_anybody_in_is_never_waited_for() {
    let http = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let noise = b"\x16\x03\x01\x00\xff$-9\r\n*9999999999\r\n";
    let nested = b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n";
    let loading = b"-LOADING Redis is loading the dataset in memory\r\n";
    let bad = [
        Behaviour::Silent,
        Behaviour::Closes,
        Behaviour::Babbles(http),
        Behaviour::Babbles(noise),
        Behaviour::Babbles(nested),
        Behaviour::Babbles(loading),
    ];
    for behaviour in bad {
        worker(async {
            let store = Watched::with(&start(behaviour).await, Access::default(), SHORT);
            for _ in 0..10 {
                assert_eq!(store.get_at_once(&NAME), Poll::Ready(Err(StoreFailure::Unavailable)));
            }
            assert_eq!(
                [StoreCount::Gets, StoreCount::Skipped].map(|what| store.count(what)),
                [0, 10],
                "it is not asked"
            );
            store.store.put(&NAME, b"waits a second for a connection", MINUTE);
            store.until_line("breaker open").await;
            store.until_count(StoreCount::Dropped, 1).await;
            assert_eq!(store.lines().len(), 1, "{:?}", store.lines());
        });
    }
}

#[test]
fn answers_that_are_none_are_counted_and_cost_no_wait() {
    let large = [b"$70000\r\n".as_slice(), &[7; 70_000], b"\r\n"].concat();
    let garbage: [&[u8]; 8] = [
        b"+OK\r\n",
        b":1\r\n",
        b"*0\r\n",
        b"%1\r\n+a\r\n+b\r\n",
        b"#t\r\n",
        b"=5\r\ntxt:a\r\n",
        b"\0\0\0\0",
        &large,
    ];
    for said in garbage {
        worker(async {
            let store = connected(Behaviour::Answers(said.into()), PATIENT).await;
            let shown = String::from_utf8_lossy(&said[..said.len().min(40)]);
            assert_eq!(store.store.get(&NAME).await, Err(StoreFailure::Protocol), "{shown:?}");
            assert_eq!(
                [StoreCount::ProtocolErrors, StoreCount::Timeouts].map(|what| store.count(what)),
                [1, 0]
            );
        });
    }
}

#[test]
fn errors_are_counted_and_cost_no_wait() {
    let errors =
        ["READONLY You can't write", "MOVED 7 10.0.0.1:1", "LOADING", "ERR unknown", "NOPERM", "?", ""];
    for error in errors {
        worker(async {
            let said = format!("-{error}\r\n").into_bytes();
            let store = connected(Behaviour::Answers(said.into()), PATIENT).await;
            for _ in 0..20 {
                assert_eq!(store.store.get(&NAME).await, Err(StoreFailure::Refused), "{error}");
            }
            assert_eq!([StoreCount::Errors, StoreCount::Timeouts].map(|what| store.count(what)), [20, 0]);
            assert_eq!(store.lines().len(), 1, "{:?}", store.lines());
            assert!(store.store.is_available());
        });
    }
}

#[test]
fn an_answer_that_never_ends_is_hung_up_on() {
    worker(async {
        let taken = Rc::new(Cell::new(0));
        let store = connected(Behaviour::Endless(Rc::clone(&taken)), PATIENT).await;
        assert_eq!(store.store.get(&NAME).await, Err(StoreFailure::Lost));
        // What the system's buffers hold was taken too.
        assert!(taken.get() < 64 << 20, "{} bytes were taken", taken.get());
        // The next connection is a good one until it is asked.
        store.until_available().await;
    });
}

#[test]
fn one_that_breaks_with_each_answer_is_left_alone_for_longer_and_longer() {
    worker(async {
        let store = connected(Behaviour::Answers(b"\0\0\0\0".as_slice().into()), PATIENT).await;
        while store.count(StoreCount::BreakerOpened) == 0 {
            store.until_available().await;
            assert_eq!(store.store.get(&NAME).await, Err(StoreFailure::Protocol));
        }
        assert_eq!([StoreCount::ProtocolErrors, StoreCount::Timeouts].map(|what| store.count(what)), [5, 0]);
        assert!(store.lines()[0].contains("not in its protocol"), "{:?}", store.lines());
    });
}
