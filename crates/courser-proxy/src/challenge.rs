//! A CA that checks who has a name: it asks for `acme-tls/1`, gets the certificate with its digest, and nothing else (RFC 8737).
//! No session, no ticket, no backend. Who asks for anything else pays for one comparison.

use std::sync::Arc;

use courser_session::PolicyHash;
use courser_telemetry::{Close, CloseReason};
use courser_tls::{HandshakePlan, ServerConnection, SessionOffer};

use crate::certificate::Selection;
use crate::challenges::Answer;
use crate::classify::Classified;
use crate::client::{EarlyClose, alert};
use crate::handshake;
use crate::settings::Certificates;

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
