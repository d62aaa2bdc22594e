//! Checks of certificate authorities: announced by one, answered by all.

use courser_fleet::{DomainCheck, Event};
use courser_session::UnixSeconds;

use super::Segment;

#[test]
fn a_check_reaches_every_peer_and_its_acknowledgement_the_host_that_orders() {
    let mut segment = Segment::acquainted(&["a", "b", "c"]);
    let check = DomainCheck { name: "shop.example".to_owned(), digest: [3; 32], expires: UnixSeconds(99) };
    let now = segment.now;
    segment.hosts[0].member.send_check(&check, now);
    segment.run(1);
    let orders = segment.hosts[0].member.status(now).id;
    for host in [1, 2] {
        let event = Event::DomainCheck { check: check.clone(), from: orders };
        assert!(segment.hosts[host].events.contains(&event), "{:?}", segment.hosts[host].events);
        segment.hosts[host].member.acknowledge(&check.digest, orders, now);
    }
    segment.run(1);
    for host in [1, 2] {
        let from = segment.hosts[host].member.status(now).id;
        let event = Event::Acknowledged { digest: check.digest, from };
        assert!(segment.hosts[0].events.contains(&event), "{:?}", segment.hosts[0].events);
    }
    let nobody = courser_fleet::MemberId([9; 8]);
    let before = segment.sent.len();
    segment.hosts[1].member.acknowledge(&check.digest, nobody, now);
    let of_a_thousand_bytes = DomainCheck { name: "a".repeat(1000), ..check };
    segment.hosts[1].member.send_check(&of_a_thousand_bytes, now);
    assert!(segment.hosts[1].member.poll_transmit().is_none() && segment.sent.len() == before);
}
