//! Versions, suites and groups: each list by elimination. All is offered, what the server takes is left out the next
//! time, until it takes nothing.

use courser_tls::names;
use courser_tls_client::flight::ServerFlight;

use super::prober::{Answer, InspectError, Prober};
use super::question::{Question, SHARES};

/// What is accepted in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Negotiated {
    /// Version, code point.
    pub version: u16,
    /// Suites, code points, in the order in which the server prefers them over one another.
    pub suites: Vec<u16>,
    /// Whose order counts; none where there is nothing to choose from.
    pub order: Option<Order>,
    /// Whether ChaCha20-Poly1305 is taken in spite of the server's order when the client puts it first.
    pub chacha_on_wish: bool,
    /// Key exchange groups, code points, in the order in which the server prefers them over one another.
    pub groups: Vec<u16>,
    /// Size of the finite field in bits, where it is not a group of the list (DHE up to TLS 1.2).
    pub prime_bits: Option<u32>,
}

/// Whose order of suites counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The server's.
    Server,
    /// The client's.
    Client,
}

/// What a TLS 1.3 server does with a key share of a group that it accepts and likes less than another one on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It takes the share.
    TakesShare,
    /// It asks for a share of the group it likes best (HelloRetryRequest): a round trip more.
    AsksForBest,
}

/// Each version that the server accepts, newest first, and whether it asks for a client certificate.
pub(super) fn versions(prober: &mut Prober) -> Result<(Vec<Negotiated>, bool), InspectError> {
    let (mut accepted, mut asks, mut refusal) = (Vec::new(), false, InspectError::Closed);
    for version in VERSIONS {
        let mut asked = Asked { prober, version };
        let suites = asked.candidates();
        match asked.ask(&suites, &asked.groups(), &SHARES)? {
            Answer::Said(said) if said.version() == Some(version) => {
                asks |= said.certificate_requested;
                accepted.push(asked.negotiated(suites)?);
            }
            Answer::Said(_) => {}
            Answer::Refused(how) => refusal = how.into(),
        }
    }
    if accepted.is_empty() { Err(refusal) } else { Ok((accepted, asks)) }
}

/// Offers the groups that the server likes best and next, with a share for the one it likes less.
pub(super) fn retry(prober: &mut Prober, versions: &[Negotiated]) -> Result<Option<Retry>, InspectError> {
    let Some(found) = versions.iter().find(|found| found.version == TLS13) else { return Ok(None) };
    let Some((best, others)) = found.groups.split_first() else { return Ok(None) };
    let Some(other) = others.iter().find(|group| SHARES.contains(group)) else { return Ok(None) };
    let mut asked = Asked { prober, version: TLS13 };
    let said = asked.said(&found.suites, &[*best, *other], &[*other])?;
    Ok(said.and_then(|said| match (said.retry, said.hello) {
        (Some(retry), _) => (retry.group == Some(*best)).then_some(Retry::AsksForBest),
        (None, Some(hello)) => (hello.group == Some(*other)).then_some(Retry::TakesShare),
        (None, None) => None,
    }))
}

/// Questions about one version.
struct Asked<'p> {
    prober: &'p mut Prober,
    version: u16,
}

impl Asked<'_> {
    fn negotiated(&mut self, candidates: Vec<u16>) -> Result<Negotiated, InspectError> {
        let suites = eliminate(candidates, |left| self.suite_of(left))?;
        let order = self.order(&suites)?;
        let chacha_on_wish = order == Some(Order::Server) && self.is_chacha_on_wish(&suites)?;
        let groups =
            if self.version == TLS13 { self.new_groups(&suites)? } else { self.old_groups(&suites)? };
        let prime_bits = self.prime_bits(&suites)?;
        Ok(Negotiated { version: self.version, suites, order, chacha_on_wish, groups, prime_bits })
    }

    /// Suites that the version could have.
    fn candidates(&self) -> Vec<u16> {
        names::suites()
            .map(|(code, _)| code)
            .filter(|code| is_new(*code) == (self.version == TLS13))
            .collect()
    }

    fn groups(&self) -> Vec<u16> {
        names::groups().map(|(code, _)| code).collect()
    }

    fn suite_of(&mut self, suites: &[u16]) -> Result<Option<u16>, InspectError> {
        let said = self.said(suites, &self.groups(), &SHARES)?;
        Ok(said.and_then(|said| said.hello.or(said.retry)).map(|hello| hello.suite))
    }

    /// Offers what is accepted from the back, without ChaCha20, which servers prefer for reasons of their own.
    fn order(&mut self, suites: &[u16]) -> Result<Option<Order>, InspectError> {
        let usual: Vec<u16> = suites.iter().copied().filter(|suite| !is_chacha(*suite)).collect();
        let [first, _, ..] = usual[..] else { return Ok(None) };
        let backwards: Vec<u16> = usual.iter().rev().copied().collect();
        let chosen = self.suite_of(&backwards)?;
        Ok(chosen.map(|chosen| if chosen == first { Order::Server } else { Order::Client }))
    }

    fn is_chacha_on_wish(&mut self, suites: &[u16]) -> Result<bool, InspectError> {
        let (mut wish, others): (Vec<u16>, Vec<u16>) = suites.iter().partition(|suite| is_chacha(**suite));
        if wish.is_empty() || others.is_empty() || suites.first().is_some_and(|first| is_chacha(*first)) {
            return Ok(false);
        }
        wish.extend(others);
        Ok(self.suite_of(&wish)?.is_some_and(is_chacha))
    }

    /// Without a share the server asks for one, and needs no computation of ours. One that does not is asked with the
    /// shares that we have.
    fn new_groups(&mut self, suites: &[u16]) -> Result<Vec<u16>, InspectError> {
        let asked_for = eliminate(self.groups(), |left| Ok(self.said(suites, left, &[])?.and_then(wanted)))?;
        if !asked_for.is_empty() {
            return Ok(asked_for);
        }
        eliminate(SHARES.to_vec(), |left| Ok(self.said(suites, left, left)?.and_then(wanted)))
    }

    /// The same list says which curves a certificate may be on (RFC 8422, section 5.1). Where the server takes nothing
    /// any more it is offered again what it has already taken, behind the rest: for its certificate alone.
    fn old_groups(&mut self, suites: &[u16]) -> Result<Vec<u16>, InspectError> {
        let suites: Vec<u16> =
            suites.iter().copied().filter(|suite| is_named(*suite, "TLS_ECDHE_")).collect();
        if suites.is_empty() {
            return Ok(Vec::new());
        }
        let all = self.groups();
        eliminate(all.clone(), |left| {
            if let Some(group) = self.said(&suites, left, &[])?.and_then(|said| said.group()) {
                return Ok(Some(group));
            }
            let taken = all.iter().filter(|group| !left.contains(group));
            let both: Vec<u16> = left.iter().chain(taken).copied().collect();
            Ok(self.said(&suites, &both, &[])?.and_then(|said| said.group()))
        })
    }

    fn prime_bits(&mut self, suites: &[u16]) -> Result<Option<u32>, InspectError> {
        let suites: Vec<u16> = suites.iter().copied().filter(|suite| is_named(*suite, "TLS_DHE_")).collect();
        if suites.is_empty() {
            return Ok(None);
        }
        let said = self.said(&suites, &[], &[])?;
        Ok(said.and_then(|said| said.key_exchange).and_then(|exchange| exchange.prime_bits))
    }

    /// What the server says, if it accepts this version with these.
    fn said(
        &mut self,
        suites: &[u16],
        groups: &[u16],
        shares: &[u16],
    ) -> Result<Option<ServerFlight>, InspectError> {
        let said = self.ask(suites, groups, shares)?.said();
        Ok(said.map(|said| *said).filter(|said| said.version() == Some(self.version)))
    }

    fn ask(&mut self, suites: &[u16], groups: &[u16], shares: &[u16]) -> Result<Answer, InspectError> {
        let schemes: Vec<u16> = names::schemes().map(|(code, _)| code).collect();
        let question = Question { version: self.version, suites, groups, shares, schemes: &schemes };
        self.prober.ask(&question)
    }
}

/// What is chosen from `candidates`, and then from those that are left, until nothing of them is. Ends after as many
/// questions as there are candidates, whatever the server answers.
fn eliminate(
    mut candidates: Vec<u16>,
    mut choose: impl FnMut(&[u16]) -> Result<Option<u16>, InspectError>,
) -> Result<Vec<u16>, InspectError> {
    let mut chosen = Vec::new();
    while !candidates.is_empty()
        && let Some(one) = choose(&candidates)?
        && let Some(place) = candidates.iter().position(|candidate| *candidate == one)
    {
        chosen.push(candidates.remove(place));
    }
    Ok(chosen)
}

/// The group that a TLS 1.3 server goes on with, or asks for.
fn wanted(said: ServerFlight) -> Option<u16> {
    said.retry.or(said.hello)?.group
}

fn is_new(suite: u16) -> bool {
    suite >> 8 == 0x13
}

fn is_chacha(suite: u16) -> bool {
    names::suite(suite).is_some_and(|name| name.contains("CHACHA20"))
}

fn is_named(suite: u16, beginning: &str) -> bool {
    names::suite(suite).is_some_and(|name| name.starts_with(beginning))
}

const TLS13: u16 = 0x0304;

/// Newest first.
const VERSIONS: [u16; 4] = [TLS13, 0x0303, 0x0302, 0x0301];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elimination_finds_the_servers_order_and_ends() {
        let server = [5, 3, 9];
        let choose = |left: &[u16]| Ok(server.iter().copied().find(|one| left.contains(one)));
        assert_eq!(eliminate((0..10).collect(), choose).unwrap(), [5, 3, 9]);
    }

    #[test]
    fn a_server_that_chooses_what_was_not_offered_is_not_asked_for_ever() {
        let mut questions = 0;
        let found = eliminate(vec![1, 2], |_| {
            questions += 1;
            Ok(Some(7))
        });
        assert_eq!((found.unwrap(), questions), (vec![], 1));
    }
}
