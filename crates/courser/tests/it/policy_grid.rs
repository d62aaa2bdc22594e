//! The policy grid: a session made at any place, with any certificate, is offered at every place, with every
//! certificate. It never gets past what that place asks for, never fails where a full handshake would succeed, and is
//! resumed exactly where it was made, on the same host or on another of its fleet.
//!
//! A place is a listener or a virtual host with its own rule about client certificates.

mod changes;
mod handed_on;
mod place;

use std::collections::HashMap;
use std::path::Path;

use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, SessionThief};
use courser_testkit::{Courser, Issued, Leaf, TestCa, free_port};

use crate::fleet::keygen;
use crate::stage::eventually;
use crate::support::{PSK, SESSION_ID, Site, TICKET, Way, openssl};
use place::{Place, places};
use serde_json::Value;

/// What a client shows: nothing, or a certificate of one of the two authorities, by its index.
type Card = Option<usize>;
const CARDS: [Card; 3] = [None, Some(0), Some(1)];

/// What comes of a visit.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Resumed,
    Full,
    /// No page, and this alert, or another error.
    Refused(String),
}

fn refused(alert: &str) -> Outcome {
    Outcome::Refused(alert.to_owned())
}

#[test]
fn by_ticket_on_the_same_host() {
    Grid::new().try_all(TICKET, 0);
}

#[test]
fn by_session_id_on_the_same_host() {
    Grid::new().try_all(SESSION_ID, 0);
}

#[test]
fn by_pre_shared_key_on_the_same_host() {
    Grid::new().try_all(PSK, 0);
}

#[test]
fn by_ticket_on_another_host() {
    Grid::new().try_all(TICKET, 1);
}

#[test]
fn by_session_id_on_another_host() {
    Grid::new().try_all(SESSION_ID, 1);
}

#[test]
fn by_pre_shared_key_on_another_host() {
    Grid::new().try_all(PSK, 1);
}

/// OpenSSL, as a judge of the cells that others got wrong: another name with the same rule, in each version. With the
/// certificate a full handshake and the page, without it an alert.
#[test]
fn openssl_gets_a_full_handshake_at_another_name_and_no_bypass() {
    let grid = Grid::new();
    let file = grid.members[0].write_combined(&grid.site.folder, "member");
    let session = grid.site.folder.join("session");
    let own = format!("-cert {0} -key {0}", file.display());
    for (version, alert) in [("-tls1_2", "handshake failure"), ("-tls1_3", "certificate required")] {
        let ask = |place: Place, more: &str| {
            let (address, name) = (place.address(&grid.hosts[0]), place.server_name());
            openssl(address, &format!("{version} -servername {name} {more}"))
        };
        let [made, offered] = ["optional", "required"].map(|mode| {
            let wanted = |place: &Place| place.rule.mode == mode && place.rule.authority == Some(0);
            places().filter(wanted).last().expect("it is a virtual host")
        });
        let Some(said) = ask(made, &format!("{own} -sess_out {}", session.display())) else { return };
        said.has_page().has("New, TLSv1");
        let offer = format!("-sess_in {}", session.display());
        ask(made, &offer).unwrap().has_page().has("Reused, TLSv1");
        ask(offered, &format!("{own} {offer}")).unwrap().has_page().has("New, TLSv1");
        ask(offered, &offer).unwrap().has(alert).lacks("HTTP/1");
    }
}

/// Two hosts of a fleet with the same places, and clients of both authorities.
struct Grid {
    site: Site,
    hosts: [Courser; 2],
    members: [Issued; 2],
}

impl Grid {
    fn new() -> Self {
        let site = Site::new();
        let authorities = ["clients 1", "clients 2"].map(TestCa::named);
        let files = [0, 1]
            .map(|index| site.folder.write(&format!("clients-{index}.pem"), authorities[index].root_pem()));
        let (key, places) = (keygen(site.folder.path(), "fleet.key"), place::configuration(&site, &files));
        let ports = [(); 2].map(|()| free_port());
        let host = |own: usize| {
            let (key, port, peer) = (quoted(&key), ports[own], ports[1 - own]);
            let listen = format!("listen = \"127.0.0.1:{port}\"\npeer = \"127.0.0.1:{peer}\"");
            site.configured(&format!("[fleet]\nname = \"host-{own}\"\nkey = {key}\n{listen}\n{places}"))
                .sockets(place::SOCKETS)
                .start()
        };
        let hosts = [host(0), host(1)];
        let member = |index: usize| {
            authorities[index].issue(&Leaf::new(EcdsaP256).of_client(&format!("member {index}")))
        };
        Self { hosts, members: [member(0), member(1)], site }
    }

    /// Every place and card where a session can be made on the first host, by every place and card where it can be
    /// offered on that of number `other`.
    #[track_caller]
    fn try_all(&self, way: Way, other: usize) {
        let offered = &self.hosts[other];
        let mut tally = Tally::default();
        for first in places() {
            for card in CARDS.into_iter().filter(|card| first.rule.refuses(*card, way.version).is_none()) {
                self.try_session(way, (first, card), offered, &mut tally);
            }
        }
        assert!(tally.wrong.is_empty(), "{} cells:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
        // Nobody who was refused has reached the origin, nor anybody twice.
        assert_eq!(self.site.origin.accepted(), (tally.made + tally.served) as u64);
        let lines = tally.offered + if other == 0 { tally.made } else { 0 };
        tally.check_log(way, &offered.connections_json(lines));
    }

    /// Makes a session and offers it everywhere.
    fn try_session(&self, way: Way, (first, card): (Place, Card), offered: &Courser, tally: &mut Tally) {
        let client = SessionThief::new(way.version, EcdsaP256, way.resume);
        for second in places() {
            for other_card in CARDS {
                if client.offers_left() == 0 {
                    self.make(&client, first, card);
                    tally.made += 1;
                    if way == SESSION_ID {
                        eventually("the session is where it will be offered", || {
                            let outcome = tally.count(visit(&first.client(&client, offered)));
                            tally.early += usize::from(outcome == Outcome::Full);
                            outcome == Outcome::Resumed
                        });
                    }
                }
                client.set_certificate(self.card(other_card));
                let outcome = tally.count(visit(&second.client(&client, offered)));
                let expected = match second.rule.refuses(other_card, way.version) {
                    _ if first == second => Outcome::Resumed,
                    Some(alert) => refused(alert),
                    None => Outcome::Full,
                };
                if outcome != expected {
                    tally.wrong.push(format!(
                        "made at {first:?} with {card:?}, offered at {second:?} with {other_card:?}: \
                         {outcome:?}, not {expected:?}"
                    ));
                }
            }
        }
    }

    /// Lets a client have a session of the first host.
    #[track_caller]
    fn make(&self, client: &SessionThief, place: Place, card: Card) {
        client.capture();
        client.set_certificate(self.card(card));
        assert_eq!(visit(&place.client(client, &self.hosts[0])), Outcome::Full, "{place:?} with {card:?}");
        client.offer();
    }

    fn card(&self, card: Card) -> Option<&Issued> {
        card.map(|authority| &self.members[authority])
    }
}

/// Asks for a page.
fn visit(client: &Client) -> Outcome {
    let visited = client.connect().and_then(|mut connection| {
        connection.get(1, true)?;
        Ok(connection.is_resumed())
    });
    match visited {
        Ok(true) => Outcome::Resumed,
        Ok(false) => Outcome::Full,
        Err(error) => {
            let known = ["CertificateRequired", "HandshakeFailure", "UnknownCA"];
            let named = known.into_iter().find(|alert| error.to_string().contains(alert));
            named.map_or_else(|| Outcome::Refused(error.to_string()), refused)
        }
    }
}

/// Offers a session at another host, as long as it takes to come there if it does not travel with the client.
#[track_caller]
fn is_resumed_elsewhere(way: Way, client: &Client) {
    match way == SESSION_ID {
        true => eventually("the session is where it is offered", || visit(client) == Outcome::Resumed),
        false => assert_eq!(visit(client), Outcome::Resumed, "{}", way.session),
    }
}

/// What came of all visits.
#[derive(Default)]
struct Tally {
    wrong: Vec<String>,
    /// Visits that a session was made at.
    made: usize,
    /// Visits that one was offered at, how many of them got the page, and how many were resumed.
    offered: usize,
    served: usize,
    resumed: usize,
    /// Visits that were served before the session had come from the other host.
    early: usize,
}

impl Tally {
    fn count(&mut self, outcome: Outcome) -> Outcome {
        self.offered += 1;
        self.resumed += usize::from(outcome == Outcome::Resumed);
        self.served += usize::from(!matches!(outcome, Outcome::Refused(_)));
        outcome
    }

    /// The log of the host where sessions were offered says the same: whoever was served where a certificate is
    /// required had one of the right authority, resumed or not.
    #[track_caller]
    fn check_log(&self, way: Way, lines: &[Value]) {
        let rules: HashMap<_, _> =
            places().map(|place| ((place.listener(), place.host()), place.rule)).collect();
        for line in lines.iter().filter(|line| line["close_reason"] == "done") {
            let field = |name: &str| line[name].as_str().expect("every connection has one").to_owned();
            let rule = rules[&(field("listener"), field("host"))];
            let card = line["client_cert"].as_str();
            let expected = rule.authority.map(|authority| format!("member {authority}"));
            match rule.mode {
                "required" => assert_eq!(card, expected.as_deref(), "{line}"),
                "optional" => assert!(card.is_none() || card == expected.as_deref(), "{line}"),
                _ => assert_eq!(card, None, "{line}"),
            }
        }
        let count = |name: &str, value: &str| lines.iter().filter(|line| line[name] == value).count();
        assert_eq!(count("session", way.session), self.resumed);
        // A full handshake where a session was offered has its reason, and no other one.
        let why = |line: &&Value| line["close_reason"] == "done" && line["not_resumed"] == "other_policy";
        let explained = lines.iter().filter(why).count();
        assert_eq!(explained, self.served - self.resumed - self.early);
    }
}

/// The line of a configuration that names a file.
fn quoted(file: &Path) -> String {
    format!("\"{}\"", file.display())
}
