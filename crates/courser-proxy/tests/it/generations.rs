//! One generation of settings in place of another, while connections come and go.

use std::net::TcpStream;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use courser_proxy::settings::Listener;
use courser_testkit::tls_client::Resume;

use crate::client::Client;
use crate::host::{Host, listen};
use crate::member::wait_for;

#[test]
fn a_thousand_swaps_under_load_lose_no_connection() {
    let (host, visits, is_over) = (Host::alone(), AtomicU64::new(0), AtomicBool::new(false));
    let visitor = || {
        while !is_over.load(Ordering::Relaxed) {
            // Whoever is refused, reset or cut off panics here.
            Client::new(&[0x0304], Resume::Never).visit(host.address);
            visits.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let _visitors = [(); 3].map(|()| scope.spawn(visitor));
        let mut seen = 0;
        for swap in 1..=1_000 {
            let generation = host.swap(host.address, Vec::new());
            assert!(generation.upgrade().is_some(), "the latest generation is freed");
            if swap % 5 == 0 {
                seen = wait_for("a visit", || Some(visits.load(Ordering::Relaxed)).filter(|now| *now > seen));
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let visits = visits.into_inner();
    assert!(visits >= 200, "{visits}");
    assert_eq!(host.counts(visits).full, visits);
}

#[test]
fn an_old_generation_is_freed_with_its_last_connection() {
    let host = Host::alone();
    let swap = || host.swap(host.address, Vec::new());
    let (unused, held) = (swap(), swap());
    // Swaps are done in order: once the one before is gone, the next connection is under `held`.
    wait_for("the end of a generation without connections", || is_gone(&unused));
    let connection = Client::by_id().connect(host.address);
    let (unused, _last) = (swap(), swap());
    wait_for("the end of a later generation", || is_gone(&unused));
    assert!(held.upgrade().is_some(), "its connection is open");
    drop(connection);
    wait_for("the end of the generation of the connection", || is_gone(&held));
}

fn is_gone(generation: &Weak<Listener>) -> Option<()> {
    (generation.strong_count() == 0).then_some(())
}

#[test]
fn a_swap_opens_sockets_that_are_new_and_closes_those_that_have_no_listener() {
    let (host, (socket, address)) = (Host::alone(), listen());
    host.swap(address, vec![socket]);
    Client::by_id().visit(address);
    wait_for("the end of the old socket", || TcpStream::connect(host.address).err());
}

#[test]
fn a_swap_within_a_hello_or_a_half_close_is_not_seen_by_the_client() {
    let host = Host::alone();
    let swap = || {
        let (unused, _last) = [(); 2].map(|()| host.swap(host.address, Vec::new())).into();
        // Swaps are done in order: the last one is done when the one before is gone.
        wait_for("the end of a generation without connections", || is_gone(&unused));
    };
    for version in [0x0303, 0x0304] {
        let mut client = Client::new(&[version], Resume::Never);
        client.connect_in_halves(host.address, swap).half_close(swap);
    }
}
