//! Listeners with the same port 0 in the settings: each has a socket of its own, and keeps it.

use courser_testkit::OriginServer;

use super::{Service, text};
use crate::stage::run_courser;

#[test]
fn a_listener_keeps_its_port_where_a_new_one_asks_for_any_port_as_well() {
    let (web, more) = (OriginServer::http(), OriginServer::http());
    let before = text(&web);
    let new = format!(
        "[[listener]]\nname = 'more'\nlisten = '127.0.0.1:0'\ncert = 'CERT'\nbackend = '{}'\n",
        more.backend()
    );
    // In front, where it is opened first.
    let after = before.replacen("[[listener]]", &format!("{new}[[listener]]"), 1);
    for verb in ["reload", "upgrade"] {
        let service = Service::start(&before);
        service.change(&after);
        let done = run_courser(&[verb, "--control", &service.control]);
        assert!(done.status.success(), "{}", done.stderr);
        service.serves();
        assert_eq!(more.accepted(), 0, "{verb}: the new listener has the port of the other one");
    }
    assert_eq!(web.accepted(), 2);
}

#[test]
fn an_address_that_a_listener_has_twice_is_two_sockets_over_every_upgrade() {
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin).replace("'127.0.0.1:0'", "['127.0.0.1:0', '127.0.0.1:0']"));
    for _ in 0..2 {
        let done = service.upgrade(&[]);
        // Two workers have one each of both.
        assert!(done.stdout.contains("sockets: 4"), "{}{}", done.stdout, done.stderr);
        service.serves();
    }
}
