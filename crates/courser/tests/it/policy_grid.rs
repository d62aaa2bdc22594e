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
use courser_testkit::client::{Client, Intruder, Resume, Version};
use courser_testkit::{Courser, Issued, Leaf, TestCa};

use crate::fleet::keygen;
use crate::support::Site;
use place::{Place, places};
use serde_json::Value;

/// A way of resumption.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Way {
    version: Version,
    resume: Resume,
    /// Its name in the log.
    session: &'static str,
}

const TICKET: Way = Way { version: Version::Tls12, resume: Resume::Ticket, session: "ticket" };
const SESSION_ID: Way = Way { version: Version::Tls12, resume: Resume::SessionId, session: "session_id" };
const PSK: Way = Way { version: Version::Tls13, resume: Resume::Ticket, session: "psk" };

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
    Grid::new().try_all(TICKET, false, true);
}

#[test]
fn by_session_id_on_the_same_host() {
    Grid::new().try_all(SESSION_ID, false, true);
}

#[test]
fn by_pre_shared_key_on_the_same_host() {
    Grid::new().try_all(PSK, false, true);
}

#[test]
fn by_ticket_on_another_host() {
    Grid::new().try_all(TICKET, true, true);
}

/// No message carries it there here: a full handshake everywhere, and nowhere a failure.
#[test]
fn by_session_id_on_another_host() {
    Grid::new().try_all(SESSION_ID, true, false);
}

#[test]
fn by_pre_shared_key_on_another_host() {
    Grid::new().try_all(PSK, true, true);
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
        let key = keygen(site.folder.path(), "fleet.key");
        let toml = place::configuration(&site, &files, &key);
        let hosts = [(), ()].map(|()| site.configured(&toml).sockets(place::SOCKETS).start());
        let member = |index: usize| {
            authorities[index].issue(&Leaf::new(EcdsaP256).of_client(&format!("member {index}")))
        };
        Self { hosts, members: [member(0), member(1)], site }
    }

    /// Every place and card where a session can be made, by every place and card where it can be offered. `travels`:
    /// whether it reaches the host where it is offered.
    #[track_caller]
    fn try_all(&self, way: Way, on_another: bool, travels: bool) {
        let (made, offered) = (&self.hosts[0], &self.hosts[usize::from(on_another)]);
        let mut tally = Tally::default();
        for first in places() {
            for card in CARDS.into_iter().filter(|card| first.rule.refuses(*card, way.version).is_none()) {
                self.try_session(way, (made, first, card), (offered, travels), &mut tally);
            }
        }
        assert!(tally.wrong.is_empty(), "{} cells:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
        // Nobody who was refused has reached the origin, nor anybody twice.
        assert_eq!(self.site.origin.accepted(), (tally.made + tally.served) as u64);
        let lines = tally.offered + if on_another { 0 } else { tally.made };
        tally.check_log(way, &offered.connections_json(lines), travels);
    }

    /// Makes a session and offers it everywhere.
    fn try_session(
        &self,
        way: Way,
        (made, first, card): (&Courser, Place, Card),
        (offered, travels): (&Courser, bool),
        tally: &mut Tally,
    ) {
        let client = Intruder::new(way.version, EcdsaP256, way.resume);
        for second in places() {
            for other_card in CARDS {
                if client.offers_left() == 0 {
                    client.collect();
                    client.show(self.card(card));
                    assert_eq!(visit(&first.client(&client, made)), Outcome::Full, "{first:?} with {card:?}");
                    tally.made += 1;
                    client.offer();
                }
                client.show(self.card(other_card));
                let outcome = visit(&second.client(&client, offered));
                let same = first == second && travels;
                let expected = match second.rule.refuses(other_card, way.version) {
                    _ if same => Outcome::Resumed,
                    Some(alert) => refused(alert),
                    None => Outcome::Full,
                };
                tally.count(&outcome);
                if outcome != expected {
                    tally.wrong.push(format!(
                        "made at {first:?} with {card:?}, offered at {second:?} with {other_card:?}: \
                         {outcome:?}, not {expected:?}"
                    ));
                }
            }
        }
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
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        self.offered += 1;
        self.resumed += usize::from(*outcome == Outcome::Resumed);
        self.served += usize::from(!matches!(outcome, Outcome::Refused(_)));
    }

    /// The log of the host where sessions were offered says the same: whoever was served where a certificate is
    /// required had one of the right authority, resumed or not.
    #[track_caller]
    fn check_log(&self, way: Way, lines: &[Value], travels: bool) {
        let rules: HashMap<_, _> =
            places().map(|place| ((place.listener(), place.host()), place.rule)).collect();
        for line in lines.iter().filter(|line| line["end"] == "done") {
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
        // What is not resumed is a miss with its reason: the rule's or the place's own.
        let why = if travels { "other_policy" } else { "not_found" };
        assert!(count("miss", why) > 0);
    }
}

/// The line of a configuration that names a file.
fn quoted(file: &Path) -> String {
    format!("\"{}\"", file.display())
}
