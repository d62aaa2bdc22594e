//! How a connection ends: the client does its part at once, and a server that does not do its own is named.

use courser_testkit::client::{Profile, Resume, Terms, Version};
use courser_testkit::competitor::{Competitor, Setting};
use courser_testkit::{Fault, FaultyServer, Folder, KeyType, Leaf, OriginServer, TestCa, require};

use crate::support::{Judged, finished, judge, judge_at, url};

fn rate(judged: &Judged) -> f64 {
    let succeeded = f64::from(u32::try_from(judged.total("/requests/succeeded")).unwrap());
    succeeded * 1e6 / f64::from(u32::try_from(judged.total("/window_us")).unwrap())
}

/// Sessions of four connections, but for those that the end of the window cuts on a busy machine: about one full handshake
/// in four, and not one in two.
fn assert_a_quarter_is_full(judged: &Judged) {
    let (full, all) = (judged.handshakes(|row| row["handshake"] == "full"), judged.handshakes(|_| true));
    assert_eq!(judged.total("/sessions"), full, "{:#}", judged.run());
    assert!(2 * all >= 5 * full && all <= 4 * full, "{full} of {all}: {:#}", judged.run());
}

/// nginx's stream module waits up to three seconds for the client's close_notify.
#[test]
fn nginx_stream_is_as_fast_as_its_connections_are() {
    if require("nginx").is_none() {
        return;
    }
    let (folder, origin) = (Folder::new(), OriginServer::http());
    let setting = Setting {
        terms: Terms {
            version: Version::Tls13,
            key: KeyType::EcdsaP256,
            resume: Resume::Ticket,
            profile: Profile::Common,
        },
        certificate: TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256)).write_combined(&folder, "site"),
        backend: origin.address(),
        backlog: 128,
        core: None,
    };
    let nginx = Competitor::Nginx.start(&setting).unwrap();
    let load = |arguments: &[&str]| judge_at("load", nginx.address, arguments);
    // The machine may be busy with other tests during one of the two.
    let rates = (0..3).map(|_| (rate(&load(&["-c", "20"])), rate(&load(&["-c", "20", "--close", "rst"]))));
    let rates: Vec<(f64, f64)> = rates.collect();
    assert!(rates.iter().any(|(orderly, reset)| orderly > &(reset / 2.0)), "{rates:?}");
    assert_a_quarter_is_full(&load(&["--rate", "10", "--reuse", "4"]));
}

/// Their handshakes are in what a request costs.
#[test]
fn kept_connections_that_were_not_open_before_are_named() {
    let server = FaultyServer::start(Fault::None);
    let load = |warm_up: &str| {
        let url = url(server.address());
        let asked =
            ["load", &url, "-c", "4", "--keepalive", "--duration", "1s", "--warm-up", warm_up, "--json"];
        Judged::of(&finished(&[&asked[..], &["--ramp-up", "0", "--quiet"]].concat()))
    };
    assert!(load("0").text("still-opening").starts_with("opening: 4 connections were made in the window"));
    assert!(!load("2s").has("still-opening"));
}

#[test]
fn a_close_notify_is_answered_at_once() {
    for version in ["1.3", "1.2"] {
        let server = FaultyServer::start(Fault::AwaitsClose);
        let judged = judge("load", &server, &["--rate", "10", "--reuse", "4", "--tls", version]);
        assert_a_quarter_is_full(&judged);
        let silent = ["lingering", "reset-at-end", "loss"].iter().all(|id| !judged.has(id));
        assert!(silent || judged.is_inconclusive(), "{version}: {:?}", judged.ids());
    }
}

#[test]
fn connections_that_linger_after_their_answer_are_counted() {
    let server = FaultyServer::start(Fault::StaysOpen);
    let judged = judge("load", &server, &["--rate", "10", "--reuse", "4"]);
    assert_a_quarter_is_full(&judged);
    assert!(
        judged.text("lingering").starts_with("lingering: 100 % of the connections"),
        "{:#}",
        judged.run()
    );
    assert!(judged.run()["totals"]["times"]["lingering"].is_object(), "{:#}", judged.run()["totals"]);
    let late = judge("load", &FaultyServer::start(Fault::ClosesLate), &["--rate", "10", "--reuse", "4"]);
    assert!(late.has("lingering") || late.is_inconclusive(), "{:?}", late.ids());
}
