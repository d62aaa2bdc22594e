//! A CA that checks who has a name: it asks for `acme-tls/1`, gets the certificate with its digest, and nothing else (RFC 8737).
//! No session, no ticket, no backend. Who asks for anything else pays for one comparison.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use courser_session::PolicyHash;
use courser_telemetry::{Close, CloseReason};
use courser_tls::{HandshakePlan, Identity, ServerConnection, ServerTlsConfig, SessionOffer};

use crate::certificate::Selection;
use crate::classify::Classified;
use crate::client::{EarlyClose, alert};
use crate::handshake;
use crate::settings::Certificates;

/// What a CA offers alone (RFC 8737, section 6.2).
pub const PROTOCOL: &[u8] = b"acme-tls/1";

/// The names that a CA may ask for now, with the certificates of the answers. Workers look only where a client offers nothing
/// but [`PROTOCOL`], so its lock is none that connections take.
#[derive(Debug, Default)]
pub struct Challenges {
    pending: Mutex<HashMap<Box<str>, Answer>>,
}

/// What a CA gets.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    identity: Arc<Identity>,
    tls: Arc<ServerTlsConfig>,
}

impl Challenges {
    /// From now on a CA that asks for `name`, in lower case, gets this certificate. `tls` has [`PROTOCOL`] as its only protocol,
    /// and neither sessions nor tickets.
    pub fn publish(&self, name: &str, identity: Identity, tls: &Arc<ServerTlsConfig>) {
        let answer = Answer { identity: Arc::new(identity), tls: Arc::clone(tls) };
        self.lock().insert(name.into(), answer);
    }

    /// Nobody asks for it any more.
    pub fn withdraw(&self, name: &str) {
        self.lock().remove(name);
    }

    fn get(&self, name: &str) -> Option<Answer> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Answer>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A CA's connection, and the answer to it.
pub(crate) struct Asked {
    pub(crate) classified: Classified,
    pub(crate) answer: Answer,
}

/// The answer to a CA that asks for a name which is pending.
pub(crate) fn find(classified: &Classified) -> Option<Answer> {
    if !classified.offer.acme {
        return None;
    }
    classified.client.worker.challenges.get(classified.offer.name.as_deref()?)
}

/// Makes the handshake, and ends.
pub(crate) async fn answer(asked: Asked) -> Box<EarlyClose> {
    let Asked { classified: Classified { mut client, received, offer }, answer: Answer { identity, tls } } =
        asked;
    let selection = match Selection::make(&offer, &tls, &Certificates::new(&[identity])) {
        Ok(selection) => selection,
        Err((end, description)) => {
            received.discard(&client.worker.buffers);
            return client.close_with(end, alert(description));
        }
    };
    client.account.identity = Some(Arc::clone(&selection.identity));
    // There are no sessions that it could be bound to.
    let policy = PolicyHash::builder("", "").finish();
    let plan = HandshakePlan::new(selection.identity, policy, SessionOffer::Tickets);
    let tls = match ServerConnection::new(&tls, selection.group, selection.order, plan) {
        Ok(tls) => Box::new(tls),
        Err(failure) => {
            received.discard(&client.worker.buffers);
            return client.close_silently(Close::with(CloseReason::Internal, failure.to_string()));
        }
    };
    let (ended, final_bytes) = handshake::alone(&client, received, tls).await;
    let close = ended.err().unwrap_or_else(|| CloseReason::AcmeChallenge.into());
    client.close_with(close, final_bytes)
}
