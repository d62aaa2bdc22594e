//! The end of a session's life: absolute, whatever was renewed meanwhile.

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, Resume, Version};

use super::visitor::{Kind, SESSION_ID, TICKET, Visitor};
use crate::stage::eventually;
use crate::support::{Site, assert_line, line};

/// Long enough to come back once on a busy machine.
const LIFETIME: [&str; 2] = ["--session-lifetime", "3s"];

/// A client that comes back without a pause, each time with the session that it got last, is resumed until the
/// lifetime of the first is over, and then no more.
#[track_caller]
fn renewals_do_not_lengthen(kind: Kind) {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).args(LIFETIME).start();
    let visitor = Visitor::new(&site, kind);
    if visitor.come(&courser, "").is_none() {
        return;
    }
    let mut visits = 1;
    eventually("the session's lifetime is over", || {
        visits += 1;
        visitor.renew(&courser).is_some_and(|said| said.text.contains("New, TLS"))
    });
    assert!(visits > 2, "it was never resumed");
    assert_line(&line(&courser, visits), &[("session", "full"), ("miss", "expired"), ("end", "done")]);
}

#[test]
fn renewed_tickets_do_not_lengthen_a_session() {
    renewals_do_not_lengthen(TICKET);
}

#[test]
fn returns_by_session_id_do_not_lengthen_a_session() {
    renewals_do_not_lengthen(SESSION_ID);
}

/// With our own client, whose clock stands still: others look at the lifetime themselves and offer no old ticket.
#[test]
fn renewed_pre_shared_keys_do_not_lengthen_a_session() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).args(LIFETIME).start();
    let client = Client::new(courser.address(), Version::Tls13, EcdsaP256, Resume::Ticket);
    let is_resumed = || {
        let mut connection = client.connect().expect("the handshake succeeds");
        connection.get(1, true).expect("the page comes");
        connection.is_resumed()
    };
    let mut visits = 1;
    assert!(!is_resumed());
    eventually("the session's lifetime is over", || {
        visits += 1;
        !is_resumed()
    });
    assert!(visits > 2, "it was never resumed");
    assert_line(&line(&courser, visits), &[("session", "full"), ("miss", "expired"), ("end", "done")]);
}

#[test]
fn clients_are_told_the_lifetime() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).args(["--session-lifetime", "1000s"]).start();
    for kind in [TICKET, super::visitor::PSK] {
        let Some(said) = Visitor::new(&site, kind).come(&courser, "") else { return };
        said.has("TLS session ticket lifetime hint: 1000 (seconds)");
    }
}
