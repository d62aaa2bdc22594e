//! Tickets and session IDs switched off, one by one and together.

use courser_testkit::KeyType::EcdsaP256;

use super::visitor::Visitor;
use crate::support::{PSK, SESSION_ID, Site, TICKET, WAYS, assert_line, line};

#[test]
fn without_tickets_tls_1_3_clients_get_none_and_make_full_handshakes() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).arg("--no-tickets").start();
    let visitor = Visitor::new(&site, PSK);
    let Some(said) = visitor.come(&courser, "") else { return };
    said.lacks("Session Ticket arrived");
    assert!(!visitor.session.exists());
}

#[test]
fn without_tickets_tls_1_2_clients_that_would_take_them_resume_by_session_id() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).arg("--no-tickets").start();
    let visitor = Visitor::new(&site, TICKET);
    let Some(said) = visitor.come(&courser, "") else { return };
    said.lacks("TLS session ticket:");
    visitor.is_resumed(&courser, "");
    assert_line(&line(&courser, 2), &[("session", "session_id"), ("close_reason", "done")]);
}

#[test]
fn without_session_ids_clients_without_tickets_get_no_session() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).arg("--no-session-ids").start();
    let visitor = Visitor::new(&site, SESSION_ID);
    let Some(said) = visitor.come(&courser, "") else { return };
    said.has("Session-ID: \n");
    assert!(!visitor.session.exists());
}

#[test]
fn without_session_ids_tickets_are_resumed_all_the_same() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).arg("--no-session-ids").start();
    for way in [TICKET, PSK] {
        let visitor = Visitor::new(&site, way);
        if visitor.come(&courser, "").and_then(|_| visitor.is_resumed(&courser, "")).is_none() {
            return;
        }
    }
}

#[test]
fn a_session_id_from_when_there_were_some_leads_to_a_full_handshake() {
    let site = Site::new();
    let with = site.serve(&[EcdsaP256]).start();
    let without = site.serve(&[EcdsaP256]).arg("--no-session-ids").start();
    let visitor = Visitor::new(&site, SESSION_ID);
    if visitor.come(&with, "").is_none() {
        return;
    }
    visitor.is_not_resumed(&without, "");
    assert_line(&line(&without, 1), &[("session", "full"), ("close_reason", "done")]);
}

#[test]
fn with_both_switched_off_nothing_is_resumed() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).args(["--no-tickets", "--no-session-ids"]).start();
    for way in WAYS {
        let visitor = Visitor::new(&site, way);
        let Some(said) = visitor.come(&courser, "") else { return };
        said.lacks("TLS session ticket:").lacks("Session Ticket arrived");
        assert!(!visitor.session.exists(), "{}", said.text);
    }
}

#[test]
fn a_ticket_from_when_there_were_tickets_leads_to_a_full_handshake() {
    let site = Site::new();
    let with = site.serve(&[EcdsaP256]).start();
    let without = site.serve(&[EcdsaP256]).arg("--no-tickets").start();
    for (index, way) in [TICKET, PSK].into_iter().enumerate() {
        let visitor = Visitor::new(&site, way);
        if visitor.come(&with, "").is_none() {
            return;
        }
        visitor.is_not_resumed(&without, "");
        assert_line(&line(&without, index + 1), &[("session", "full"), ("close_reason", "done")]);
    }
}

#[test]
fn the_number_of_tickets_is_as_configured() {
    for count in ["0", "1", "4"] {
        let site = Site::new();
        let courser = site.serve(&[EcdsaP256]).args(["--tickets-per-handshake", count]).start();
        let Some(said) = Visitor::new(&site, PSK).come(&courser, "") else { return };
        assert_eq!(said.text.matches("New Session Ticket arrived").count().to_string(), count);
    }
}
