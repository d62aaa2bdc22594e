//! One order, from wherever it is: each step looks at what the CA has, and what outlives the process is written before the
//! next one.

use std::time::{Duration, SystemTime};

use instant_acme::{
    AuthorizationHandle, AuthorizationStatus, ChallengeStatus, ChallengeType, Identifier, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use crate::board::{Challenge, ChallengeBoard, Unanswered};
use crate::certificate;
use crate::client::{Ca, certificate_id};
use crate::folder::SetState;
use crate::names::NameSet;
use crate::plan::Setback;
use crate::trouble::{Trouble, words};
use crate::unread;

/// How long a CA may take to look, and then to issue; it may ask for pauses in between.
const PATIENCE: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(90));

/// How long the answer to a challenge is kept, where nobody says that it is not needed any more.
const CHALLENGE: Duration = Duration::from_secs(600);

/// What is ordered, by whom and how.
pub(crate) struct Job<'a> {
    pub(crate) ca: &'a Ca,
    pub(crate) set: &'a NameSet,
    pub(crate) profile: Option<&'a str>,
    /// The certificate that it takes the place of, where the CA wants to know (RFC 9773, section 5).
    pub(crate) replaces: Option<&'a (String, String)>,
    pub(crate) board: &'a dyn ChallengeBoard,
    /// Writes what has to outlive the process.
    pub(crate) save: &'a dyn Fn(&SetState) -> std::io::Result<()>,
}

/// A chain and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Job<'_> {
    /// Orders, or goes on with the order of `state`. The order stays in it until the pair is written.
    pub(crate) async fn obtain(&self, state: &mut SetState) -> Result<Pair, Trouble> {
        self.ca.check_profile(self.profile)?;
        let mut order = self.open(state).await?;
        let ended = self.follow(&mut order, state).await;
        if is_over(self.set, &ended) {
            self.set.names().iter().for_each(|name| self.board.withdraw(name));
        }
        if ended.is_err() && order.state().status == OrderStatus::Invalid {
            (state.order, state.key) = (None, None);
            (self.save)(state)?;
        }
        ended
    }

    /// The order of `state`, or a new one, which is in `state` before anything is done with it.
    async fn open(&self, state: &mut SetState) -> Result<Order, Trouble> {
        // Without its key an order is of no use.
        if let (Some(url), Some(_)) = (&state.order, &state.key) {
            let found = self.ca.account.order(url.clone()).await.map_err(|error| self.ca.trouble(&error));
            match found {
                Ok(mut order) => {
                    if order.state().status != OrderStatus::Invalid {
                        return Ok(order);
                    }
                }
                Err(trouble) if trouble.is_answer() => {}
                Err(trouble) => return Err(trouble),
            }
            // The CA has forgotten it, or it has failed.
            (state.order, state.key) = (None, None);
        }
        if state.key.is_none() {
            let key = KeyPair::generate().map_err(|error| Trouble::unreachable(error.to_string()))?;
            state.key = Some(key.serialize_pem());
            (self.save)(state)?;
        } else if let Some(url) = unread::order(self.ca, self.set, self.profile).await? {
            // There was a try before, whose answer may not have been read.
            state.order = Some(url.clone());
            (self.save)(state)?;
            return self.ca.account.order(url).await.map_err(|error| self.ca.trouble(&error));
        }
        let order = match self.new_order(self.replaces).await {
            Err(trouble) if self.replaces.is_some() && trouble.is_answer() => self.new_order(None).await?,
            order => order?,
        };
        state.order = Some(order.url().to_owned());
        (self.save)(state)?;
        Ok(order)
    }

    async fn new_order(&self, replaces: Option<&(String, String)>) -> Result<Order, Trouble> {
        let names: Vec<Identifier> = self.set.names().into_iter().map(Identifier::Dns).collect();
        let mut new = NewOrder::new(&names);
        if let Some(profile) = self.profile {
            new = new.profile(profile);
        }
        if let Some(id) = replaces {
            new = new.replaces(certificate_id(id));
        }
        self.ca.account.new_order(&new).await.map_err(|error| self.ca.trouble(&error))
    }

    async fn follow(&self, order: &mut Order, state: &SetState) -> Result<Pair, Trouble> {
        let failed = |error: instant_acme::Error| self.ca.trouble(&error);
        let key = state.key.clone().unwrap_or_default();
        if order.state().status == OrderStatus::Pending {
            self.prove(order).await?;
            if order.poll_ready(&PATIENCE).await.map_err(failed)? == OrderStatus::Invalid {
                return Err(self.why_invalid(order).await);
            }
        }
        if order.state().status == OrderStatus::Ready {
            order.finalize_csr(&request(self.set, &key)?).await.map_err(failed)?;
        }
        let chain = match order.state().status {
            OrderStatus::Valid => order.certificate().await.map_err(failed)?,
            OrderStatus::Invalid => return Err(self.why_invalid(order).await),
            _ => Some(order.poll_certificate(&PATIENCE).await.map_err(failed)?),
        };
        let chain = chain.ok_or_else(|| Trouble::unreachable("the CA has issued no certificate yet"))?;
        certificate::check(&chain, &key, self.set).map_err(Trouble::refused)?;
        Ok(Pair { chain, key })
    }

    /// Has the CA look at each name that it has not looked at yet.
    async fn prove(&self, order: &mut Order) -> Result<(), Trouble> {
        let failed = |error: instant_acme::Error| self.ca.trouble(&error);
        let mut authorizations = order.authorizations();
        while let Some(next) = authorizations.next().await {
            let authorization = next.map_err(failed)?;
            match authorization.status {
                AuthorizationStatus::Valid => {}
                AuthorizationStatus::Pending => self.prove_one(authorization).await?,
                other => return Err(Trouble::refused(format!("the CA's authorization is {other:?}"))),
            }
        }
        Ok(())
    }

    async fn prove_one(&self, mut authorization: AuthorizationHandle<'_>) -> Result<(), Trouble> {
        let Identifier::Dns(name) = authorization.identifier().identifier.clone() else {
            return Err(Trouble::refused("the CA wants something proved that is no name"));
        };
        let (kind, called) = match self.set.needs_record() {
            true => (ChallengeType::Unknown(DNS_PERSIST.to_owned()), DNS_PERSIST),
            false => (ChallengeType::TlsAlpn01, TLS_ALPN),
        };
        let Some(mut challenge) = authorization.challenge(kind) else {
            return Err(Trouble::refused(format!("the CA does not offer {called} for {name}")));
        };
        if !self.set.needs_record() {
            let mut digest = [0; 32];
            digest.copy_from_slice(challenge.key_authorization().digest().as_ref());
            let answer = Challenge { name, digest, expires: SystemTime::now() + CHALLENGE };
            self.board.publish(&answer).map_err(|why| match why {
                Unanswered::HandedOver => Trouble::handed_over(),
                Unanswered::Failed(why) => Trouble::unreachable(why),
            })?;
        }
        // One that the CA looks at already goes on: the order was interrupted there.
        if challenge.status == ChallengeStatus::Pending {
            challenge.set_ready().await.map_err(|error| self.ca.trouble(&error))?;
        }
        Ok(())
    }

    /// What the CA says of the names: an order often only says that it has failed.
    async fn why_invalid(&self, order: &mut Order) -> Trouble {
        let mut found = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            if let Ok(state) = authorization.refresh().await {
                found.extend(
                    state.challenges.iter().filter_map(|challenge| challenge.error.as_ref()).map(words),
                );
            }
        }
        match found.is_empty() {
            true => Trouble::refused("the CA has ended the order, and does not say why"),
            false => Trouble::refused(found.join("; ")),
        }
    }
}

/// Whether nobody is to be answered any more. A record stays; and whoever takes an order over answers what was published, as
/// this process does for as long as it accepts.
fn is_over(set: &NameSet, ended: &Result<Pair, Trouble>) -> bool {
    let is_handed_over = matches!(ended, Err(trouble) if trouble.setback == Setback::HandedOver);
    !set.needs_record() && !is_handed_over
}

/// RFC 8737, section 3.
pub(crate) const TLS_ALPN: &str = "tls-alpn-01";

/// draft-ietf-acme-dns-persist, section 3.
pub(crate) const DNS_PERSIST: &str = "dns-persist-01";

/// A certificate signing request for these names and nothing else.
fn request(set: &NameSet, key: &str) -> Result<Vec<u8>, Trouble> {
    let made = KeyPair::from_pem(key).and_then(|key| {
        let mut wanted = CertificateParams::new(set.names())?;
        wanted.distinguished_name = DistinguishedName::new();
        wanted.serialize_request(&key)
    });
    let request = made.map_err(|error| Trouble::unreachable(format!("cannot make a request: {error}")))?;
    Ok(request.der().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_with_the_order_unless_another_process_goes_on_with_it() {
        let set = |name| NameSet::group([name]).remove(0);
        let pair = || Ok(Pair { chain: String::new(), key: String::new() });
        assert!(is_over(&set("a.example"), &pair()));
        assert!(is_over(&set("a.example"), &Err(Trouble::unreachable("away"))));
        assert!(!is_over(&set("a.example"), &Err(Trouble::handed_over())));
        assert!(!is_over(&set("*.a.example"), &pair()), "the record stays");
    }
}
