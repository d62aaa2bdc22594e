//! One certificate: what is known of it, its order, and what becomes of a failure.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use courser_telemetry::event::{Level, log};

use crate::board::ChallengeBoard;
use crate::certificate::Leaf;
use crate::client::Ca;
use crate::folder::{Folder, LastFailure, Registration, SetState};
use crate::names::NameSet;
use crate::order::{DNS_PERSIST, Job, Pair, TLS_ALPN};
use crate::plan::{self, Due, Known, Setback};
use crate::status::{FailureStatus, SetStatus};
use crate::trouble::Trouble;

/// One certificate.
pub(crate) struct Entry {
    pub(crate) set: NameSet,
    pub(crate) state: SetState,
    leaf: Option<Leaf>,
}

impl Entry {
    pub(crate) fn read(set: NameSet, folder: &Folder) -> Self {
        let read =
            |error: io::Error| log(Level::Error, format_args!("certificate {set}: cannot read {error}"));
        let state = folder.state(&set).map_err(read).unwrap_or_else(|()| SetState::new());
        let pair = folder.pair(&set).map_err(read).unwrap_or_default();
        let leaf = pair.and_then(|pair| Leaf::of(pair.as_bytes()));
        Self { set, state, leaf }
    }

    pub(crate) fn due(&self) -> Due {
        plan::due(&known(self.leaf.as_ref(), &self.state))
    }

    /// When it is to be ordered, or the CA to be asked for its window.
    pub(crate) fn next(&self) -> i64 {
        let asks = self.leaf.as_ref().is_some_and(|leaf| leaf.id.is_some());
        let ask_at = if asks { self.state.ask_at } else { i64::MAX };
        self.due().at.min(ask_at)
    }

    /// Orders, or goes on with an order. Returns whether there is a new pair.
    pub(crate) async fn order(
        &mut self,
        ca: &Ca,
        profile: Option<&str>,
        board: &dyn ChallengeBoard,
        folder: &Folder,
    ) -> bool {
        if ca.is_new && self.set.needs_record() {
            // The record names the account, which nobody knew until now.
            let words = "its TXT record has to be in DNS first, and the account that it names is new";
            self.fail(&Trouble::refused(words), folder);
            return false;
        }
        let why = self.due().why;
        let Self { set, state, leaf } = self;
        let about = if leaf.is_some() { "it is renewed" } else { "it is ordered" };
        log(Level::Info, format_args!("certificate {set}: {about}, {}", why.words()));
        let save = |state: &SetState| folder.write_state(set, state);
        let replaces = leaf.as_ref().filter(|_| state.window.is_some()).and_then(|leaf| leaf.id.as_ref());
        let obtained = Job { ca, set, profile, replaces, board, save: &save }.obtain(state).await;
        match obtained.and_then(|pair| keep(&pair, set, folder)) {
            Ok((new_leaf, new_state)) => {
                (self.leaf, self.state) = (Some(new_leaf), new_state);
                log(Level::Info, format_args!("certificate {}: there is a new one", self.set));
                true
            }
            Err(trouble) => {
                self.fail(&trouble, folder);
                false
            }
        }
    }

    /// Asks the CA when it wants the certificate to be renewed, if that is due.
    pub(crate) async fn ask(&mut self, ca: &Ca, folder: &Folder) {
        let Some(id) = self.leaf.as_ref().and_then(|leaf| leaf.id.as_ref()) else { return };
        if self.state.ask_at > now() {
            return;
        }
        match ca.window(id).await {
            Ok((window, pause)) => {
                (self.state.window, self.state.unanswered) = (window, 0);
                self.state.ask_at = plan::ask_again(now(), pause);
                self.write(folder);
            }
            Err(trouble) => self.ask_later(&trouble, folder),
        }
    }

    /// Without an answer what the CA has said before holds.
    pub(crate) fn ask_later(&mut self, trouble: &Trouble, folder: &Folder) {
        let state = &mut self.state;
        state.unanswered = state.unanswered.saturating_add(1);
        state.ask_at = plan::try_again(trouble.setback, state.unanswered, now(), state.draw);
        let set = &self.set;
        log(
            Level::Warning,
            format_args!("certificate {set}: the CA does not say when to renew it: {trouble}"),
        );
        self.write(folder);
    }

    pub(crate) fn fail(&mut self, trouble: &Trouble, folder: &Folder) {
        let (state, at) = (&mut self.state, now());
        if trouble.setback == Setback::HandedOver {
            // Not written: whoever takes over goes on at once.
            state.not_before = Some(plan::try_again(trouble.setback, state.failures, at, state.draw));
            return;
        }
        if trouble.kind.as_deref() == Some("accountDoesNotExist") {
            // A CA that was set up anew. The key is kept, and makes another account.
            let forgotten = folder.account().and_then(|known| match known {
                Some(_) => folder.write_account(&Registration::default()),
                None => Ok(()),
            });
            let _ = forgotten.map_err(|error| log(Level::Error, format_args!("cannot write {error}")));
        }
        state.failures = state.failures.saturating_add(1);
        let is_awaited = self.set.needs_record() && self.leaf.is_none();
        let setback = match trouble.setback {
            Setback::Refused if is_awaited => Setback::RecordAwaited,
            setback => setback,
        };
        let again = plan::try_again(setback, state.failures, at, state.draw);
        (state.not_before, state.ask_at) = (Some(again), state.ask_at.max(again));
        state.failure = Some(LastFailure { at, setback, words: trouble.words.clone() });
        let minutes = (again - at + 59) / 60;
        let hint = match self.set.needs_record() {
            true => {
                format!(" (`courser acme record {}` prints the TXT record that it needs)", self.set.base())
            }
            false => String::new(),
        };
        let pause = if minutes < 120 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
        let set = &self.set;
        log(
            Level::Warning,
            format_args!("certificate {set}: not ordered: {trouble}{hint}; next try within {pause}"),
        );
        self.write(folder);
    }

    fn write(&self, folder: &Folder) {
        if let Err(error) = folder.write_state(&self.set, &self.state) {
            log(Level::Error, format_args!("certificate {}: cannot write {error}", self.set));
        }
    }

    pub(crate) fn status(&self, directory: &str, is_ordering: bool) -> SetStatus {
        let Due { at, why } = self.due();
        let failure = self.state.failure.as_ref().map(|failure| FailureStatus {
            at: failure.at,
            setback: failure.setback,
            words: failure.words.clone(),
        });
        SetStatus {
            names: self.set.names(),
            challenge: if self.set.needs_record() { DNS_PERSIST } else { TLS_ALPN }.to_owned(),
            directory: directory.to_owned(),
            not_after: self.leaf.as_ref().map(|leaf| leaf.lifetime.end),
            is_ordering,
            order: self.state.order.clone(),
            next: at.max(0),
            why,
            failures: self.state.failures,
            failure,
        }
    }
}

/// Writes a pair, and then that its order is over: until the pair is there, the order is what it comes from.
fn keep(Pair { chain, key }: &Pair, set: &NameSet, folder: &Folder) -> Result<(Leaf, SetState), Trouble> {
    let leaf = Leaf::of(chain.as_bytes());
    let leaf = leaf.ok_or_else(|| Trouble::refused("the CA has sent a certificate that cannot be read"))?;
    folder.write_pair(set, chain, key)?;
    let state = SetState { not_before: Some(plan::rest(leaf.lifetime, now())), ..SetState::new() };
    folder.write_state(set, &state)?;
    Ok((leaf, state))
}

fn known(leaf: Option<&Leaf>, state: &SetState) -> Known {
    Known {
        lifetime: leaf.map(|leaf| leaf.lifetime),
        window: state.window,
        draw: state.draw,
        has_order: state.order.is_some(),
        not_before: state.not_before,
    }
}

/// Unix seconds.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Why;

    #[test]
    fn an_order_that_is_handed_over_has_not_failed() {
        let place = courser_testkit::Folder::new();
        let folder = Folder::of(place.path(), "https://ca.example/directory");
        let set = || NameSet::group(["a.example"]).remove(0);
        let mut entry = Entry::read(set(), &folder);
        entry.fail(&Trouble::handed_over(), &folder);
        assert_eq!((entry.state.failures, entry.due().why), (0, Why::Pause), "this process asks again");
        assert!(entry.due().at <= now() + 2);
        assert_eq!(Entry::read(set(), &folder).due().why, Why::NoCertificate, "the next one goes on at once");
        entry.fail(&Trouble::unreachable("away"), &folder);
        assert_eq!(Entry::read(set(), &folder).state.failures, 1);
    }
}
