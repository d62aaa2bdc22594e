//! Connections that wait for a session from another host. May not outlive the member's answers: it gives one for each
//! session that it was asked for.

use std::collections::HashMap;

use courser_session::SessionId;
use tokio::sync::oneshot;

#[derive(Default)]
pub(super) struct Waiting {
    by_id: HashMap<SessionId, Vec<oneshot::Sender<bool>>>,
}

impl Waiting {
    pub(super) fn add(&mut self, id: SessionId, waiter: oneshot::Sender<bool>) {
        self.by_id.entry(id).or_default().push(waiter);
    }

    /// Tells all who wait for this session whether it is in the cache now.
    pub(super) fn answer(&mut self, id: &SessionId, found: bool) {
        for waiter in self.by_id.remove(id).unwrap_or_default() {
            // Who has lost patience is not there any more.
            let _ = waiter.send(found);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
}
