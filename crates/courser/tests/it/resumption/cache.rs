//! A session cache that is too small for its clients.

use courser_testkit::Courser;
use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::load::{Load, Until, Workload};

use super::visitor::Visitor;
use crate::support::{SESSION_ID, Site, assert_line, line};

/// The smallest that there is.
const SMALL: [&str; 2] = ["--session-cache-size", "64KiB"];

/// More sessions than fit into 64 KiB, though each were as small as its keys.
const CROWD: usize = 600;

#[test]
fn a_session_that_no_longer_fits_leads_to_a_full_handshake_and_a_new_one_is_kept() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).args(SMALL).start();
    let visitor = Visitor::new(&site, SESSION_ID);
    if visitor.come(&courser, "").is_none() {
        return;
    }
    crowd(&courser);
    visitor.is_not_resumed(&courser, "");
    let evicted = line(&courser, CROWD + 2);
    assert_line(&evicted, &[("session", "full"), ("close_reason", "done")]);
    // A cache this small remembers few of those that it had to forget.
    assert!(evicted["not_resumed"] == "evicted" || evicted["not_resumed"] == "not_found", "{evicted}");
    visitor.come(&courser, "");
    visitor.is_resumed(&courser, "");
}

#[test]
fn a_session_in_use_is_not_driven_out_by_clients_that_come_once() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).args(SMALL).start();
    let visitor = Visitor::new(&site, SESSION_ID);
    if visitor.come(&courser, "").and_then(|_| visitor.is_resumed(&courser, "")).is_none() {
        return;
    }
    crowd(&courser);
    visitor.is_resumed(&courser, "");
}

#[test]
fn a_cache_of_usual_size_keeps_them_all() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).start();
    let visitor = Visitor::new(&site, SESSION_ID);
    if visitor.come(&courser, "").is_none() {
        return;
    }
    crowd(&courser);
    visitor.is_resumed(&courser, "");
}

/// So many clients that each leave a session behind, by our own client for speed.
fn crowd(courser: &Courser) {
    let client = Client::new(courser.address(), Version::Tls12, EcdsaP256, Resume::Never);
    let load = Load {
        workload: Workload::Handshake,
        resumed: false,
        concurrency: 4,
        until: Until::Connections(CROWD),
    };
    load.run(&client).expect("every handshake succeeds");
}
