//! Sessions that were made elsewhere: under another virtual host, on another listener, by another process. Each time a
//! full handshake, never a failure.

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::{Courser, Leaf};

use super::visitor::Visitor;
use crate::support::{SESSION_ID, Site, TICKET, WAYS, assert_line, later_line, line, text};

/// Two virtual hosts, the second with other suites.
fn two_hosts(site: &Site) -> Courser {
    let cert = |name: &str| {
        let leaf = Leaf::new(EcdsaP256).names([name]);
        site.ca.issue(&leaf).write_combined(&site.folder, name)
    };
    let (a, b) = (cert("a.example"), cert("b.example"));
    let toml = format!(
        r#"
        [[listener]]
        listen = "127.0.0.1:0"
        backend = "BACKEND"
        cert = "{}"
        [[listener.host]]
        name = "b"
        cert = "{}"
        suites = ["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]
        "#,
        text(&a),
        text(&b)
    );
    site.configured(&toml).start()
}

#[test]
fn a_session_of_one_virtual_host_is_not_resumed_by_another() {
    let site = Site::new();
    let courser = two_hosts(&site);
    for (index, way) in WAYS.into_iter().enumerate() {
        let visitor = Visitor::new(&site, way);
        if visitor.come(&courser, "-servername a.example").is_none() {
            return;
        }
        visitor.is_not_resumed(&courser, "-servername b.example");
        let other = line(&courser, 3 * index + 2);
        assert_line(
            &other,
            &[("host", "b"), ("session", "full"), ("not_resumed", "other_policy"), ("close_reason", "done")],
        );
        visitor.is_resumed(&courser, "-servername a.example");
        assert_line(&line(&courser, 3 * index + 3), &[("session", way.session)]);
    }
}

#[test]
fn a_session_of_another_name_of_the_same_host_is_not_resumed() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).start();
    for (index, way) in WAYS.into_iter().enumerate() {
        let visitor = Visitor::new(&site, way);
        if visitor.come(&courser, "-servername a.example").is_none() {
            return;
        }
        visitor.is_not_resumed(&courser, "-servername b.example");
        let fields = [("session", "full"), ("not_resumed", "other_parameters"), ("close_reason", "done")];
        assert_line(&later_line(&courser, 2 * index + 2), &fields);
    }
}

#[test]
fn a_session_of_another_suite_is_not_resumed() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).start();
    for (index, way) in [TICKET, SESSION_ID].into_iter().enumerate() {
        let visitor = Visitor::new(&site, way);
        if visitor.come(&courser, "-cipher ECDHE-ECDSA-AES256-GCM-SHA384").is_none() {
            return;
        }
        visitor
            .is_not_resumed(&courser, "-cipher ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384");
        let fields = [("session", "full"), ("not_resumed", "other_parameters"), ("close_reason", "done")];
        assert_line(&later_line(&courser, 2 * index + 2), &fields);
    }
}

#[test]
fn a_session_of_one_listener_is_not_resumed_by_another() {
    let site = Site::new();
    let cert = site.cert(EcdsaP256);
    let listener = |name: &str| {
        let cert = text(&cert);
        format!(
            "[[listener]]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\nbackend = \"BACKEND\"\ncert = \"{cert}\"\n"
        )
    };
    let courser = site.configured(&(listener("one") + &listener("two"))).sockets(2).start();
    let second = courser.addresses()[1].clone();
    for (index, way) in WAYS.into_iter().enumerate() {
        let visitor = Visitor::new(&site, way);
        // OpenSSL takes the last of several `-connect`.
        if visitor.come(&courser, &format!("-connect {second}")).is_none() {
            return;
        }
        visitor.is_not_resumed(&courser, "");
        let fields = [
            ("listener", "one"),
            ("session", "full"),
            ("not_resumed", "other_policy"),
            ("close_reason", "done"),
        ];
        assert_line(&later_line(&courser, 2 * index + 2), &fields);
    }
}

#[test]
fn a_session_from_before_a_restart_leads_to_a_full_handshake() {
    let site = Site::new();
    let [before, after] = [(), ()].map(|()| site.serve(&[EcdsaP256]).start());
    for (index, (way, miss)) in WAYS.into_iter().zip(["unknown_key", "not_found", "unknown_key"]).enumerate()
    {
        let visitor = Visitor::new(&site, way);
        if visitor.come(&before, "").is_none() {
            return;
        }
        visitor.is_not_resumed(&after, "");
        let fields = [("session", "full"), ("not_resumed", miss), ("close_reason", "done")];
        assert_line(&line(&after, index + 1), &fields);
    }
}
