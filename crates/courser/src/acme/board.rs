//! What a CA is answered when it checks who has a name: on this host, and on every other one of its fleet, as the CA may ask any.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use courser_acme::{Challenge, ChallengeBoard, Unanswered};
use courser_config::{Group, Named, Suite};
use courser_proxy::{CHALLENGE_PROTOCOL, Challenges};
use courser_session::UnixSeconds;
use courser_sharing::{DomainCheck, FleetHandle};
use courser_tls::{ClientAuth, ServerTlsConfig, ServerTlsSpec, Sessions, Version, self_signed_challenge};

use super::pending::Pending;
use crate::exit::Failure;
use crate::fleet_keys::unix_now;

/// How long the peers may take to say that they answer. After it the order is tried again later.
const PATIENCE: Duration = Duration::from_secs(5);

/// Names that are answered at a time at most, as peers want it: each takes a few kilobytes.
const MOST: usize = 256;

/// How long a name is answered at most, seconds, whatever a peer or its clock says: an order takes minutes.
const LONGEST: u64 = 3600;

/// Answers here, and in a fleet on all other hosts before the CA is asked to look.
pub(crate) struct Board {
    challenges: Arc<Challenges>,
    tls: Arc<ServerTlsConfig>,
    fleet: Option<FleetHandle>,
    pending: Arc<Pending>,
}

impl Board {
    /// Answers what is pending already; in a fleet also what peers want answered from now on.
    pub(crate) fn new(
        challenges: &Arc<Challenges>,
        pending: &Arc<Pending>,
        fleet: Option<FleetHandle>,
    ) -> Result<Arc<Self>, Failure> {
        let (challenges, pending) = (Arc::clone(challenges), Arc::clone(pending));
        let board = Arc::new(Self { challenges, tls: Arc::new(challenge_tls()?), fleet, pending });
        for check in board.pending.list() {
            // One that cannot be answered fails its order, as in the process that it comes from.
            let _ = board.show(&check);
        }
        if let Some(fleet) = &board.fleet {
            // The fleet's thread must not keep what holds the way to it.
            let weak = Arc::downgrade(&board);
            fleet.answer_checks(Arc::new(move |check| {
                weak.upgrade().is_some_and(|board| board.take(check, unix_now()))
            }));
        }
        Ok(board)
    }

    /// Answers what a peer wants answered, or no more what is over. Returns whether it is answered.
    fn take(&self, check: &DomainCheck, now: UnixSeconds) -> bool {
        if check.expires <= now {
            let is_same = self.pending.get(&check.name).is_some_and(|pending| pending.digest == check.digest);
            if is_same {
                self.end(&check.name);
            }
            return false;
        }
        let has_room = self.pending.len() < MOST || self.pending.get(&check.name).is_some();
        let latest = UnixSeconds(now.0.saturating_add(LONGEST));
        has_room && self.answer(&DomainCheck { expires: check.expires.min(latest), ..check.clone() }).is_ok()
    }

    fn answer(&self, check: &DomainCheck) -> Result<(), Unanswered> {
        let is_new = self.pending.put(check)?;
        if is_new {
            self.show(check).map_err(|why| {
                self.end(&check.name);
                Unanswered::Failed(why)
            })?;
        }
        Ok(())
    }

    fn show(&self, check: &DomainCheck) -> Result<(), String> {
        let identity = self_signed_challenge(&check.name, &check.digest);
        let identity = identity.map_err(|error| error.to_string())?;
        self.challenges.publish(&check.name, identity, &self.tls);
        Ok(())
    }

    fn end(&self, name: &str) -> Option<DomainCheck> {
        self.challenges.withdraw(name);
        self.pending.remove(name)
    }

    /// Answers no more what is over: the host that ordered may be gone.
    pub(crate) fn forget_old(&self, now: UnixSeconds) {
        self.pending.over(now).iter().for_each(|name| drop(self.end(name)));
    }
}

impl ChallengeBoard for Board {
    fn publish(&self, challenge: &Challenge) -> Result<(), Unanswered> {
        let expires = challenge.expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (name, digest) = (challenge.name.clone(), challenge.digest);
        let check = DomainCheck { name, digest, expires: UnixSeconds(expires) };
        self.answer(&check)?;
        let Some(fleet) = &self.fleet else { return Ok(()) };
        fleet.send_check(&check, PATIENCE).map_err(|missing| {
            let why =
                format!("the CA may ask any host of the fleet, and not every one answers it: {missing}");
            Unanswered::Failed(why)
        })
    }

    fn withdraw(&self, name: &str) {
        if let (Some(check), Some(fleet)) = (self.end(name), &self.fleet) {
            fleet.withdraw(&check);
        }
    }
}

/// What a CA is answered by: every version, suite and group that there is, as it is not a client that has to be kept out.
fn challenge_tls() -> Result<ServerTlsConfig, Failure> {
    let spec = ServerTlsSpec {
        versions: vec![Version::Tls12, Version::Tls13],
        suites: Suite::ALL.iter().map(|suite| suite.code()).collect(),
        groups: Group::ALL.iter().map(|group| group.code()).collect(),
        alpn: vec![CHALLENGE_PROTOCOL.to_vec()],
        tickets: 0,
        client_auth: ClientAuth::default(),
    };
    let sessions = Sessions { cache: None, ticketer: None, lifetime: Duration::ZERO };
    let tls = ServerTlsConfig::new(spec, &sessions);
    tls.map_err(|error| Failure::runtime("cannot set TLS for challenges up", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixSeconds = UnixSeconds(1_800_000_000);

    fn check(number: usize, expires: u64) -> DomainCheck {
        DomainCheck { name: format!("{number}.example"), digest: [7; 32], expires: UnixSeconds(expires) }
    }

    #[test]
    fn peers_have_so_many_names_answered_and_none_for_ever() {
        let board = Board::new(&Arc::default(), &Arc::default(), None).unwrap();
        assert!((0..MOST).all(|number| board.take(&check(number, u64::MAX), NOW)));
        assert!(!board.take(&check(MOST, NOW.0 + 600), NOW), "one more than there is room for");
        assert!(board.take(&check(0, NOW.0 + 600), NOW), "one that is there already");
        board.forget_old(UnixSeconds(NOW.0 + LONGEST));
        assert!(board.pending.len() == 0 && board.challenges.is_empty());
        assert!(board.take(&check(MOST, NOW.0 + 600), NOW));
    }

    #[test]
    fn the_next_process_answers_what_is_pending_and_this_one_takes_no_more() {
        let (pending, answers) = (Arc::<Pending>::default(), Arc::<Challenges>::default());
        let board = Board::new(&Arc::default(), &pending, None).unwrap();
        assert!(board.take(&check(1, NOW.0 + 600), NOW));
        let next = Arc::<Pending>::default();
        for check in pending.hand_over() {
            next.put(&check).unwrap();
        }
        drop(Board::new(&answers, &next, None).unwrap());
        assert!(!answers.is_empty(), "an authority may look at once");
        assert!(!board.take(&check(2, NOW.0 + 600), NOW), "the next process would not know of it");
        assert!(board.take(&check(1, NOW.0 + 600), NOW), "both answer what was asked before");
        let other = DomainCheck { digest: [8; 32], ..check(1, NOW.0 + 600) };
        assert!(!board.take(&other, NOW), "the next process has another answer");
        assert!(!board.challenges.is_empty(), "the answer stays");
        pending.keep();
        assert!(board.take(&check(2, NOW.0 + 600), NOW), "nothing came of the upgrade");
    }
}
