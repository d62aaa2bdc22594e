//! A run as a whole, and what is read beside it.

use std::fs;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use courser_load::plan::{LoadTarget, Model, Offered, Phases, Plan, Reuse, Sockets, Workload};
use courser_load::run::{Run, thread_name};
use courser_load::schedule::{Arrivals, Piece, Share};
use courser_record::CloseMode;
use courser_testkit::free_port;

/// A moment of connections to where nobody listens: they end at once, and the threads have nothing left to do.
fn short() -> Plan {
    let steady = Duration::from_millis(200);
    let second = Duration::from_secs(1);
    Plan {
        target: LoadTarget {
            addresses: vec![SocketAddr::from(([127, 0, 0, 1], free_port()))],
            security: None,
        },
        model: Model::Connections(Offered {
            steps: vec![Piece::even(20.0, steady)],
            arrivals: Arrivals::Even,
        }),
        reuse: Reuse::Times(1),
        exchange: Workload::Handshake,
        close: CloseMode::Fin,
        sockets: Sockets::default(),
        phases: Phases {
            warm_up: Duration::ZERO,
            ramp: Duration::ZERO,
            steady,
            drain: second,
            connect_timeout: second,
            timeout: second,
            pause: Duration::ZERO,
            in_flight: 100,
        },
        threads: vec![None],
        share: Share::WHOLE,
        seed: 1,
        origin: None,
    }
}

fn has_thread(name: &str) -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).any(|comm| comm.trim() == name)
}

/// The processor time of a thread that has ended cannot be read.
#[test]
fn threads_are_there_until_they_are_sampled_however_late() {
    let (tell, done) = mpsc::channel();
    let mut calls = 0;
    let sample = move || {
        calls += 1;
        if calls == 2 {
            done.recv().unwrap();
        }
        // Time enough for a thread that goes to be gone.
        (0..300).all(|_| has_thread(&thread_name(0)))
    };
    let mut run = Run::start(short(), None, sample).unwrap();
    while run.next_second().is_some() {}
    tell.send(()).unwrap();
    let outcome = run.finish().unwrap();
    assert_eq!(outcome.windows[0].samples, Some([true, true]));
    assert!(outcome.windows[0].tally.connections > 0);
}
